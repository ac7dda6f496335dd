// Extracted from Sources/ConnectXDS/ConnectXDS.docc/ConnectXDS.md by `make generate`.

import ConnectNIO
import ConnectXDS

private func ConnectXDS_ConnectXDS_1() async throws {
  let xds = try XDSClient(bootstrap: .ofEnvironment())
  var configuration = NIOHTTPClient.Configuration()
  try configuration.resolve(through: xds, target: "xds:///orders")
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = xds
  _ = configuration
  _ = httpClient
}
