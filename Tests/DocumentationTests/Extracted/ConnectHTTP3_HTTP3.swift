// Extracted from Sources/ConnectHTTP3/ConnectHTTP3.docc/HTTP3.md by `make generate`.

import ConnectHTTP3
import ConnectNIO

private func ConnectHTTP3_HTTP3_1() async throws {
  let httpClient = NIOHTTPClient(configuration: .init(http3: .discovered))
  _ = httpClient
}

private func ConnectHTTP3_HTTP3_2() async throws {
  var http3 = HTTP3Configuration.defaults
  http3.pingInterval = .seconds(10)
  let httpClient = NIOHTTPClient(configuration: .init(http3: .discovered(http3)))
  _ = http3
  _ = httpClient
}
