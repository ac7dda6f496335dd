public import Connect
internal import ConnectChannels
public import ConnectNIO

extension NIOHTTPClient.Configuration {
  /// Has a control plane say where calls go: routes, clusters, servers, and their TLS.
  ///
  /// ```swift
  /// let xds = try XDSClient(bootstrap: .ofEnvironment())
  /// var configuration = NIOHTTPClient.Configuration()
  /// try configuration.resolve(through: xds, target: "xds:///orders")
  /// let client = ProtocolClient(
  ///   httpClient: NIOHTTPClient(configuration: configuration),
  ///   config: ProtocolClientConfig(host: "http://orders", networkProtocol: .grpc)
  /// )
  /// ```
  ///
  /// It sets `channel.resolver` and `clusterSecurity`. A cluster for which the control plane gives TLS has it also if the
  /// client's host is `http://…`. The other clusters have TLS if the host is `https://…`, with the settings of `tls`.
  ///
  /// - Parameters:
  ///   - client: It stays alive while it is used.
  ///   - target: `xds:///NAME`, or `xds://AUTHORITY/NAME`.
  /// - Throws: `ConnectError` with `invalid_argument` if it is no such target, or if the bootstrap does not know the authority.
  public mutating func resolve(through client: XDSClient, target: String) throws(ConnectError) {
    self.channel.resolver = try client.resolver(for: target)
    let security = client.targets.security
    self.clusterSecurity = client.companions.companion { XDSClusterSecurity(client.bootstrap, security) }
  }
}
