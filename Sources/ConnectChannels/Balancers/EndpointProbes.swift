/// When the failed endpoints of a part that should have the calls are tried again, without waiting for their backoff: one in each
/// period, in turn. Once one of them is ready again, the way there may work again, so that all are tried.
struct EndpointProbes {
  private let period: Duration
  /// When the next endpoint is due; nil while none has failed.
  private var next: Duration?
  /// When all were tried together last.
  private var lastOfAll: Duration?
  /// The endpoint that was tried last.
  private var last: EndpointID?
  /// The endpoints that had failed at the last update.
  private var failed: Set<EndpointID> = []

  /// - Parameter period: Greater than 0.
  init(period: Duration) {
    self.period = period
  }

  /// The endpoints to try now.
  mutating func update(_ endpoints: [BalancedEndpoint], now: Duration) -> [EndpointID] {
    // An attempt to connect may take long where nothing answers.
    let list = endpoints.compactMap { endpoint in
      endpoint.state == .transientFailure || endpoint.state == .connecting ? endpoint.id : nil
    }
    let hasReturned =
      !self.failed.isEmpty && endpoints.contains { $0.state == .ready && self.failed.contains($0.id) }
    self.failed = Set(list)
    guard !list.isEmpty else {
      self.next = nil
      return []
    }
    if hasReturned, self.lastOfAll.map({ now >= $0 + self.period }) ?? true {
      self.lastOfAll = now
      self.next = now + self.period
      return list
    }
    // What has failed just now was tried just now.
    guard let next = self.next else {
      self.next = now + self.period
      return []
    }
    guard now >= next else { return [] }
    self.next = now + self.period
    let position = list.firstIndex { $0 == self.last }.map { $0 + 1 } ?? 0
    let endpoint = list[position < list.count ? position : 0]
    self.last = endpoint
    return [endpoint]
  }

  /// No endpoint is to be tried for now.
  mutating func stop() {
    self.next = nil
    self.failed = []
  }

  /// When to ask again; nil for not at all.
  func delay(now: Duration) -> Duration? { self.next.map { $0 - now } }
}
