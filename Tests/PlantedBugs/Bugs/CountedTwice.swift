internal import Connect
internal import ConnectTesting

/// How calls ended.
struct OutcomeCounts: Sendable {
  let successes = Counter()
  let failures = Counter()

  var sum: Int { self.successes.value + self.failures.value }
}

/// Counts how calls end.
///
/// The bug: a call that is cancelled after its response is counted both times.
final class CountedTwice: Interceptor {
  private let counts: OutcomeCounts

  init(counts: OutcomeCounts) {
    self.counts = counts
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(updateResponse: { [counts] response in
      if response.error == nil { counts.successes.add() } else { counts.failures.add() }
      return .proceed
    })
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { [counts] outcome in
      if outcome.code == .canceled { counts.failures.add() }
    })
  }
}

extension ExplorationCase {
  static let countedTwice = ExplorationCase(
    "CountedTwice",
    source: "spring-projects/spring-framework#30070",
    breaking: ["no call counts twice"],
    InterceptorExplorer { _ in
      let counts = OutcomeCounts()
      return Subject(observing: counts) { _ in CountedTwice(counts: counts) }
    }
    .calls(2)
    .check("no call counts twice") { run in run.subject.sum <= run.calls.count }
  )
}
