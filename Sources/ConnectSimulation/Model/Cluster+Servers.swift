public import ConnectChannels

extension Cluster {
  /// A cluster of these servers, for ``SimulatedService/routing``.
  public init(_ servers: some Sequence<SimulatedServer>, balancing: BalancingPolicy? = nil) {
    self.init(endpoints: servers.map(\.endpoint), balancing: balancing)
  }
}
