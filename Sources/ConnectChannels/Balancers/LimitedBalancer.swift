/// Keeps a part of the calls away from another balancer's servers, and counts the others: the rules are those of gRPC's
/// `xds_cluster_impl_experimental`.
struct LimitedBalancer: SuccessorBalancer {
  private let limits: CallLimits
  private let policy: BalancingPolicy
  private var base: any LoadBalancer
  /// By zone: what picks add to calls.
  private var additions: [String: PickAdditions] = [:]
  private let drops: [LimitedPicker.Drop]

  /// - Parameter policy: That of `base`.
  init(_ limits: CallLimits, of base: any LoadBalancer, _ policy: BalancingPolicy) {
    self.limits = limits
    self.policy = policy
    self.base = base
    self.drops = limits.drops.map { drop in
      LimitedPicker.Drop(
        category: drop.category,
        perMillion: UInt64(drop.perMillion),
        counter: limits.statistics.dropCounter(of: drop.category)
      )
    }
  }

  mutating func succeed(_ earlier: LimitedBalancer) {
    self.base = self.policy == earlier.policy ? earlier.base : self.base.succeeding(earlier.base)
    if self.limits.statistics == earlier.limits.statistics { self.additions = earlier.additions }
  }

  mutating func select(_ endpoints: [Endpoint], random: inout SeededRandom) -> [Endpoint] {
    self.base.select(endpoints, random: &random)
  }

  mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    var decision = self.base.update(endpoints, in: &context)
    if case .wait? = (decision.picker as? ConstantPicker)?.result, self.drops.isEmpty { return decision }
    decision.picker = LimitedPicker(
      decision.picker,
      self.limits,
      self.drops,
      additions: self.addAdditions(for: endpoints)
    )
    // No server is needed to drop all calls. A priority must not look for another one.
    if self.drops.contains(where: { $0.perMillion >= 1_000_000 }) { decision.state = .ready }
    return decision
  }

  /// By slot.
  private mutating func addAdditions(for endpoints: [BalancedEndpoint]) -> [PickAdditions?] {
    var slots: [PickAdditions?] = []
    var zones: [String: PickAdditions] = [:]
    // Endpoints of a zone mostly come one after the other.
    var last: (zone: String, additions: PickAdditions)?
    for endpoint in endpoints {
      let (zone, slot) = (endpoint.endpoint.zone ?? "", endpoint.id.slot)
      let additions: PickAdditions
      if let last, last.zone == zone {
        additions = last.additions
      } else {
        additions = zones[zone] ?? self.additions[zone] ?? self.makeAdditions(for: zone)
        zones[zone] = additions
        last = (zone, additions)
      }
      while slots.count <= slot { slots.append(nil) }
      slots[slot] = additions
    }
    self.additions = zones
    return slots
  }

  private func makeAdditions(for zone: String) -> PickAdditions {
    let statistics = self.limits.statistics
    return PickAdditions(
      PickAdditions.Counting(statistics: statistics, counter: statistics.counter(of: zone))
    )
  }
}

/// Drops calls, and has the others counted.
final class LimitedPicker: Picker {
  struct Drop {
    let category: String
    let perMillion: UInt64
    let counter: DropCounter
  }

  private let base: any Picker
  /// The endpoint of all calls that there is room for, and what is added to them; nil if calls differ.
  let constant: (EndpointID, PickAdditions?)?
  private let drops: [Drop]
  private let maximumCalls: Int
  private let statistics: CallStatistics
  /// By slot of the endpoint.
  private let additions: [PickAdditions?]

  init(_ base: any Picker, _ limits: CallLimits, _ drops: [Drop], additions: [PickAdditions?]) {
    self.base = base
    self.drops = drops
    self.maximumCalls = limits.maximumCalls.map { Int($0) } ?? .max
    self.statistics = limits.statistics
    self.additions = additions
    self.constant = (base as? ConstantPicker)?.endpoint.flatMap { id, own in
      guard drops.isEmpty, own == nil, id.slot < additions.count else { return nil }
      return (id, additions[id.slot])
    }
  }

  /// Whether another call may be in flight.
  var hasRoom: Bool { self.statistics.inFlight.count < self.maximumCalls }

  func pick(_ call: borrowing PickContext) -> PickResult {
    if !self.drops.isEmpty, let drop = self.drop(of: call) {
      drop.counter.add()
      return .drop(category: drop.category, cluster: self.statistics.cluster)
    }
    if !self.hasRoom {
      self.statistics.refuse()
      return .drop(category: CallLimits.circuitBreaking, cluster: self.statistics.cluster)
    }
    let result = self.base.pick(call)
    guard case .endpoint(let id, let other, let own) = result, id.slot < self.additions.count,
      let additions = self.additions[id.slot]
    else { return result }
    guard let own else { return .endpoint(id, connect: other, additions: additions) }
    // A policy of the program adds something, too.
    guard own.counting == nil, let counting = additions.counting else { return result }
    return .endpoint(id, connect: other, additions: PickAdditions(counting, beside: own))
  }

  /// The reason for which a call is dropped, if it is. The same when the call is picked again.
  private func drop(of call: borrowing PickContext) -> Drop? {
    // Other numbers than those that the servers are chosen by.
    var random = SeededRandom(seed: call.seed ^ 0x6472_6f70_7065_64)
    for drop in self.drops {
      let number = random.next().multipliedFullWidth(by: 1_000_000).high
      if number < drop.perMillion { return drop }
    }
    return nil
  }
}
