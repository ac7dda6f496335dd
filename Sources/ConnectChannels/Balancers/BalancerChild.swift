/// A child of a balancer with children. It has a balancer for its part of the endpoints, and begins when it is first needed.
struct BalancerChild {
  /// How long a part that is not used any more keeps its connections (gRFC A56).
  static let keepTime = Duration.seconds(15 * 60)

  let name: String
  let policy: BalancingPolicy
  private let place: TreePlace
  private let seed: UInt64
  private var balancer: any LoadBalancer
  /// What the balancer has selected from, and with which random numbers.
  private var selected: (endpoints: [Endpoint], random: SeededRandom)?
  /// What the balancer has decided last; nil if the child is not in use.
  private(set) var decision: BalancerDecision?
  /// How many endpoints there were at the last update, and how many of them could take calls.
  private(set) var counts = (endpoints: 0, ready: 0)

  /// - Parameter seed: The same for each event loop of a channel, so that all use the same random subset.
  init(_ name: String, _ policy: BalancingPolicy, at place: TreePlace, seed: UInt64) {
    self.name = name
    self.policy = policy
    self.place = place
    self.seed = seed
    var random = SeededRandom(seed: seed)
    self.balancer = policy.makeBalancer(random: &random, at: place)
  }

  /// Goes on with what a child of the same name knew, whose policy may be another.
  mutating func succeed(_ earlier: BalancerChild) {
    if self.policy == earlier.policy, self.place == earlier.place {
      self = earlier
    } else {
      self.balancer = self.balancer.succeeding(earlier.balancer)
      self.decision = earlier.decision
      self.counts = earlier.counts
    }
  }

  var isStarted: Bool { self.decision != nil }

  /// The child's state; `idle` while it is not in use.
  var state: ConnectivityState { self.decision?.state ?? .idle }

  mutating func select(_ endpoints: [Endpoint], random: inout SeededRandom) -> [Endpoint] {
    self.selected = (endpoints, random)
    return self.balancer.select(endpoints, random: &random)
  }

  /// Counts the endpoints of a child that is not in use.
  mutating func count(_ endpoints: [BalancedEndpoint]) {
    self.counts = (endpoints.count, endpoints.reduce(0) { $0 + ($1.effectiveState == .ready ? 1 : 0) })
  }

  /// Asks the balancer. From now on the child is in use.
  @discardableResult
  mutating func update(_ endpoints: [BalancedEndpoint], in context: inout BalancerContext) -> BalancerDecision
  {
    self.count(endpoints)
    let decision = self.balancer.update(endpoints, in: &context)
    self.decision = decision
    return decision
  }

  /// The child is not in use any more. It begins as a new one when it is needed again.
  mutating func stop() {
    guard self.isStarted else { return }
    self.decision = nil
    var random = SeededRandom(seed: self.seed)
    self.balancer = self.policy.makeBalancer(random: &random, at: self.place)
    // Balancers may rely on having selected the endpoints. With the same numbers, the selection is the same.
    if var selected = self.selected { _ = self.balancer.select(selected.endpoints, random: &selected.random) }
  }

  /// What snapshots show.
  func part(share: Double) -> BalancerPart {
    BalancerPart(
      name: self.name,
      policy: self.policy.name,
      state: self.state,
      endpoints: self.counts.endpoints,
      ready: self.counts.ready,
      share: share,
      parts: self.decision?.parts ?? []
    )
  }
}

extension BalancerDecision {
  /// Takes over what a child wants for its endpoints. Endpoints of a child that is not in use rest.
  mutating func include(_ child: BalancerChild, _ endpoints: [BalancedEndpoint], share: Double) {
    self.parts.append(child.part(share: share))
    guard let decision = child.decision else {
      for endpoint in endpoints { self.rest.append(endpoint.id) }
      return
    }
    self.connect += decision.connect
    self.rest += decision.rest
    self.probe += decision.probe
    if let delay = decision.updateAfter { self.askAgain(after: delay) }
  }

  /// Brings the next update forward.
  mutating func askAgain(after delay: Duration) {
    let delay = max(delay, .milliseconds(1))
    self.updateAfter = min(self.updateAfter ?? delay, delay)
  }
}

extension Picker {
  /// The same picker, with the name of a part in front of the reason of calls that fail.
  func naming(_ part: String) -> any Picker {
    guard let constant = self as? ConstantPicker else { return NamedPicker(part: part, base: self) }
    guard case .fail(let reason) = constant.result else { return constant }
    return ConstantPicker(.fail("\(part): \(reason)"))
  }
}

private struct NamedPicker: Picker {
  let part: String
  let base: any Picker

  func pick(_ call: borrowing PickContext) -> PickResult {
    let result = self.base.pick(call)
    guard case .fail(let reason) = result else { return result }
    return .fail("\(self.part): \(reason)")
  }
}
