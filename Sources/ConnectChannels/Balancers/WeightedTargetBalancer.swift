/// Each part that is ready gets calls in proportion to its weight: the rules are those of gRPC's
/// `weighted_target_experimental`.
struct WeightedTargetBalancer: SuccessorBalancer {
  private var names: ChildNames
  private let weights: [UInt32]
  private var children: [BalancerChild]
  /// A part that has failed counts as failing until it is ready again.
  private var states: [ConnectivityState]
  private var picker: SharePicker?

  /// - Parameter seed: The same for each event loop of a channel.
  init(_ targets: [BalancingPolicy.WeightedChild], at place: TreePlace, seed: UInt64) {
    self.names = ChildNames(targets.map(\.name), at: place)
    self.weights = targets.map(\.weight)
    self.states = targets.map { _ in .idle }
    var seeds = SeededRandom(seed: seed)
    self.children = targets.map { target in
      BalancerChild(target.name, target.policy, at: place.child(target.name), seed: seeds.next())
    }
  }

  mutating func succeed(_ earlier: WeightedTargetBalancer) {
    let known = Dictionary(zip(earlier.children.map(\.name), 0...), uniquingKeysWith: { first, _ in first })
    for index in self.children.indices {
      guard let other = known[self.children[index].name] else { continue }
      self.children[index].succeed(earlier.children[other])
      self.states[index] = earlier.states[other]
    }
    self.picker = earlier.picker
  }

  mutating func select(_ endpoints: [Endpoint], random: inout SeededRandom) -> [Endpoint] {
    var selection: [Endpoint] = []
    for (index, group) in self.names.groupSelected(endpoints).enumerated() {
      selection += self.children[index].select(group, random: &random)
    }
    return selection
  }

  mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    let groups = self.names.group(endpoints)
    for (index, group) in groups.enumerated() {
      if group.isEmpty || self.weights[index] == 0 {
        self.children[index].stop()
        self.children[index].count(group)
        self.states[index] = .transientFailure
      } else {
        let isNew = !self.children[index].isStarted
        let state = self.children[index].update(group, in: &context).state
        if isNew || self.states[index] != .transientFailure || state == .ready { self.states[index] = state }
      }
    }
    let state = StateCounts(self.states).aggregate
    // An idle target connects for the first call that is picked for it. Nothing else would wake it while others are ready.
    let chosen = self.children.indices.filter { index in
      guard self.children[index].isStarted else { return false }
      return self.states[index] == state || state == .ready && self.states[index] == .idle
    }
    var decision = BalancerDecision(state: state, picker: self.picker(for: chosen, state, &context.random))
    let sum = chosen.reduce(0) { $0 + Double(self.weights[$1]) }
    for (index, group) in groups.enumerated() {
      let isUsed = state == .ready && chosen.contains(index)
      decision.include(
        self.children[index],
        group,
        share: isUsed ? Double(self.weights[index]) / sum : 0
      )
    }
    decision.rest += self.names.strays(in: endpoints)
    return decision
  }

  /// A picker over the parts that get calls.
  private mutating func picker(
    for chosen: [Int],
    _ state: ConnectivityState,
    _ random: inout SeededRandom
  ) -> any Picker {
    if state == .connecting { return ConstantPicker(.wait) }
    let parts = chosen.compactMap { index -> SharePicker.Part? in
      let child = self.children[index]
      guard let picker = child.decision?.picker else { return nil }
      return SharePicker.Part(
        name: child.name,
        share: Double(self.weights[index]),
        picker: state == .ready ? picker : picker.naming("target \(child.name)")
      )
    }
    guard let first = parts.first else { return ConstantPicker(.fail(self.emptyReason)) }
    guard parts.count > 1 else { return first.picker }
    let picker = SharePicker(parts, after: self.picker, random: &random)
    self.picker = picker
    return picker
  }

  private var emptyReason: String {
    let isDrained = zip(self.children, self.weights).contains { $0.counts.endpoints > 0 && $1 == 0 }
    return isDrained
      ? "all targets with endpoints have the weight 0; give one of them a weight" : self.names.emptyReason
  }
}
