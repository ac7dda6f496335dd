internal import Connect

/// Counts how calls end.
final class CountedOnce: Interceptor {
  private let counts: OutcomeCounts

  init(counts: OutcomeCounts) {
    self.counts = counts
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { [counts] outcome in
      if outcome.error == nil { counts.successes.add() } else { counts.failures.add() }
    })
  }
}
