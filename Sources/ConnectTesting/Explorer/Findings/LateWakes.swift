/// Notices code under test that still waits on a clock when all calls have ended. Times are since the end of the last call.
///
/// That a timer fires says nothing: there is no way to take back the timer of a `Task.sleep` that was cancelled. Somebody has
/// waited if a new timer is set, or if anything else runs than the timers themselves.
struct LateWakes {
  /// What there is when time has moved on.
  private struct Moment {
    /// How many pieces of work have run when the timers have run, too.
    let pieces: Int
    /// How many timers are left.
    let timers: Int
  }

  /// A task that wakes up this often does not end by itself.
  private static let pollerCount = 10
  /// How long tasks may take until they have ended.
  private static let grace = Duration.seconds(600)
  /// A slower poller is not found.
  private static let longest = Duration.seconds(48 * 3_600)
  private static let maximumAdvances = 500

  private var advances = 0
  /// How often somebody has woken up.
  private var count = 0
  private var first: Duration?
  private var last = Duration.zero
  /// Nil if time has not moved on.
  private var moment: Moment?

  /// Nothing is ready.
  ///
  /// - Parameters:
  ///   - pieces: How many pieces of work have run.
  ///   - timers: How many timers are set.
  ///   - isContinuing: Whether what has run goes on from something else than a clock.
  mutating func rest(at time: Duration, pieces: Int, timers: Int, isContinuing: Bool) {
    guard let moment = self.moment.take(), !isContinuing else { return }
    guard timers > moment.timers || pieces > moment.pieces else { return }
    self.count += 1
    self.first = self.first ?? time
    self.last = time
  }

  /// Whether time should move on to the next timers.
  ///
  /// - Parameter mayWorkOn: Whether there is nothing to find.
  func goesOn(until next: Duration, mayWorkOn: Bool) -> Bool {
    guard self.advances <= Self.maximumAdvances else { return false }
    guard next > Self.grace else { return true }
    return !mayWorkOn && next <= Self.longest && !self.isPoller
  }

  private var isPoller: Bool { self.count >= Self.pollerCount }

  /// Time has moved on.
  ///
  /// - Parameters:
  ///   - pieces: How many pieces of work have run before.
  ///   - timers: How many timers are still set.
  ///   - ready: What those have brought that were due.
  mutating func advance(pieces: Int, timers: Int, ready: ReadyWork) {
    self.advances += 1
    self.moment = Moment(pieces: pieces + ready.piecesOfTimers, timers: timers)
  }

  /// The rule that is broken, when no more time passes.
  var finding: Finding? {
    guard let first else { return nil }
    guard self.isPoller else {
      return Finding(
        rule: "nothing after the end",
        reason: "something still waited on a clock when the last call ended, and woke up \(first) after that",
        allowance: .backgroundWork
      )
    }
    return Finding(
      rule: "background work ends",
      reason:
        "something has woken up \(self.count) times since the last call has ended, and still does \(self.last) later",
      allowance: .backgroundWork
    )
  }
}
