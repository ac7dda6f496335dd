import Connect

/// What end hooks are told in a random call: each once, whatever the reason, when no other hook comes any more.
final class RandomEnds: Sendable {
  private let told = Events()
  /// How many events there were when the first end hook was told.
  private let eventCount = Box<Int?>(nil)

  /// An end hook.
  ///
  /// - Parameters:
  ///   - describe: What an outcome is in a model.
  ///   - eventCount: How many events of other hooks there have been.
  func function(
    _ name: String,
    _ describe: @escaping @Sendable (CallOutcome) -> RandomOutcome,
    eventCount: @escaping @Sendable () -> Int
  ) -> (CallOutcome) -> Void {
    { outcome in
      if self.eventCount.value == nil { self.eventCount.value = eventCount() }
      self.told.add("\(name) \(describe(outcome)) of \(outcome.attempts)")
    }
  }

  var all: [String] { self.told.all }

  /// The events of hooks that came after an end hook. Tasks of async interceptors, whose names begin with `a`, may go on
  /// longer.
  func lateEvents(of events: [String]) -> [String] {
    events.dropFirst(self.eventCount.value ?? events.count).filter { !$0.hasPrefix("a") }
  }

  /// What a model expects.
  ///
  /// - Parameters:
  ///   - names: Of the end hooks, outermost first.
  ///   - outcome: The outcome that the caller gets.
  static func expected(_ names: [String], _ outcome: RandomOutcome, attemptCount: Int) -> [String] {
    let outcome = outcome.hasPrefix("ok") ? "ok" : outcome
    return names.reversed().map { "\($0) \(outcome) of \(attemptCount)" }
  }
}
