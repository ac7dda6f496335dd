internal import Connect

/// When a name is resolved again. Events go in, actions come out; time is a `Duration` since a fixed point.
///
/// - At the start, and when an answer's time to live runs out.
/// - When a connection fails or its server sends GOAWAY, at most every 30 s.
/// - After a failed resolution, and after an answer without addresses, with backoff (``ConnectionBackoff``). Requests
///   wait for the end of the backoff.
///
/// The last good answer is kept when a resolution fails.
package struct ResolutionSchedule<Update> {
  package struct Configuration: Hashable, Sendable {
    /// The least time between two resolutions that failures of connections ask for.
    package var minimumInterval: Duration = .seconds(30)
    /// The least time until an answer is renewed, whatever its TTL. Envoy's `dns_refresh_rate`.
    package var minimumTimeToLive: Duration = .seconds(5)
    /// The time from a failed resolution until the next one starts.
    package var backoff = ConnectionBackoff.Configuration.defaults

    package init() {}
  }

  package enum Action {
    /// Start a resolution, and report its end with `succeeded` or `failed`.
    case resolve
    /// Call `wake(now:)` at this time. It replaces the time that was asked for before.
    case wake(at: Duration)
    /// No call of `wake(now:)` is needed any more.
    case cancelWake
    case publish(Update)
    /// There is no good answer: calls fail with this error.
    case publishFailure(any Swift.Error)
    /// The resolution failed; the last good answer stays in use. For logs.
    case keep(Update, any Swift.Error)
  }

  private let configuration: Configuration
  /// The last good answer.
  package private(set) var lastGood: Update?
  private var isResolving = false
  private var isStopped = false
  /// Whether a resolution was asked for while another one was in flight, whose answer may be older.
  private var isRequested = false
  private var lastStart: Duration?
  private var next: Duration?
  private var backoff: ConnectionBackoff
  /// The last resolution has failed, or has found no addresses.
  private var isBackingOff = false

  package init(_ configuration: Configuration = Configuration()) {
    self.configuration = configuration
    self.backoff = ConnectionBackoff(configuration.backoff)
  }

  // MARK: - Events

  /// The channel begins to need addresses; again after ``stop()`` as well.
  package mutating func start(now: Duration) -> [Action] {
    self.isStopped = false
    guard !self.isResolving, self.next == nil else { return [] }
    return self.resolve(now: now)
  }

  /// A connection has failed, or its server sent GOAWAY: the addresses may be out of date.
  package mutating func request(now: Duration) -> [Action] {
    guard !self.isStopped else { return [] }
    guard !self.isResolving else {
      self.isRequested = true
      return []
    }
    // A backoff is not cut short.
    guard !self.isBackingOff else { return [] }
    guard let lastStart = self.lastStart, now - lastStart < self.configuration.minimumInterval else {
      return self.resolve(now: now)
    }
    return self.plan(lastStart + self.configuration.minimumInterval)
  }

  /// - Parameters:
  ///   - isEmpty: Whether the answer has no addresses. No connection can then fail and ask for another resolution. The
  ///     next one comes after a backoff, or earlier if the answer's time to live ends before.
  ///   - timeToLive: For how long the answer is valid; nil if that is not known.
  ///   - random: As for `failed`, if the answer is empty.
  package mutating func succeeded(
    _ update: Update,
    isEmpty: Bool = false,
    timeToLive: Duration?,
    now: Duration,
    random: Double = 0.5
  ) -> [Action] {
    guard self.isResolving else { return [] }
    self.isResolving = false
    self.isBackingOff = isEmpty
    let delay = isEmpty ? self.backoff.next(share: random) : nil
    if !isEmpty { self.backoff.reset() }
    self.lastGood = update
    guard !self.isStopped else { return [] }
    var actions: [Action] = [.publish(update)]
    if let timeToLive {
      actions += self.plan(now + max(timeToLive.clamped, self.configuration.minimumTimeToLive))
    }
    if let delay { actions += self.plan(now + delay) }
    if self.isRequested {
      self.isRequested = false
      actions += self.request(now: now)
    }
    return actions
  }

  /// - Parameter random: A number from 0 to 1 for the jitter, new for each failure.
  package mutating func failed(_ error: any Swift.Error, now: Duration, random: Double) -> [Action] {
    guard self.isResolving else { return [] }
    self.isResolving = false
    self.isRequested = false
    self.isBackingOff = true
    let delay = self.backoff.next(share: random)
    guard !self.isStopped else { return [] }
    let report: Action = self.lastGood.map { .keep($0, error) } ?? .publishFailure(error)
    return [report] + self.plan(now + delay)
  }

  /// The time of the last `wake` action has come. An early or repeated call does no harm.
  package mutating func wake(now: Duration) -> [Action] {
    guard !self.isStopped, !self.isResolving, let next = self.next else { return [] }
    return now < next ? [.wake(at: next)] : self.resolve(now: now)
  }

  /// The channel needs no addresses for now: it is idle, or shut down. The end of a resolution in flight may
  /// still be reported.
  package mutating func stop() -> [Action] {
    self.isStopped = true
    self.isRequested = false
    guard self.next != nil else { return [] }
    self.next = nil
    return [.cancelWake]
  }

  // MARK: - Steps

  private mutating func resolve(now: Duration) -> [Action] {
    self.isResolving = true
    self.lastStart = now
    guard self.next != nil else { return [.resolve] }
    self.next = nil
    return [.cancelWake, .resolve]
  }

  /// Plans a resolution, unless one comes earlier.
  private mutating func plan(_ time: Duration) -> [Action] {
    if let next = self.next, next <= time { return [] }
    self.next = time
    return [.wake(at: time)]
  }
}

extension ResolutionSchedule: Sendable where Update: Sendable {}
extension ResolutionSchedule.Action: Sendable where Update: Sendable {}
