// Extracted from Sources/ConnectLifecycle/ConnectLifecycle.docc/ConnectLifecycle.md by `make generate`.

import ConnectLifecycle
import ConnectNIO
import Logging
import ServiceLifecycle

private func ConnectLifecycle_ConnectLifecycle_1() async throws {
  let httpClient: NIOHTTPClient = given()
  let server: any Service = given()
  let group = ServiceGroup(
    services: [HTTPClientService(httpClient, within: .seconds(20)), server],
    gracefulShutdownSignals: [.sigterm],
    logger: Logger(label: "main")
  )
  try await group.run()
  _ = httpClient
  _ = server
  _ = group
}
