internal import Connect
internal import ConnectChannels
internal import ConnectTesting

/// What lies between the clients and the servers of a ``SimulatedCluster``.
///
/// `@unchecked Sendable`: touched on the simulation's executor, and before a run by the one who prepares it.
public final class SimulatedNetwork: @unchecked Sendable {
  /// After this time without an acknowledgement a system drops a connection, as `NIOHTTPClient` asks it to
  /// (`TCP_USER_TIMEOUT`).
  static let userTimeout = Duration.seconds(20)

  /// The round-trip time to a server. A request takes half of one, its response half of another, and a new connection two, for
  /// TCP and for TLS. Zero by default.
  public var roundTrip = Latency.none
  /// How often a packet is lost, from 0 to 1. A lost packet is sent again after 200 ms, twice that, and so on. A request is one
  /// packet, and a response another. Zero by default.
  public var loss = 0.0

  private let executor: SimulationExecutor
  private var random: SeededRandom
  private weak var recorder: RunRecorder?
  /// Since when zones are cut off from all others.
  private var partitioned: [String: Duration] = [:]
  /// Called when a partition ends.
  private var waiting: [() -> Void] = []

  init(on executor: SimulationExecutor, _ recorder: RunRecorder, random: SeededRandom) {
    self.executor = executor
    self.recorder = recorder
    self.random = random
  }

  /// Cuts a zone off from all others: no request, response or message gets through, in either direction, and nobody is told.
  /// Connections within the zone go on. Calls that are cancelled, and connections that end, end for both sides.
  ///
  /// - Parameters:
  ///   - zone: The zone's name, as in ``SimulatedServer/zone``.
  ///   - duration: For how long; nil until ``heal(zone:)``.
  public func partition(zone: String, for duration: Duration? = nil) {
    self.executor.run {
      self.recorder?.note("partition \(zone)", at: nil)
      if self.partitioned[zone] == nil { self.partitioned[zone] = self.executor.now }
      if let duration { _ = self.executor.schedule(after: duration) { self.heal(zone: zone) } }
    }
  }

  /// Ends a partition. What was sent meanwhile arrives now.
  public func heal(zone: String) {
    self.executor.run {
      self.recorder?.note("heal \(zone)", at: nil)
      self.partitioned[zone] = nil
      let waiting = self.waiting
      self.waiting = []
      for resume in waiting { resume() }
    }
  }

  // MARK: For connections and requests

  var now: Duration { self.executor.now }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
    _ = self.executor.schedule(after: delay, work)
  }

  func separates(_ one: String, _ other: String) -> Bool { self.separationTime(of: one, other) != nil }

  /// Since when nothing gets from one zone to another; nil if it does.
  func separationTime(of one: String, _ other: String) -> Duration? {
    guard !self.partitioned.isEmpty, one != other else { return nil }
    return [self.partitioned[one], self.partitioned[other]].compactMap { $0 }.min()
  }

  /// How long a packet takes to come and another to go.
  func sampleRoundTrip() -> Duration { self.sampleOneWay() + self.sampleOneWay() }

  /// How long a packet takes.
  func sampleOneWay() -> Duration {
    var time = self.roundTrip.sample(&self.random) / 2
    var again = Duration.milliseconds(200)
    let loss = min(max(self.loss, 0), 0.99)
    while loss > 0, self.random.fraction() < loss, again < Self.userTimeout {
      time += again
      again *= 2
    }
    return time
  }

  /// Calls back with true when nothing separates the two, or with false after ``userTimeout``.
  func whenConnected(_ one: String, _ other: String, _ done: @escaping @Sendable (Bool) -> Void) {
    let waiter = Waiter()
    let timer = self.executor.schedule(after: Self.userTimeout) { if waiter.resume(false) { done(false) } }
    self.whenNotSeparated(one, other) {
      timer.cancel()
      if waiter.resume(true) { done(true) }
    }
  }

  private func whenNotSeparated(_ one: String, _ other: String, _ done: @escaping () -> Void) {
    guard self.separates(one, other) else { return done() }
    self.waiting.append { self.whenNotSeparated(one, other, done) }
  }

  /// Waits until nothing separates the two, but no longer than ``userTimeout``.
  ///
  /// - Returns: Whether it got through; nil if the wait was cancelled.
  func waitUntilConnected(_ one: String, _ other: String) async -> Bool? {
    let waiter = Waiter()
    self.whenConnected(one, other) { waiter.resume($0) }
    if await waiter.wait(cancellable: true) { return true }
    return Task.isCancelled ? nil : false
  }
}
