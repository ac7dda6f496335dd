// Extracted from Sources/ConnectHTTP3/ConnectHTTP3.docc/ConnectHTTP3.md by `make generate`.

import ConnectHTTP3
import ConnectNIO

private func ConnectHTTP3_ConnectHTTP3_1() async throws {
  let httpClient = NIOHTTPClient(configuration: .init(http3: .discovered))
  _ = httpClient
}
