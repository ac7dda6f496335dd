// Extracted from Sources/Connect/Connect.docc/MigratingFromAlamofire.md by `make generate`.

import Connect
import ConnectInterceptors
import NIOCore

struct VersionAdapter: RequestAdapter {
  let version: Int

  func adapt(_ request: HTTPRequest<ByteBuffer?>, for method: MethodInfo) async throws -> HTTPRequest<ByteBuffer?> {
    var request = request
    request.headers["x-client-version"] = ["\(self.version)"]
    return request
  }
}

private func Connect_MigratingFromAlamofire_1() async throws {
  let key = Adapter { request, method in
    var request = request
    request.headers["x-api-key"] = ["k3y"]
    return request
  }
  let conflicts = Retrier { attempt in
    guard attempt.error.code == .aborted, attempt.number < 3 else { return .doNotRetry }
    return .retryWithDelay(.milliseconds(50))
  }
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [
      { _ in RequestInterceptor(adapters: [key], retriers: [conflicts, ConnectionLostRetrier()]) }
    ]
  )
  _ = key
  _ = conflicts
  _ = config
}

private func Connect_MigratingFromAlamofire_3() async throws {
  let credentials = Credentials(for: ["api.example.com"]) { _ in
    AccessToken("t0k3n", expiresIn: .seconds(3600))
  }
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [{ _ in CredentialsInterceptor(credentials) }]
  )
  _ = credentials
  _ = config
}
