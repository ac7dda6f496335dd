/// How many endpoints of a zone are healthy, for ``ZoneAwareBalancer``.
///
/// An endpoint that connects counts as healthy for some time: for its first connection, or for one that takes the place of
/// another. Otherwise calls would leave the zone at each start, and whenever a server renews its connections.
struct ZoneHealth {
  /// How long an endpoint that was never tried counts as healthy.
  static let startTime = Duration.seconds(10)
  /// How long an endpoint that connects again counts as healthy.
  static let renewalTime = Duration.seconds(1)

  private struct Member {
    let id: EndpointID
    var wasReady = false
    /// Until when it counts as healthy though it is not ready.
    var trustedUntil: Duration?
  }

  /// In the order of the list.
  private var members: [Member] = []
  /// Whether endpoints may be idle because no call has needed them.
  private let areLazy: Bool
  private(set) var healthyCount = 0
  /// When the next endpoint does not count as healthy any more, if it is not ready by then.
  private(set) var nextChange: Duration?

  init(areLazy: Bool) {
    self.areLazy = areLazy
  }

  mutating func update(_ endpoints: [BalancedEndpoint], now: Duration) {
    self.adjust(to: endpoints, now: now)
    self.healthyCount = 0
    self.nextChange = nil
    for (index, endpoint) in endpoints.enumerated() {
      if self.isHealthy(index, endpoint.effectiveState, now: now) { self.healthyCount += 1 }
    }
  }

  /// The zone is not in use any more. Its endpoints are as good as new when it is used again.
  mutating func forget() {
    self.members = []
    self.healthyCount = 0
    self.nextChange = nil
  }

  /// Brings the members in line with the list.
  private mutating func adjust(to endpoints: [BalancedEndpoint], now: Duration) {
    if self.members.count == endpoints.count, zip(self.members, endpoints).allSatisfy({ $0.id == $1.id }) {
      return
    }
    let known = Dictionary(uniqueKeysWithValues: self.members.map { ($0.id, $0) })
    self.members = endpoints.map { endpoint in
      known[endpoint.id] ?? Member(id: endpoint.id, trustedUntil: now + Self.startTime)
    }
  }

  private mutating func isHealthy(_ index: Int, _ state: ConnectivityState, now: Duration) -> Bool {
    switch state {
    case .ready:
      self.members[index].wasReady = true
      self.members[index].trustedUntil = nil
      return true
    case .transientFailure, .shutdown:
      self.members[index].wasReady = false
      self.members[index].trustedUntil = nil
      return false
    case .idle, .connecting:
      if state == .idle, self.areLazy { return true }
      if self.members[index].wasReady {
        self.members[index].wasReady = false
        self.members[index].trustedUntil = now + Self.renewalTime
      }
      guard let end = self.members[index].trustedUntil, now < end else { return false }
      self.nextChange = min(self.nextChange ?? end, end)
      return true
    }
  }
}
