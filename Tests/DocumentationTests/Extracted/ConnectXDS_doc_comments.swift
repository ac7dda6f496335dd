// Extracted from the doc comments of Sources/ConnectXDS by `make generate`.

import Connect
import ConnectChannels
import ConnectNIO
import ConnectXDS

extension DocComments {
  private func XDSClient_Resolver_1() async throws {
    configuration.channel.resolver = try xds.resolver(for: "xds:///orders")
  }

  private func Configuration_XDS_1() async throws {
    let xds = try XDSClient(bootstrap: .ofEnvironment())
    var configuration = NIOHTTPClient.Configuration()
    try configuration.resolve(through: xds, target: "xds:///orders")
    let client = ProtocolClient(
      httpClient: NIOHTTPClient(configuration: configuration),
      config: ProtocolClientConfig(host: "http://orders", networkProtocol: .grpc)
    )
    _ = xds
    _ = configuration
    _ = client
  }
}
