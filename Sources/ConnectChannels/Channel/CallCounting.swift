/// Who counts the calls of an endpoint. Confined to the channel's executor.
struct CallCounting {
  let calls: EndpointCalls
  /// Whether the policy counts calls.
  var isOn = false {
    didSet { self.tracker = nil }
  }
  /// What has counted the last call, and counts all of the same additions. Nil if nothing did, or calls need more than that.
  private(set) var tracker: CallTracker?

  init(_ calls: EndpointCalls) {
    self.calls = calls
  }

  /// The endpoint may be in another zone.
  mutating func forgetTracker() { self.tracker = nil }

  /// What counts a call; nil if nobody wants to know of it.
  mutating func makeTracker(
    for additions: PickAdditions?,
    to endpoint: Endpoint,
    at address: EndpointAddress
  ) -> CallTracker? {
    let counting = additions?.counting
    guard counting != nil || self.isOn else { return nil }
    // Servers of several zones may be one endpoint.
    let counter = counting.map { counting in
      endpoint.zones == nil
        ? counting.counter : counting.statistics.counter(of: endpoint.zone(at: address) ?? "")
    }
    let tracker = CallTracker(self.isOn ? self.calls : nil, counter, additions)
    let isForAll = endpoint.zones == nil && additions?.metadata.isEmpty ?? true
    self.tracker = isForAll ? tracker : nil
    return tracker
  }
}
