// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/HashesInPlaceOfRequests.md by `make generate`.

import Connect
import ConnectInterceptors

private func ConnectInterceptors_HashesInPlaceOfRequests_1() async throws {
  let requests = PersistedRequests(minimumByteCount: 1024)
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [{ _ in PersistedRequestInterceptor(requests) }],
    unaryGET: .enabledForLimitedPayloadSizes(maxBytes: 8192)
  )
  _ = requests
  _ = config
}
