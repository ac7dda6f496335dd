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
  /// Whether no endpoint was ready at the last update.
  private var hadNoneReady = false

  /// - Parameter period: Greater than 0.
  init(period: Duration) {
    self.period = period
  }

  /// The endpoints to try now.
  mutating func update(_ endpoints: [BalancedEndpoint], now: Duration) -> [EndpointID] {
    // An attempt to connect may take long where nothing answers.
    let list = endpoints.compactMap { endpoint in
      let hasFailed = endpoint.state == .transientFailure || endpoint.state == .connecting
      return hasFailed && !endpoint.isConnected ? endpoint.id : nil
    }
    let hasReady = endpoints.contains { $0.effectiveState == .ready }
    let hasReturned = self.hadNoneReady && hasReady
    self.hadNoneReady = !hasReady
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

  /// The part has the calls again, so that no endpoint is tried in turn. If its first one has just returned, the others are
  /// tried once more.
  mutating func end(_ endpoints: [BalancedEndpoint], now: Duration) -> [EndpointID] {
    let list = self.hadNoneReady ? self.update(endpoints, now: now) : []
    self.stop()
    return list
  }

  /// No endpoint is to be tried for now.
  mutating func stop() {
    self.next = nil
    self.hadNoneReady = false
  }

  /// When to ask again; nil for not at all.
  func delay(now: Duration) -> Duration? { self.next.map { $0 - now } }
}
