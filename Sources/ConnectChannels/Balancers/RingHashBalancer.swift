/// Calls with the same key go to the same endpoint, and few keys move when the endpoints change: consistent hashing
/// (gRFC A42, A61, A76, A117).
///
/// Endpoints connect when the first call for them comes. A call whose endpoint cannot be reached goes to the next one
/// on the ring.
package struct RingHashBalancer: LoadBalancer {
  package let configuration: BalancingPolicy.RingHash
  private var members: [Endpoint] = []
  private var ring: HashRing?

  package init(_ configuration: BalancingPolicy.RingHash = .defaults) {
    self.configuration = configuration
  }

  package mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    guard !endpoints.isEmpty else { return .unready(EndpointSummary([])) }
    let ring = self.ring(for: endpoints)
    var counts = StateCounts()
    var states: [ConnectivityState] = []
    states.reserveCapacity(endpoints.count)
    for endpoint in endpoints {
      let state = endpoint.effectiveState
      counts.add(state)
      states.append(state)
    }
    var state = Self.aggregate(counts)
    var connect: [EndpointID] = []
    // No calls may come while the policy fails. One attempt is enough to find out that it works again.
    if state == .connecting || state == .transientFailure || state == .idle && context.wantsConnection,
      counts.connecting == 0, let index = Self.randomIdle(states, counts, &context.random)
    {
      connect.append(endpoints[index].id)
      if state == .idle { state = .connecting }
    }
    let failure = counts.total == counts.transientFailure ? EndpointSummary(endpoints).failureMessage : ""
    let picker = RingHashPicker(
      ring,
      endpoints: endpoints.map(\.id),
      states: states,
      counts: counts,
      key: self.configuration.key,
      failure: failure
    )
    return BalancerDecision(state: state, picker: picker, connect: connect)
  }

  /// The ring changes with the list only, not with states.
  private mutating func ring(for endpoints: [BalancedEndpoint]) -> HashRing {
    if let ring = self.ring, endpoints.count == self.members.count,
      zip(endpoints, self.members).allSatisfy({ $0.endpoint == $1 })
    {
      return ring
    }
    self.members = endpoints.map(\.endpoint)
    let ring = HashRing(
      self.members.map { ($0.hashKey, $0.weight) },
      minimum: self.configuration.minimumRingSize,
      maximum: self.configuration.maximumRingSize
    )
    self.ring = ring
    return ring
  }

  /// Unlike other policies, two unreachable endpoints count as a failure of all, since few of the others may have been
  /// tried (A42).
  static func aggregate(_ counts: StateCounts) -> ConnectivityState {
    if counts.ready > 0 { return .ready }
    if counts.transientFailure >= 2 { return .transientFailure }
    if counts.connecting > 0 { return .connecting }
    if counts.transientFailure == 1, counts.total > 1 { return .connecting }
    return counts.idle > 0 ? .idle : .transientFailure
  }

  private static func randomIdle(
    _ states: [ConnectivityState],
    _ counts: StateCounts,
    _ random: inout SeededRandom
  ) -> Int? {
    guard counts.idle > 0 else { return nil }
    var skipped = random.index(below: counts.idle)
    for (index, state) in states.enumerated() where state == .idle {
      if skipped == 0 { return index }
      skipped -= 1
    }
    return nil
  }
}
