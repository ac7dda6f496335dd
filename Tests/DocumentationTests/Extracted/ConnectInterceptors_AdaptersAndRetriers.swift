// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/AdaptersAndRetriers.md by `make generate`.

import Connect
import ConnectInterceptors

private func ConnectInterceptors_AdaptersAndRetriers_1() async throws {
  let version = Adapter { request, _ in
    var request = request
    request.headers["x-client-version"] = ["7"]
    return request
  }
  let conflicts = Retrier { attempt in
    guard attempt.error.code == .aborted, attempt.number < 3 else { return .doNotRetry }
    return .retryWithDelay(.milliseconds(50))
  }
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [
      { _ in RequestInterceptor(adapters: [version], retriers: [conflicts, ConnectionLostRetrier()]) }
    ]
  )
  _ = version
  _ = conflicts
  _ = config
}
