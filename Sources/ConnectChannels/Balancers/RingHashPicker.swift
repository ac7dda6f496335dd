final class RingHashPicker: Picker {
  private let ring: HashRing
  private let endpoints: [EndpointID]
  private let states: [ConnectivityState]
  private let counts: StateCounts
  private let key: BalancingPolicy.RingHash.Key
  private let failure: String

  init(
    _ ring: HashRing,
    endpoints: [EndpointID],
    states: [ConnectivityState],
    counts: StateCounts,
    key: BalancingPolicy.RingHash.Key,
    failure: String
  ) {
    self.ring = ring
    self.endpoints = endpoints
    self.states = states
    self.counts = counts
    self.key = key
    self.failure = failure
  }

  func pick(_ call: borrowing PickContext) -> PickResult {
    if self.counts.transientFailure == self.counts.total { return .fail(self.failure) }
    if let hash = self.hash(of: call) { return self.pick(startingAt: self.ring.index(for: hash)) }
    var random = call.generator
    return self.pickAnyReady(startingAt: self.ring.index(for: random.next()))
  }

  private func hash(of call: borrowing PickContext) -> UInt64? {
    switch self.key {
    case .call:
      return call.hash
    case .header(let name):
      guard let value = call.headers.value(of: name), !value.isEmpty else { return nil }
      return XXH64.hash(value)
    }
  }

  /// The first endpoint of the ring that has not failed decides (A61).
  private func pick(startingAt first: Int) -> PickResult {
    var index = first
    repeat {
      let owner = Int(self.ring.owners[index])
      switch self.states[owner] {
      case .ready: return .endpoint(self.endpoints[owner])
      case .idle: return .connect(self.endpoints[owner])
      case .connecting: return .wait
      case .transientFailure, .shutdown: break
      }
      index = index + 1 == self.ring.count ? 0 : index + 1
    } while index != first
    return self.noneOnRing
  }

  /// A random call does not wait while another endpoint is ready, but lets one more connect (A76).
  private func pickAnyReady(startingAt first: Int) -> PickResult {
    var connect: EndpointID?
    var index = first
    repeat {
      let owner = Int(self.ring.owners[index])
      switch self.states[owner] {
      case .ready: return .endpoint(self.endpoints[owner], connect: connect)
      case .idle:
        if connect == nil, self.counts.connecting == 0 { connect = self.endpoints[owner] }
      case .connecting, .transientFailure, .shutdown: break
      }
      index = index + 1 == self.ring.count ? 0 : index + 1
    } while index != first
    if let connect { return .connect(connect) }
    return self.counts.connecting > 0 ? .wait : self.noneOnRing
  }

  /// Happens only if the ring has fewer entries than endpoints, so that usable endpoints are not on it.
  private var noneOnRing: PickResult {
    .fail(
      "no endpoint on the ring is available; the ring has fewer entries than endpoints: raise maximumRingSize"
    )
  }
}
