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
    /// Whether it may be idle because no call has needed it.
    let isLazy: Bool
    var wasReady = false
    /// Until when it counts as healthy though it is not ready.
    var trustedUntil: Duration?
  }

  /// In the order of the list.
  private var members: [Member] = []
  private let policy: BalancingPolicy
  private let depth: Int
  private(set) var healthyCount = 0
  /// How many endpoints count at all.
  private(set) var totalCount = 0
  /// When the next endpoint does not count as healthy any more, if it is not ready by then.
  private(set) var nextChange: Duration?

  /// - Parameter policy: That of the zone, at this depth of a tree.
  init(of policy: BalancingPolicy, depth: Int) {
    self.policy = policy
    self.depth = depth
  }

  /// - Parameter resting: The endpoints that the zone's policy does not need now, such as those of a later priority. They do not
  ///   connect, which says nothing of the zone.
  mutating func update(_ endpoints: [BalancedEndpoint], without resting: [EndpointID] = [], now: Duration) {
    var endpoints = endpoints
    if !resting.isEmpty {
      let resting = Set(resting)
      endpoints.removeAll { resting.contains($0.id) }
    }
    self.adjust(to: endpoints, now: now)
    self.totalCount = endpoints.count
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
    self.totalCount = 0
    self.nextChange = nil
  }

  /// Brings the members in line with the list.
  private mutating func adjust(to endpoints: [BalancedEndpoint], now: Duration) {
    if self.members.count == endpoints.count, zip(self.members, endpoints).allSatisfy({ $0.id == $1.id }) {
      return
    }
    // A balancer of a user may pass an endpoint on twice.
    let known = Dictionary(self.members.map { ($0.id, $0) }) { first, _ in first }
    self.members = endpoints.map { endpoint in
      if let member = known[endpoint.id] { return member }
      let isLazy = !self.policy.keepsConnected(endpoint.endpoint, depth: self.depth)
      return Member(id: endpoint.id, isLazy: isLazy, trustedUntil: now + Self.startTime)
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
      if state == .idle, self.members[index].isLazy { return true }
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
