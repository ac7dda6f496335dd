// Extracted from Sources/ConnectNIO/ConnectNIO.docc/BeforeProduction.md by `make generate`.

import Connect
import ConnectNIO

private func ConnectNIO_BeforeProduction_1() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.http2.keepalive = .init(interval: .seconds(300), timeout: .seconds(20))
  let httpClient = NIOHTTPClient(configuration: configuration)
  let config = ProtocolClientConfig(host: "https://api.example.com", timeout: .seconds(10))
  _ = configuration
  _ = httpClient
  _ = config
}

private func ConnectNIO_BeforeProduction_2() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.keepsFreedMemory = true
  _ = configuration
}
