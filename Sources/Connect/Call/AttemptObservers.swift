/// The interceptors of a call that observe its attempts. Confined to the call's executor.
final class AttemptObservers {
  private let inheritance: Inheritance?
  /// Outermost first.
  private var observers: [(function: AttemptFunction, interceptor: any Interceptor.Type)] = []
  /// Whether an attempt has started.
  private(set) var haveSeenAttempt = false
  /// How many attempts are on the wire.
  private var runningCount = 0
  /// When the last running attempt ended; nil before.
  private var idleSince: Duration?

  init(_ inheritance: Inheritance?) {
    self.inheritance = inheritance
  }

  func add(_ function: @escaping AttemptFunction, of interceptor: any Interceptor.Type) {
    self.observers.append((function, interceptor))
  }

  func tell(_ event: AttemptEvent) {
    for (function, interceptor) in self.observers {
      self.inheritance.bind(nil, of: interceptor) { function(event) }
    }
  }

  /// An attempt starts.
  ///
  /// - Returns: For how long no attempt was running.
  func begin(at time: Duration) -> Duration {
    self.haveSeenAttempt = true
    self.runningCount += 1
    guard self.runningCount == 1, let idleSince = self.idleSince else { return .zero }
    return max(time - idleSince, .zero)
  }

  /// An attempt has ended.
  func end(at time: Duration) {
    self.runningCount -= 1
    self.idleSince = time
  }
}
