// Extracted from the doc comments of Sources/ConnectLifecycle by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectLifecycle
import ConnectNIO
import ConnectProtobufC
import ConnectReflection
import ConnectSimulation
import ConnectTesting
import Logging
import NIOCore
import ServiceLifecycle
import XCTest

extension DocComments {
  private func HTTPClientService_1() async throws {
    let httpClient = NIOHTTPClient()
    let group = ServiceGroup(
      services: [HTTPClientService(httpClient), worker],
      gracefulShutdownSignals: [.sigterm],
      logger: logger
    )
    try await group.run()
    _ = httpClient
    _ = group
  }
}
