internal import Connect
internal import ConnectChannels
internal import ConnectTesting

/// What lies between the clients and the servers of a ``SimulatedCluster``.
///
/// `@unchecked Sendable`: touched on the simulation's executor, and before a run by the one who prepares it.
public final class SimulatedNetwork: @unchecked Sendable {
  /// After so long without an acknowledgement a system gives up a connection, as `NIOHTTPClient` asks it to
  /// (`TCP_USER_TIMEOUT`).
  static let userTimeout = Duration.seconds(20)

  /// How long it takes to a server and back: added to each request before it arrives, and to each connection twice, for TCP and
  /// for TLS. Nothing by default.
  public var roundTrip = Latency.none
  /// How often a packet is lost, from 0 to 1: it is sent again after 200 ms, twice that, and so on. Zero by default.
  public var loss = 0.0

  private let executor: SimulationExecutor
  private var random: SplitMix64
  private weak var recorder: RunRecorder?
  /// Zones that are cut off from all others.
  private var partitioned: Set<String> = []
  private var waiting: [Ticket] = []

  init(on executor: SimulationExecutor, _ recorder: RunRecorder, random: SplitMix64) {
    self.executor = executor
    self.recorder = recorder
    self.random = random
  }

  /// Cuts a zone off from all others: nothing gets through, in either direction, and nobody is told. Connections within the
  /// zone go on.
  ///
  /// - Parameter duration: For how long; nil until ``heal(zone:)``.
  public func partition(zone: String, for duration: Duration? = nil) {
    self.executor.run {
      self.recorder?.note("partition \(zone)", at: nil)
      self.partitioned.insert(zone)
      if let duration { _ = self.executor.schedule(after: duration) { self.heal(zone: zone) } }
    }
  }

  /// Ends a partition. What was sent meanwhile arrives now.
  public func heal(zone: String) {
    self.executor.run {
      self.recorder?.note("heal \(zone)", at: nil)
      self.partitioned.remove(zone)
      let waiting = self.waiting
      self.waiting = []
      for ticket in waiting { ticket.resume(true) }
    }
  }

  // MARK: For connections and requests

  func separates(_ one: String, _ other: String) -> Bool {
    one != other && (self.partitioned.contains(one) || self.partitioned.contains(other))
  }

  /// How long a packet takes to come and another to go.
  func sampleRoundTrip() -> Duration {
    var time = self.roundTrip.sample(&self.random)
    var again = Duration.milliseconds(200)
    let loss = min(max(self.loss, 0), 0.99)
    while loss > 0, self.random.fraction() < loss, again < Self.userTimeout {
      time += again
      again *= 2
    }
    return time
  }

  /// Waits until nothing separates the two, but not longer than a system waits.
  ///
  /// - Returns: Whether it got through; nil if the wait was cancelled.
  func waitUntilConnected(_ one: String, _ other: String) async -> Bool? {
    let end = self.executor.now + Self.userTimeout
    while self.separates(one, other) {
      guard self.executor.now < end else { return false }
      let ticket = Ticket()
      self.waiting.append(ticket)
      let timer = self.executor.schedule(after: end - self.executor.now) { ticket.resume(true) }
      let isResumed = await ticket.wait(cancellable: true)
      timer.cancel()
      if !isResumed {
        self.waiting.removeAll { $0 === ticket }
        return nil
      }
    }
    return true
  }
}
