/// Which calls go where. It is decided once for each call, before its interceptors run (gRFC A31).
public struct Route: Sendable, Hashable {
  /// Which calls the route is for.
  public var match: RouteMatch
  /// Where the calls go, by weight.
  public var clusters: [WeightedCluster]
  /// The longest time for a call; nil, the default, for what the service config says. The shorter of it and the caller's own
  /// counts.
  public var timeout: Duration?
  /// Whether failed or slow calls get further attempts; nil, the default, for what the service config says.
  public var attempts: MethodConfig.AttemptPolicy?
  /// What calls are hashed by, for ``BalancingPolicy/ringHash(_:)`` (gRFC A42). Without any, the hash is that of
  /// ``RoutingHash``.
  public var hashPolicies: [RouteHashPolicy]

  /// A route to clusters.
  public init(
    _ match: RouteMatch = .all,
    to clusters: [WeightedCluster],
    timeout: Duration? = nil,
    attempts: MethodConfig.AttemptPolicy? = nil,
    hashPolicies: [RouteHashPolicy] = []
  ) {
    self.match = match
    self.clusters = clusters
    self.timeout = timeout
    self.attempts = attempts
    self.hashPolicies = hashPolicies
  }

  /// A route to one cluster.
  public init(
    _ match: RouteMatch = .all,
    to cluster: String,
    timeout: Duration? = nil,
    attempts: MethodConfig.AttemptPolicy? = nil,
    hashPolicies: [RouteHashPolicy] = []
  ) {
    self.init(
      match,
      to: [WeightedCluster(name: cluster, weight: 1)],
      timeout: timeout,
      attempts: attempts,
      hashPolicies: hashPolicies
    )
  }
}

/// A cluster, and its share of the calls of a route.
public struct WeightedCluster: Sendable, Hashable {
  /// The cluster's name in ``Routing/clusters``.
  public var name: String
  /// The share relative to the route's other clusters. 0 for no calls.
  public var weight: UInt32

  /// A cluster with a weight.
  public init(name: String, weight: UInt32) {
    self.name = name
    self.weight = weight
  }
}
