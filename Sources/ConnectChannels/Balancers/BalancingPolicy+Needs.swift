/// What the channel has to do for a policy. In a tree of policies, endpoints differ in that.
extension BalancingPolicy {
  /// The policy that spreads calls over this endpoint and others: the innermost one; in a tree that the endpoint does not belong to,
  /// the last one above that.
  ///
  /// - Parameter depth: How many elements of the endpoint's path the policies above have used.
  private func leaf(for endpoint: Endpoint, depth: Int = 0) -> BalancingPolicy {
    switch self.kind {
    case .priority(let children):
      let name = endpoint.childName(at: depth)
      return children.first { $0.name == name }?.policy.leaf(for: endpoint, depth: depth + 1) ?? self
    case .weightedTarget(let targets):
      let name = endpoint.childName(at: depth)
      return targets.first { $0.name == name }?.policy.leaf(for: endpoint, depth: depth + 1) ?? self
    case .randomSubset(let base, _), .outlierDetection(_, let base), .zoneAware(_, let base),
      .limited(_, let base):
      return base.leaf(for: endpoint, depth: depth)
    case .pickFirst, .roundRobin, .leastRequest, .weightedRoundRobin, .ringHash, .custom:
      return self
    }
  }

  /// Whether endpoints stay connected while they have no calls.
  var keepsAllConnected: Bool {
    switch self.kind {
    case .pickFirst, .ringHash: false
    case .roundRobin, .leastRequest, .weightedRoundRobin, .custom: true
    case .randomSubset(let base, _), .outlierDetection(_, let base), .zoneAware(_, let base),
      .limited(_, let base):
      base.keepsAllConnected
    case .priority(let children): children.contains { $0.policy.keepsAllConnected }
    case .weightedTarget(let targets): targets.contains { $0.policy.keepsAllConnected }
    }
  }

  /// Whether the endpoint stays connected while it has no calls.
  ///
  /// - Parameter depth: How many elements of the endpoint's path the policies above have used.
  func keepsConnected(_ endpoint: Endpoint, depth: Int = 0) -> Bool {
    self.leaf(for: endpoint, depth: depth).keepsAllConnected
  }

  /// Whether it helps to know the health of endpoints, because calls can go to others.
  var usesHealth: Bool {
    switch self.kind {
    case .pickFirst: false
    case .roundRobin, .leastRequest, .weightedRoundRobin, .ringHash, .custom: true
    case .randomSubset(let base, _), .outlierDetection(_, let base), .limited(_, let base): base.usesHealth
    case .priority, .weightedTarget, .zoneAware: true
    }
  }

  /// Whether the channel has to follow the calls of each endpoint.
  var countsCalls: Bool {
    switch self.kind {
    case .pickFirst, .roundRobin, .ringHash: false
    case .leastRequest, .weightedRoundRobin, .custom, .outlierDetection: true
    case .randomSubset(let base, _), .zoneAware(_, let base), .limited(_, let base): base.countsCalls
    case .priority(let children): children.contains { $0.policy.countsCalls }
    case .weightedTarget(let targets): targets.contains { $0.policy.countsCalls }
    }
  }

  /// How often servers report their load on a separate stream; nil if they do not.
  var outOfBandPeriod: Duration? {
    switch self.kind {
    case .weightedRoundRobin(let configuration):
      configuration.source == .reports ? configuration.outOfBandPeriod : nil
    case .randomSubset(let base, _), .outlierDetection(_, let base), .zoneAware(_, let base),
      .limited(_, let base):
      base.outOfBandPeriod
    case .priority, .weightedTarget, .pickFirst, .roundRobin, .leastRequest, .ringHash, .custom: nil
    }
  }

  /// How often the endpoint's server reports its load on a separate stream; nil if it does not.
  func outOfBandPeriod(of endpoint: Endpoint) -> Duration? { self.leaf(for: endpoint).outOfBandPeriod }

  /// The settings of outlier detection: the outermost ones, or those of the first part of a tree that has some; nil if there are
  /// none.
  package var outlierDetection: OutlierDetection? {
    switch self.kind {
    case .outlierDetection(let settings, _): settings
    case .randomSubset(let base, _), .zoneAware(_, let base), .limited(_, let base): base.outlierDetection
    case .priority(let children): children.lazy.compactMap(\.policy.outlierDetection).first
    case .weightedTarget(let targets): targets.lazy.compactMap(\.policy.outlierDetection).first
    case .pickFirst, .roundRobin, .leastRequest, .weightedRoundRobin, .ringHash, .custom: nil
    }
  }
}
