extension BalancingPolicy {
  /// A part of the endpoints, and the policy for them.
  public struct Child: Sendable, Hashable {
    /// The name of the part. See ``Endpoint/path``.
    public var name: String
    /// Spreads the calls of the part over its endpoints.
    public var policy: BalancingPolicy

    /// A part as given.
    public init(_ name: String, _ policy: BalancingPolicy) {
      self.name = name
      self.policy = policy
    }
  }

  /// A part of the endpoints that gets calls in proportion to a weight.
  public struct WeightedChild: Sendable, Hashable {
    /// The name of the part. See ``Endpoint/path``.
    public var name: String
    /// The share of the calls relative to the other parts. A part with the weight 0 gets none and does not connect.
    public var weight: UInt32
    /// Spreads the calls of the part over its endpoints.
    public var policy: BalancingPolicy

    /// A part as given.
    public init(_ name: String, weight: UInt32, _ policy: BalancingPolicy) {
      self.name = name
      self.weight = weight
      self.policy = policy
    }
  }

  /// All calls go to the first part that works; gRPC's `priority_experimental` (gRFC A27, A56).
  ///
  /// ```swift
  /// configuration.channel.balancing = .priority([.init("near", .roundRobin), .init("far", .leastRequest())])
  /// // In the resolver: Endpoint(addresses: […], path: ["near"])
  /// ```
  ///
  /// | part | what happens |
  /// | --- | --- |
  /// | ready, or idle because its policy connects with the first call | has the calls; later parts are left |
  /// | connecting for less than 10 s since the start or since it was usable | calls wait for it |
  /// | connecting for longer, or failed | the next part begins to connect |
  /// | none works | calls wait for the first part that is connecting, or fail as those of the last part |
  /// | left | keeps its connections for 15 minutes; then they close once they have no calls |
  ///
  /// Calls come back as soon as an earlier part is ready again. While a later part serves them, every 500 ms one failed endpoint of
  /// each earlier part is tried, whatever its backoff, and all of them once one is ready again.
  ///
  /// An endpoint belongs to the part with the name in its ``Endpoint/path``, else in its ``Endpoint/zone``. If it belongs to
  /// none it is not used. Parts may have trees of their own, which take the next element of the path. A server that is in
  /// the list several times counts for the first place only.
  ///
  /// - Parameter children: The best one first. Of children with the same name, only the first gets endpoints.
  public static func priority(_ children: [Child]) -> BalancingPolicy {
    BalancingPolicy(.priority(children))
  }

  /// Each part that is ready gets calls in proportion to its weight; gRPC's `weighted_target_experimental`.
  ///
  /// ```swift
  /// let policy = BalancingPolicy.weightedTarget([
  ///   .init("stable", weight: 99, .roundRobin), .init("canary", weight: 1, .roundRobin),
  /// ])
  /// ```
  ///
  /// A part that is idle, because its policy connects with the first call or its server has closed the connection, keeps its
  /// share: the first call for it has it connect, and goes to another part meanwhile. In gRPC such a part connects at once.
  ///
  /// While no part is ready, calls wait if one is connecting. Otherwise they fail, with the name of a part.
  ///
  /// Which endpoint belongs to which part is the same as with ``priority(_:)``.
  ///
  /// - Parameter targets: Of targets with the same name, only the first gets endpoints.
  public static func weightedTarget(_ targets: [WeightedChild]) -> BalancingPolicy {
    BalancingPolicy(.weightedTarget(targets))
  }

  /// The caller's own zone gets the calls as long as enough of its endpoints work; see ``ZoneAware`` for the rule.
  ///
  /// The own zone is ``ChannelConfiguration/zone``. The zone of an endpoint is ``Endpoint/zone``.
  ///
  /// - Parameters:
  ///   - settings: When calls leave the own zone.
  ///   - base: Spreads the calls of each zone over its endpoints.
  public static func zoneAware(
    _ settings: ZoneAware = .defaults,
    of base: BalancingPolicy
  ) -> BalancingPolicy {
    BalancingPolicy(.zoneAware(settings, of: base))
  }
}
