/// Which balancer a channel uses. Each channel makes its own balancer of it.
///
/// ```swift
/// let policy = BalancingPolicy.outlierDetection(.defaults, of: .roundRobin)
/// ```
public struct BalancingPolicy: Sendable, Hashable {
  indirect enum Kind: Sendable, Hashable {
    case pickFirst(shuffles: Bool)
    case roundRobin
    case leastRequest(choices: Int)
    case weightedRoundRobin(WeightedRoundRobin)
    case ringHash(RingHash)
    case randomSubset(of: BalancingPolicy, size: Int)
    case outlierDetection(OutlierDetection, of: BalancingPolicy)
    case priority([Child])
    case weightedTarget([WeightedChild])
    case zoneAware(ZoneAware, of: BalancingPolicy)
    case limited(CallLimits, of: BalancingPolicy)
    case custom(CustomPolicy)
  }

  let kind: Kind

  init(_ kind: Kind) {
    self.kind = kind
  }

  /// A custom policy. It equals only its copies.
  ///
  /// - Parameters:
  ///   - name: What ``name`` and ``ChannelSnapshot/policy`` say. It need not be unique.
  ///   - makeBalancer: Called for each channel and event loop.
  public init(name: String, makeBalancer: @escaping @Sendable () -> any LoadBalancer) {
    self.kind = .custom(CustomPolicy(name: name, makeBalancer: makeBalancer))
  }

  /// A balancer of this policy for one channel.
  ///
  /// - Parameter random: Begins with the same seed for each event loop of a channel, so that all of them use the same
  ///   random subset.
  public func makeBalancer(random: inout SeededRandom) -> any LoadBalancer {
    self.makeBalancer(random: &random, at: TreePlace())
  }

  /// The same for a place in a tree of policies.
  func makeBalancer(random: inout SeededRandom, at place: TreePlace) -> any LoadBalancer {
    switch self.kind {
    case .pickFirst(let shuffles): PickFirstBalancer(shuffles: shuffles, at: place)
    case .roundRobin: RoundRobinBalancer()
    case .leastRequest(let choices): LeastRequestBalancer(choices: choices)
    case .weightedRoundRobin(let configuration): WeightedRoundRobinBalancer(configuration)
    case .ringHash(let configuration): RingHashBalancer(configuration)
    case .randomSubset(let base, let size):
      RandomSubset(base.makeBalancer(random: &random, at: place), size: size, seed: random.next())
    // The channel runs the detector, over the endpoints that the balancer has selected.
    case .outlierDetection(_, let base): base.makeBalancer(random: &random, at: place)
    case .priority(let children): PriorityBalancer(children, at: place, seed: random.next())
    case .weightedTarget(let targets): WeightedTargetBalancer(targets, at: place, seed: random.next())
    case .zoneAware(let settings, let base):
      ZoneAwareBalancer(settings, of: base, at: place, seed: random.next())
    case .limited(let limits, let base):
      LimitedBalancer(limits, of: base.makeBalancer(random: &random, at: place), base)
    case .custom(let policy): policy.makeBalancer()
    }
  }
}

extension BalancingPolicy: CustomStringConvertible {
  /// gRPC's name of the policy, or the user's.
  public var name: String {
    switch self.kind {
    case .pickFirst: "pick_first"
    case .roundRobin: "round_robin"
    case .leastRequest: "least_request"
    case .weightedRoundRobin: "weighted_round_robin"
    case .ringHash: "ring_hash"
    case .randomSubset: "random_subsetting"
    case .outlierDetection: "outlier_detection"
    case .priority: "priority"
    case .weightedTarget: "weighted_target"
    case .zoneAware: "zone_aware"
    case .limited: "limited"
    case .custom(let policy): policy.name
    }
  }

  public var description: String { self.name }
}

// MARK: - Policies

extension BalancingPolicy {
  /// All calls go to one endpoint: the first that a connection was made to (gRFC A61, A62).
  public static var pickFirst: BalancingPolicy { .pickFirst(shuffles: false) }

  /// gRPC's `pick_first`: all calls go to the first endpoint that a connection was made to.
  ///
  /// - Parameter shuffles: Whether each client tries the endpoints in its own random order.
  public static func pickFirst(shuffles: Bool) -> BalancingPolicy {
    BalancingPolicy(.pickFirst(shuffles: shuffles))
  }

  /// Each endpoint that is ready gets the same number of calls, in turn.
  public static var roundRobin: BalancingPolicy { BalancingPolicy(.roundRobin) }

  /// Each call goes to the endpoint with the fewest calls in flight among a few random ones (gRFC A48).
  ///
  /// - Parameter choices: How many endpoints are compared, brought into the range from 2 to 10.
  public static func leastRequest(choices: Int = 2) -> BalancingPolicy {
    BalancingPolicy(.leastRequest(choices: LeastRequestBalancer(choices: choices).choices))
  }

  /// Each endpoint that is ready gets calls in proportion to its weight (gRFC A58).
  public static func weightedRoundRobin(_ configuration: WeightedRoundRobin = .defaults) -> BalancingPolicy {
    BalancingPolicy(.weightedRoundRobin(configuration))
  }

  /// Calls with the same key go to the same endpoint (gRFC A42, A76).
  public static func ringHash(_ configuration: RingHash = .defaults) -> BalancingPolicy {
    BalancingPolicy(.ringHash(configuration))
  }

  /// Another policy over some random endpoints, for large fleets (gRFC A68).
  ///
  /// - Parameters:
  ///   - base: Spreads the calls over the endpoints that are kept.
  ///   - size: How many endpoints are kept: at least 1.
  public static func randomSubset(of base: BalancingPolicy, size: Int = 20) -> BalancingPolicy {
    BalancingPolicy(.randomSubset(of: base, size: max(1, size)))
  }

  /// Another policy, without the endpoints that fail more than others (gRFC A50). If such policies are nested, the
  /// outermost settings count. In a tree, each part that has such a policy compares its own endpoints, by its own settings.
  public static func outlierDetection(
    _ settings: OutlierDetection,
    of base: BalancingPolicy
  ) -> BalancingPolicy {
    BalancingPolicy(.outlierDetection(settings, of: base))
  }

  /// Another policy, which gets the calls that the limits let pass (gRFC A27, A32): first the drops, then the limit of calls in
  /// flight. The calls are counted in ``CallLimits/statistics``.
  public static func limited(_ limits: CallLimits, of base: BalancingPolicy) -> BalancingPolicy {
    BalancingPolicy(.limited(limits, of: base))
  }
}
