// Extracted from Sources/ConnectNIO/ConnectNIO.docc/ShuttingDown.md by `make generate`.

import ConnectNIO

private func ConnectNIO_ShuttingDown_1() async throws {
  let httpClient: NIOHTTPClient = given()
  await httpClient.shutdown(within: .seconds(20))
  _ = httpClient
}
