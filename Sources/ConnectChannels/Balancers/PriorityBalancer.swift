/// All calls go to the first part that works (gRFC A27, A56): the rules are those of gRPC's `priority_experimental`.
///
/// Unlike gRPC, a part that has failed is probed while calls go to a later one, so that they come back soon.
struct PriorityBalancer: SuccessorBalancer {
  /// How long a part may take to become ready before the next one is used.
  static let failoverTime = Duration.seconds(10)
  /// How often an endpoint of a part that has failed is probed.
  static let probePeriod = Duration.milliseconds(500)

  private var names: ChildNames
  private var children: [Member]

  /// - Parameter seed: The same for each event loop of a channel.
  init(_ children: [BalancingPolicy.Child], at place: TreePlace, seed: UInt64) {
    self.names = ChildNames(children.map(\.name), at: place)
    var seeds = SeededRandom(seed: seed)
    self.children = children.map { child in
      Member(BalancerChild(child.name, child.policy, at: place.child(child.name), seed: seeds.next()))
    }
  }

  mutating func succeed(_ earlier: PriorityBalancer) {
    let known = Dictionary(
      earlier.children.map { ($0.child.name, $0) },
      uniquingKeysWith: { first, _ in first }
    )
    for index in self.children.indices {
      if let member = known[self.children[index].child.name] { self.children[index].succeed(member) }
    }
  }

  mutating func select(_ endpoints: [Endpoint], random: inout SeededRandom) -> [Endpoint] {
    var selection: [Endpoint] = []
    for (index, group) in self.names.groupSelected(endpoints).enumerated() {
      selection += self.children[index].child.select(group, random: &random)
    }
    return selection
  }

  mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    let groups = self.names.group(endpoints)
    for index in groups.indices { self.children[index].refresh(groups[index], in: &context) }
    let current = self.choose(groups, &context)
    var decision = self.decision(of: current)
    for (index, group) in groups.enumerated() {
      decision.include(self.children[index].child, group, share: index == current ? 1 : 0)
      // Only while others serve the calls: otherwise the backoff protects servers that all clients wait for.
      if decision.state == .ready, index <= current ?? -1, self.children[index].child.isStarted {
        decision.probe += self.children[index].probe(group, isMissed: index != current, now: context.now)
      } else {
        self.children[index].stopProbes()
      }
      if let delay = self.children[index].delay(now: context.now) { decision.askAgain(after: delay) }
    }
    decision.rest += self.names.strays(in: endpoints)
    return decision
  }

  /// Chooses the child that gets the calls, and starts those that are needed for that; nil if none has endpoints.
  private mutating func choose(_ groups: [[BalancedEndpoint]], _ context: inout BalancerContext) -> Int? {
    let usable = groups.indices.filter { !groups[$0].isEmpty }
    for index in usable {
      self.children[index].need(groups[index], in: &context)
      switch self.children[index].child.state {
      case .ready, .idle:
        for lower in usable where lower > index { self.children[lower].leave(now: context.now) }
        for higher in 0..<index where groups[higher].isEmpty { self.children[higher].passOver() }
        return index
      case .connecting where self.children[index].mayBecomeReady(now: context.now):
        return index
      case .connecting, .transientFailure, .shutdown:
        break
      }
    }
    return usable.first { self.children[$0].child.state == .connecting } ?? usable.last
  }

  private func decision(of current: Int?) -> BalancerDecision {
    guard let current, let decision = self.children[current].child.decision else {
      return BalancerDecision(
        state: .transientFailure,
        picker: ConstantPicker(.fail(self.names.emptyReason))
      )
    }
    guard decision.state != .ready else {
      return BalancerDecision(state: .ready, picker: decision.picker)
    }
    let name = self.children[current].child.name
    return BalancerDecision(state: decision.state, picker: decision.picker.naming("priority \(name)"))
  }
}

extension PriorityBalancer {
  /// A child, and since when it is what it is.
  private struct Member {
    var child: BalancerChild
    /// Until when calls wait for the child while it connects.
    private var failoverTime: Duration?
    /// Whether the child was ready or idle since it has failed last: then it has time to connect.
    private var wasUsable = false
    /// Whether a later child was used because this one had no endpoints. That counts as a failure: calls stay there until this
    /// child is ready.
    private var wasEmpty = false
    /// Since when a better child serves the calls.
    private var leftTime: Duration?
    private var probes = EndpointProbes(period: PriorityBalancer.probePeriod)

    init(_ child: BalancerChild) {
      self.child = child
    }

    mutating func succeed(_ earlier: Member) {
      var successor = earlier
      successor.child = self.child
      successor.child.succeed(earlier.child)
      self = successor
    }

    /// Tells the child of changes, if it is in use.
    mutating func refresh(_ endpoints: [BalancedEndpoint], in context: inout BalancerContext) {
      let isOver = self.leftTime.map { context.now >= $0 + BalancerChild.keepTime } ?? false
      if endpoints.isEmpty || isOver { self.stop() }
      guard self.child.isStarted else { return self.child.count(endpoints) }
      self.child.update(endpoints, in: &context)
      self.stateMayHaveChanged(now: context.now)
    }

    private mutating func stop() {
      self.child.stop()
      self.failoverTime = nil
      self.leftTime = nil
      self.wasUsable = false
    }

    /// The child, or a later one, may get calls.
    mutating func need(_ endpoints: [BalancedEndpoint], in context: inout BalancerContext) {
      self.leftTime = nil
      guard !self.child.isStarted else { return }
      if !self.wasEmpty { self.failoverTime = context.now + PriorityBalancer.failoverTime }
      self.wasEmpty = false
      self.child.update(endpoints, in: &context)
      self.stateMayHaveChanged(now: context.now)
    }

    /// A later child serves the calls since this one has no endpoints.
    mutating func passOver() { self.wasEmpty = true }

    /// A better child serves the calls.
    mutating func leave(now: Duration) {
      if self.child.isStarted, self.leftTime == nil { self.leftTime = now }
    }

    private mutating func stateMayHaveChanged(now: Duration) {
      switch self.child.state {
      case .ready, .idle:
        self.failoverTime = nil
        self.wasUsable = true
      case .connecting:
        if self.wasUsable { self.failoverTime = now + PriorityBalancer.failoverTime }
        self.wasUsable = false
      case .transientFailure, .shutdown:
        self.failoverTime = nil
        self.wasUsable = false
      }
    }

    /// Whether calls wait for the child while it connects.
    func mayBecomeReady(now: Duration) -> Bool { self.failoverTime.map { now < $0 } ?? false }

    /// The failed endpoints to try at once.
    ///
    /// - Parameter isMissed: Whether a later child has the calls; otherwise this one has them.
    mutating func probe(_ endpoints: [BalancedEndpoint], isMissed: Bool, now: Duration) -> [EndpointID] {
      isMissed ? self.probes.update(endpoints, now: now) : self.probes.end(endpoints, now: now)
    }

    mutating func stopProbes() { self.probes.stop() }

    /// When the child should be looked at again.
    func delay(now: Duration) -> Duration? {
      let times = [
        self.failoverTime.flatMap { $0 > now ? $0 - now : nil },
        self.leftTime.map { $0 + BalancerChild.keepTime - now },
        self.probes.delay(now: now),
      ]
      return times.compactMap { $0 }.min()
    }
  }
}
