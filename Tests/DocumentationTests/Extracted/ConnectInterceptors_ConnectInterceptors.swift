// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/ConnectInterceptors.md by `make generate`.

import Connect
import ConnectInterceptors
import Logging

private func ConnectInterceptors_ConnectInterceptors_1() async throws {
  let parts = ClientParts(logger: Logger(label: "calls"))
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: .recommended(for: parts),
    contextPropagators: [ServiceContextPropagator()]
  )
  _ = parts
  _ = config
}
