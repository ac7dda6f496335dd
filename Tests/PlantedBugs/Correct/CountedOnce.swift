internal import Connect
internal import ConnectTesting

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

extension ExplorationCase {
  static let countedOnce = ExplorationCase(
    "CountedOnce",
    InterceptorExplorer { _ in
      let counts = OutcomeCounts()
      return Subject(observing: counts) { _ in CountedOnce(counts: counts) }
    }
    .calls(3)
    .methods([.unary, .serverStream, .clientStream, .bidirectionalStream])
    .check("each call counts once") { run in
      run.subject.sum >= run.calls.count { $0.endTime != nil } && run.subject.sum <= run.calls.count
    }
  )
}
