/// Keeps calls in the caller's own zone as long as enough of its endpoints are healthy: see ``BalancingPolicy/ZoneAware``.
struct ZoneAwareBalancer: SuccessorBalancer {
  private let settings: BalancingPolicy.ZoneAware
  private let base: BalancingPolicy
  private let place: TreePlace
  private let seed: UInt64
  /// In the order of their first endpoints.
  private var zones: [Zone] = []
  /// Since when the other zones are not needed; nil if they are, or are not in use.
  private var leftTime: Duration?
  private var probes: EndpointProbes
  private var picker: SharePicker?

  /// - Parameter seed: The same for each event loop of a channel.
  init(
    _ settings: BalancingPolicy.ZoneAware,
    of base: BalancingPolicy,
    at place: TreePlace,
    seed: UInt64
  ) {
    self.settings = settings
    self.base = base
    self.place = place
    self.seed = seed
    self.probes = EndpointProbes(period: settings.probePeriod)
  }

  mutating func succeed(_ earlier: ZoneAwareBalancer) {
    guard self.base == earlier.base, self.place == earlier.place else { return }
    self.zones = earlier.zones
    self.leftTime = earlier.leftTime
    self.picker = earlier.picker
  }

  mutating func select(_ endpoints: [Endpoint], random: inout SeededRandom) -> [Endpoint] {
    self.arrange(endpoints) { $0 }
    var selection: [Endpoint] = []
    for (index, group) in self.group(endpoints, by: { $0 }).enumerated() {
      selection += self.zones[index].child.select(group, random: &random)
    }
    return selection
  }

  mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    self.arrange(endpoints) { $0.endpoint }
    let groups = self.group(endpoints) { $0.endpoint }
    let own = self.zones.firstIndex { $0.isOwn(context.zone) && self.settings.zoneWeights[$0.name] != 0 }
    for index in groups.indices {
      // The own zone is always in use, the others once they are needed.
      if index == own { self.zones[index].start() }
      self.zones[index].refresh(groups[index], in: &context)
    }
    let shares = self.levels(own: own)
    self.useOthers(own: own, areNeeded: shares.others > 0 || own == nil, groups, &context)
    let picks = self.picks(own: own, shares)
    var decision = self.decision(picks, own: own, endpoints, &context.random)
    for (index, group) in groups.enumerated() {
      decision.include(self.zones[index].child, group, share: decision.state == .ready ? picks[index] : 0)
      if let time = self.zones[index].health.nextChange { decision.askAgain(after: time - context.now) }
    }
    if let time = self.leftTime { decision.askAgain(after: time + BalancerChild.keepTime - context.now) }
    self.probe(own: own, picks, groups, now: context.now, &decision)
    return decision
  }

  // MARK: - Zones

  /// Makes zones that are new, and forgets those without endpoints.
  private mutating func arrange<Element>(_ elements: [Element], by endpoint: (Element) -> Endpoint) {
    var names: [String] = []
    var seen: Set<String> = []
    for element in elements {
      let name = endpoint(element).zone ?? ""
      if name != names.last, seen.insert(name).inserted { names.append(name) }
    }
    guard names != self.zones.map(\.name) else { return }
    var known = Dictionary(uniqueKeysWithValues: self.zones.map { ($0.name, $0) })
    self.zones = names.map { name in known.removeValue(forKey: name) ?? self.zone(name) }
  }

  private func zone(_ name: String) -> Zone {
    let child = BalancerChild(
      name.isEmpty ? "no zone" : name,
      self.base,
      at: self.place.zone(name),
      seed: XXH64.hash(name, seed: self.seed)
    )
    return Zone(name: name, child: child, health: ZoneHealth(of: self.base, depth: self.place.depth))
  }

  private func group<Element>(_ elements: [Element], by endpoint: (Element) -> Endpoint) -> [[Element]] {
    let indices = Dictionary(uniqueKeysWithValues: zip(self.zones.map(\.name), 0...))
    var groups: [[Element]] = Array(repeating: [], count: self.zones.count)
    var last = (name: "", index: indices[""])
    for element in elements {
      let name = endpoint(element).zone ?? ""
      if name != last.name { last = (name, indices[name]) }
      if let index = last.index { groups[index].append(element) }
    }
    return groups
  }

  // MARK: - Shares

  /// The shares of the own zone and of all others together.
  private func levels(own: Int?) -> (own: Double, others: Double) {
    var others = (healthy: 0, total: 0)
    for (index, zone) in self.zones.enumerated() where index != own && self.weight(of: zone) > 0 {
      others.healthy += zone.healthyCount
      others.total += zone.totalCount
    }
    let available = self.availability(others.healthy, of: others.total)
    guard let own else { return (0, available) }
    let first = self.availability(self.zones[own].healthyCount, of: self.zones[own].totalCount)
    let second = min(1 - first, available)
    guard first + second > 0 else { return (1, others.total > 0 ? 1 : 0) }
    return (first / (first + second), second / (first + second))
  }

  private func availability(_ healthy: Int, of total: Int) -> Double {
    guard total > 0 else { return 0 }
    let availability = self.settings.overprovisioning * Double(healthy) / Double(total)
    // 1.4 × 45 / 63 is 0.9999999999999999.
    return availability > 1 - 1e-9 ? 1 : availability
  }

  private func weight(of zone: Zone) -> Double {
    self.settings.zoneWeights[zone.name].map(Double.init) ?? zone.weight
  }

  /// The other zones connect when they are needed, and rest when they were not needed for long.
  private mutating func useOthers(
    own: Int?,
    areNeeded: Bool,
    _ groups: [[BalancedEndpoint]],
    _ context: inout BalancerContext
  ) {
    let others = self.zones.indices.filter { $0 != own }
    if areNeeded {
      self.leftTime = nil
      for index in others where !self.zones[index].isUsed && self.weight(of: self.zones[index]) > 0 {
        self.zones[index].start()
        self.zones[index].refresh(groups[index], in: &context)
      }
      return
    }
    guard others.contains(where: { self.zones[$0].isUsed }) else {
      self.leftTime = nil
      return
    }
    let leftTime = self.leftTime ?? context.now
    self.leftTime = leftTime
    guard context.now >= leftTime + BalancerChild.keepTime else { return }
    self.leftTime = nil
    for index in others { self.zones[index].stop() }
  }

  /// The share of calls that each zone gets; all are 0 if no zone is ready.
  ///
  /// A zone that is idle connects for the first call that is picked for it. Nothing else would wake it while others are ready.
  private func picks(own: Int?, _ shares: (own: Double, others: Double)) -> [Double] {
    guard self.zones.contains(where: { $0.child.isStarted && $0.child.state == .ready }) else {
      return self.zones.map { _ in 0 }
    }
    var picks = self.zones.map { zone -> Double in
      guard zone.canBePicked else { return 0 }
      return self.weight(of: zone) * self.availability(zone.healthyCount, of: zone.totalCount)
    }
    if let own { picks[own] = 0 }
    let sum = picks.reduce(0, +)
    var (first, second) = shares
    if let own, self.zones[own].canBePicked {
      if sum == 0 { (first, second) = (1, 0) }
    } else {
      (first, second) = (0, sum > 0 ? 1 : 0)
    }
    if sum > 0 { for index in picks.indices { picks[index] *= second / sum } }
    if let own { picks[own] = first }
    return picks
  }

  // MARK: - Decisions

  private mutating func decision(
    _ picks: [Double],
    own: Int?,
    _ endpoints: [BalancedEndpoint],
    _ random: inout SeededRandom
  ) -> BalancerDecision {
    let parts = zip(self.zones, picks).compactMap { zone, share -> SharePicker.Part? in
      guard share > 0, let picker = zone.child.decision?.picker else { return nil }
      return SharePicker.Part(name: zone.name, share: share, picker: picker)
    }
    if let first = parts.first {
      guard parts.count > 1 else { return BalancerDecision(state: .ready, picker: first.picker) }
      let picker = SharePicker(parts, after: self.picker, random: &random)
      self.picker = picker
      return BalancerDecision(state: .ready, picker: picker)
    }
    let used = self.zones.filter(\.child.isStarted)
    let state = StateCounts(used.map(\.child.state)).aggregate
    switch state {
    case .idle:
      // The own zone connects first.
      let first = own.map { self.zones[$0] }.flatMap { $0.child.state == .idle ? $0 : nil }
      let idle = first ?? used.first { $0.child.state == .idle }
      return BalancerDecision(state: .idle, picker: idle?.child.decision?.picker ?? ConstantPicker(.wait))
    case .connecting:
      return BalancerDecision(state: .connecting, picker: ConstantPicker(.wait))
    case .ready, .transientFailure, .shutdown:
      let reason = self.failure(endpoints)
      return BalancerDecision(state: .transientFailure, picker: ConstantPicker(.fail(reason)))
    }
  }

  private func failure(_ endpoints: [BalancedEndpoint]) -> String {
    if !self.zones.isEmpty, self.zones.allSatisfy({ self.weight(of: $0) == 0 }) {
      return "all zones with endpoints have the weight 0; give one of them a weight"
    }
    return EndpointSummary(endpoints).failureMessage
  }

  /// Tries failed endpoints of the own zone while others have its calls.
  private mutating func probe(
    own: Int?,
    _ picks: [Double],
    _ groups: [[BalancedEndpoint]],
    now: Duration,
    _ decision: inout BalancerDecision
  ) {
    guard let own, decision.state == .ready else { return self.probes.stop() }
    guard picks[own] < 1 else {
      decision.probe += self.probes.end(groups[own], now: now)
      return
    }
    decision.probe += self.probes.update(groups[own], now: now)
    if let delay = self.probes.delay(now: now) { decision.askAgain(after: delay) }
  }
}

extension ZoneAwareBalancer {
  private struct Zone {
    /// Empty for endpoints without a zone.
    let name: String
    var child: BalancerChild
    var health: ZoneHealth
    /// The sum of the weights of the endpoints. One without a weight counts as 1.
    private(set) var weight = 0.0
    private(set) var isUsed = false

    init(name: String, child: BalancerChild, health: ZoneHealth) {
      self.name = name
      self.child = child
      self.health = health
    }

    func isOwn(_ zone: String?) -> Bool { !self.name.isEmpty && self.name == zone }

    /// How many endpoints may be able to take calls. Nothing is known of a zone that is not in use.
    var healthyCount: Int { self.isUsed ? self.health.healthyCount : self.child.counts.endpoints }

    /// How many endpoints could be healthy.
    var totalCount: Int { self.isUsed ? self.health.totalCount : self.child.counts.endpoints }

    /// Whether its picker knows what to do with a call.
    var canBePicked: Bool {
      self.child.isStarted && (self.child.state == .ready || self.child.state == .idle)
    }

    mutating func start() { self.isUsed = true }

    mutating func stop() {
      self.isUsed = false
      self.child.stop()
      self.health.forget()
    }

    mutating func refresh(_ endpoints: [BalancedEndpoint], in context: inout BalancerContext) {
      self.weight = endpoints.reduce(0) { $0 + Double(max($1.endpoint.weight, 1)) }
      guard self.isUsed else { return self.child.count(endpoints) }
      let rest = self.child.update(endpoints, in: &context).rest
      self.health.update(endpoints, without: rest, now: context.now)
    }
  }
}
