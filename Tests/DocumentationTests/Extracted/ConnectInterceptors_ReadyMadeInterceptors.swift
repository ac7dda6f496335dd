// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/ReadyMadeInterceptors.md by `make generate`.

import Connect
import ConnectInterceptors
import Logging

struct TenantMark: Interceptor {}

struct CallRecorder: Interceptor {}

private func ConnectInterceptors_ReadyMadeInterceptors_2() async throws {
  let credentials: Credentials = given()
  var parts = ClientParts(logger: Logger(label: "calls"))
  parts.credentials = credentials
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: .recommended(for: parts),
    contextPropagators: [ServiceContextPropagator()]
  )
  _ = credentials
  _ = parts
  _ = config
}

private func ConnectInterceptors_ReadyMadeInterceptors_3() async throws {
  var parts = ClientParts(logger: Logger(label: "calls"))
  parts.insert(after: CredentialsInterceptor.self) { _ in TenantMark() }
  parts.replace(LoggingInterceptor.self) { _ in CallRecorder() }
  parts.remove(CircuitBreakerInterceptor.self)
  _ = parts
}
