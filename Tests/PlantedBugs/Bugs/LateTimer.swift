internal import Connect
internal import ConnectTesting

/// Counts calls that take longer than ten seconds.
///
/// The bug: the timer goes on after the call has ended, and counts all of them.
final class LateTimer: Interceptor {
  private let clock: any Clock<Duration>
  private let slowCalls: Counter

  init(clock: any Clock<Duration>, slowCalls: Counter) {
    self.clock = clock
    self.slowCalls = slowCalls
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(requestFunction: { [clock, slowCalls] _ in
      Task {
        try await clock.sleep(for: .seconds(10))
        slowCalls.add()
      }
    })
  }
}

extension ExplorationCase {
  static let lateTimer = ExplorationCase(
    "LateTimer",
    source: "senchalabs/connect#1043",
    breaking: ["only slow calls count", "nothing after the end"],
    InterceptorExplorer { world in
      let slowCalls = Counter()
      return Subject(observing: slowCalls) { _ in LateTimer(clock: world.clock, slowCalls: slowCalls) }
    }
    .check("only slow calls count") { run in
      run.subject.value <= run.calls.count { ($0.endTime ?? run.duration) - $0.startTime >= .seconds(10) }
    }
  )
}
