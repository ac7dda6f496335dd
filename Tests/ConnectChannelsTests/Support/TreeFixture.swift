import ConnectChannels

/// A balancer in virtual time over endpoints whose states a test sets.
struct TreeFixture {
  private var balancer: any LoadBalancer
  private(set) var endpoints: [BalancedEndpoint] = []
  private let zone: String?
  private var random: SeededRandom
  private(set) var now = Duration.zero
  private(set) var decision: BalancerDecision
  /// What was to be probed since the last look, in its order.
  var probed: [Int] = []
  /// When the balancer wants to be asked again.
  private var due: Duration?

  /// - Parameter parts: The first element of the path, or the zone, of some endpoints each.
  init(
    _ policy: BalancingPolicy,
    _ parts: KeyValuePairs<String, Int>,
    paths: Bool = false,
    zone: String? = nil,
    seed: UInt64 = 1,
    weight: (String) -> UInt32 = { _ in 1 }
  ) {
    var list: [Endpoint] = []
    for (name, count) in parts {
      for _ in 0..<count {
        var endpoint = BalancedEndpoint.number(list.count, .idle, weight: weight(name)).endpoint
        if paths { endpoint.path = name.split(separator: "/").map(String.init) } else { endpoint.zone = name }
        list.append(endpoint)
      }
    }
    self.init(policy, list, zone: zone, seed: seed)
  }

  init(_ policy: BalancingPolicy, _ list: [Endpoint], zone: String? = nil, seed: UInt64 = 1) {
    self.zone = zone
    self.random = SeededRandom(seed: seed)
    self.balancer = policy.makeBalancer(random: &self.random)
    self.decision = BalancerDecision(state: .idle, picker: ConstantPicker(.wait))
    self.resolve(list)
  }

  /// The policy is another one, with the same endpoints.
  mutating func follow(_ policy: BalancingPolicy) {
    self.balancer = policy.makeBalancer(random: &self.random, after: self.balancer)
    self.resolve(self.endpoints.map(\.endpoint))
  }

  mutating func resolve(_ list: [Endpoint]) {
    let known = Dictionary(
      self.endpoints.map { ($0.endpoint.identity, $0) },
      uniquingKeysWith: { first, _ in first }
    )
    var next = (self.endpoints.map(\.id.slot).max() ?? -1) + 1
    self.endpoints = self.balancer.select(list, random: &self.random).map { endpoint in
      if let old = known[endpoint.identity] { return old }
      next += 1
      return BalancedEndpoint(id: EndpointID(next - 1), endpoint: endpoint)
    }
    self.update()
  }

  /// Does what the balancer wants at once: endpoints that should connect are connecting.
  mutating func update() {
    for _ in 0..<10 {
      var context = BalancerContext(
        now: self.now,
        random: self.random,
        loads: EndpointLoads(),
        zone: self.zone
      )
      self.decision = self.balancer.update(self.endpoints, in: &context)
      self.random = context.random
      self.due = self.decision.updateAfter.map { self.now + $0 }
      self.probed += self.decision.probe.map(\.slot)
      var hasChanged = false
      for index in self.endpoints.indices
      where self.endpoints[index].state == .idle && self.decision.connect.contains(self.endpoints[index].id) {
        self.endpoints[index].state = .connecting
        hasChanged = true
      }
      if !hasChanged { return }
    }
  }

  mutating func set(_ indices: some Sequence<Int>, _ state: ConnectivityState) {
    for index in indices {
      self.endpoints[index].state = state
      self.endpoints[index].lastError = state == .transientFailure ? "refused" : nil
    }
    self.update()
  }

  /// Endpoints that are connecting are ready.
  mutating func connectAll() {
    for _ in 0..<5 {
      self.set(self.endpoints.indices.filter { self.endpoints[$0].state == .connecting }, .ready)
    }
  }

  mutating func advance(by duration: Duration) {
    let end = self.now + duration
    while let due = self.due, due <= end {
      self.now = max(due, self.now + .nanoseconds(1))
      self.update()
    }
    self.now = end
  }

  func isResting(_ index: Int) -> Bool { self.decision.rest.contains(self.endpoints[index].id) }

  /// How many of `count` calls go to each part; those that get no endpoint are under "".
  func calls(_ count: Int, seed: UInt64 = 3) -> [String: Int] {
    var random = SeededRandom(seed: seed)
    var counts: [String: Int] = [:]
    let parts = Dictionary(
      uniqueKeysWithValues: self.endpoints.map { ($0.id, $0.endpoint.path.first ?? $0.endpoint.zone ?? "-") }
    )
    for _ in 0..<count {
      let hash = random.next()
      if case .endpoint(let id, _, _) = self.decision.picker.pick(seed: hash, hash: hash) {
        counts[parts[id] ?? "?", default: 0] += 1
      } else {
        counts["", default: 0] += 1
      }
    }
    return counts
  }

  /// What the next call gets.
  func pick() -> PickResult { self.decision.picker.pick() }

  var failure: String? { if case .fail(let reason) = self.pick() { reason } else { nil } }
}
