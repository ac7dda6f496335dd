internal import Connect
internal import Logging

/// The streams on which a channel watches an endpoint's server: for its health (gRFC A17), and for its load (gRFC A51).
/// Confined to the channel's executor.
final class EndpointWatches {
  weak var subchannel: Subchannel?
  private let shared: SharedEnvironment
  private var random: SeededRandom
  /// Nil if health is not watched.
  private(set) var health: EndpointHealth?
  private var healthWatch: RestartingWatch<HealthStatus>?
  private var service: String?
  private var loadWatch: RestartingWatch<LoadReport>?
  private var period: Duration?
  /// All watches that were started.
  private(set) var startedCount = 0
  /// Watches that have ended but still have a place on their connection.
  private var endedCount = 0
  /// Whether nobody needs the endpoint now.
  var isPaused = false {
    didSet {
      guard self.isPaused != oldValue else { return }
      if self.isPaused { self.stop() } else { self.restart() }
    }
  }

  init(in shared: SharedEnvironment, seed: UInt64) {
    self.shared = shared
    self.random = SeededRandom(seed: seed)
  }

  /// How many streams of the endpoint are watches.
  var streamCount: Int {
    self.endedCount + (self.healthWatch?.isUnderWay == true ? 1 : 0)
      + (self.loadWatch?.isUnderWay == true ? 1 : 0)
  }

  /// Watches the health of `service` from now on; nil for not at all.
  func watchHealth(of service: String?) {
    guard service != self.service else { return }
    self.service = service
    self.healthWatch?.stop()
    self.health = service.map { _ in .unknown }
    self.healthWatch = service.map { service in
      let method = HealthMessages.watch(service: service)
      return RestartingWatch(method, at: self, seed: self.random.next()) { [weak self] event in
        self?.setHealth(EndpointHealth(event))
      }
    }
    if !self.isPaused { self.healthWatch?.restart() }
  }

  private func setHealth(_ health: EndpointHealth) {
    guard health != self.health else { return }
    self.health = health
    self.subchannel?.channel?.endpoints.needsUpdate()
  }

  /// Asks for a report of the load in each `period` from now on; nil for none.
  func watchLoad(every period: Duration?) {
    guard period != self.period else { return }
    self.period = period
    self.subchannel?.counting.calls.takesReports = period == nil
    self.loadWatch?.stop()
    self.loadWatch = period.map { period in
      let method = LoadReportMessages.stream(every: period)
      return RestartingWatch(method, at: self, seed: self.random.next()) { [weak self] event in
        if case .answer(let report) = event { self?.subchannel?.counting.calls.record(report) }
      }
    }
    if !self.isPaused { self.loadWatch?.restart() }
  }

  /// Restarts the watches on a connection that takes streams.
  func restart() {
    guard !self.isPaused else { return }
    self.healthWatch?.restart()
    self.loadWatch?.restart()
  }

  /// There is no connection, or nobody wants answers.
  func stop() {
    self.healthWatch?.stop()
    self.loadWatch?.stop()
    if self.health != nil { self.health = .unknown }
  }

  /// A stream of the endpoint has ended.
  ///
  /// - Returns: Whether it was that of a watch.
  func streamDidClose() -> Bool {
    guard self.endedCount > 0 else { return false }
    self.endedCount -= 1
    return true
  }

  /// A connection is gone, with the places of ended watches.
  func connectionDidClose() { self.endedCount = 0 }

  // MARK: - For watches

  var executor: any CallExecutor { self.shared.environment.executor }

  /// The version of HTTP that the server speaks; nil while there is no connection.
  var connectedVersion: HTTPConnectionInfo.Version? { self.subchannel?.connectedVersion }

  /// Starts the stream of a watch; nil if all streams are taken.
  func startWatch(_ request: HTTPStreamRequest, _ handler: any HTTPStreamHandler) -> (any HTTPStream)? {
    guard let connection = self.subchannel?.pool.lease()?.connection else { return nil }
    self.startedCount += 1
    return connection.startStream(request, handler: handler)
  }

  /// A watch that had a stream is over.
  func watchDidEnd() { self.endedCount += 1 }

  func warn(_ message: String) {
    let endpoint = self.subchannel?.endpoint.description ?? ""
    self.shared.environment.logger.warning(
      "\(message)",
      metadata: ["origin": "\(self.shared.environment.origin)", "endpoint": "\(endpoint)"]
    )
  }
}
