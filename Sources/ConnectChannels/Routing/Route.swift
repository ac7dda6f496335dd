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
  /// Delays and failures that some of the calls get on purpose; nil, the default, for none.
  public var fault: FaultInjection?
  /// Why the calls of the route fail with `unavailable`; nil, the default, for routes that lead to clusters.
  public var refusal: String?

  /// A route to clusters.
  public init(
    _ match: RouteMatch = .all,
    to clusters: [WeightedCluster],
    timeout: Duration? = nil,
    attempts: MethodConfig.AttemptPolicy? = nil,
    hashPolicies: [RouteHashPolicy] = [],
    fault: FaultInjection? = nil
  ) {
    self.match = match
    self.clusters = clusters
    self.timeout = timeout
    self.attempts = attempts
    self.hashPolicies = hashPolicies
    self.fault = fault
  }

  /// A route to one cluster.
  public init(
    _ match: RouteMatch = .all,
    to cluster: String,
    timeout: Duration? = nil,
    attempts: MethodConfig.AttemptPolicy? = nil,
    hashPolicies: [RouteHashPolicy] = [],
    fault: FaultInjection? = nil
  ) {
    self.init(
      match,
      to: [WeightedCluster(name: cluster, weight: 1)],
      timeout: timeout,
      attempts: attempts,
      hashPolicies: hashPolicies,
      fault: fault
    )
  }

  /// A route whose calls fail with `unavailable`.
  public init(_ match: RouteMatch = .all, refusing message: String) {
    self.init(match, to: [])
    self.refusal = message
  }
}
