/// A set of servers that routes lead to.
public struct Cluster: Sendable, Hashable {
  /// The servers.
  public var endpoints: [Endpoint]
  /// How calls are spread over them; nil, the default, for the channel's own policy.
  public var balancing: BalancingPolicy?

  /// A cluster with these servers.
  public init(endpoints: [Endpoint], balancing: BalancingPolicy? = nil) {
    self.endpoints = endpoints
    self.balancing = balancing
  }
}
