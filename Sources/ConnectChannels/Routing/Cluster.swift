/// A set of servers that routes lead to.
public struct Cluster: Sendable, Hashable {
  /// The servers.
  public var endpoints: [Endpoint]
  /// How calls are spread over them; nil, the default, for the channel's own policy.
  public var balancing: BalancingPolicy?
  /// Why there are no servers, for the errors of calls; nil, the default, if that is not known. Such calls fail with `unavailable`,
  /// unless they wait for a server that can be reached. Without effect if there are servers.
  public var problem: String?

  /// A cluster with these servers.
  public init(endpoints: [Endpoint], balancing: BalancingPolicy? = nil, problem: String? = nil) {
    self.endpoints = endpoints
    self.balancing = balancing
    self.problem = problem
  }
}
