// Extracted from Sources/ConnectNIO/ConnectNIO.docc/ConnectNIO.md by `make generate`.

import Connect
import ConnectNIO

private func ConnectNIO_ConnectNIO_1() async throws {
  let httpClient = NIOHTTPClient()
  let client = ProtocolClient(
    httpClient: httpClient,
    config: ProtocolClientConfig(host: "https://api.example.com", timeout: .seconds(10))
  )
  _ = httpClient
  _ = client
}
