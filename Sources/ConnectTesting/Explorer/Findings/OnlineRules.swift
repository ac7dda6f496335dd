internal import Connect

/// The rules that can be broken while a run goes on, and what they remember.
///
/// Confined to the thread of the exploration.
final class OnlineRules {
  static let maximumAttempts = 10

  fileprivate let settings: ExplorerSettings
  /// What the server answers from now on, if the run has chosen so.
  var keptAnswer: KeptAnswer?

  /// While the explorer's own interceptors proceed.
  var isPaused = false

  init(_ settings: ExplorerSettings) {
    self.settings = settings
  }

  func check(begin attempt: ExploredAttempt, in run: ExplorerRun) {
    if attempt.number > Self.maximumAttempts, !self.settings.allowance.contains(.manyAttempts) {
      run.log.find(
        "at most \(Self.maximumAttempts) attempts",
        "call \(attempt.call) makes more than \(Self.maximumAttempts) attempts: nothing limits its retries",
        liftedBy: .manyAttempts
      )
    }
    let callers = run.callers.callers
    guard callers.indices.contains(attempt.call - 1) else {
      run.log.find("requests belong to a call", "a request reached the server that belongs to no call")
      return
    }
    if let end = callers[attempt.call - 1].call.endTime {
      run.log.find(
        "nothing after the end",
        "call \(attempt.call) sends a request after its end (\(run.executor.now - end) later)"
      )
    }
  }

  /// The library has ignored a `proceed`.
  ///
  /// - Parameters:
  ///   - hook: What the library says of it.
  ///   - number: The call's.
  func proceedWasIgnored(_ hook: String, of number: Int, in run: ExplorerRun) {
    guard !self.isPaused, run.log.finding == nil else { return }
    let now = run.executor.now
    let caller = run.callers.callers[number - 1]
    guard hook == "the call is over" else {
      // A hook that an inner or outer neighbour has called again is not asked for its first answer any more.
      let mayBeOfEarlierAttempt =
        caller.neighbour != .none || run.server.attempts(of: number).count > 1
      // Values of a stream that was cut are not asked for any more, either.
      if hook.hasPrefix("a hook that has proceeded") || run.method == .unary && !mayBeOfEarlierAttempt {
        run.log.find("proceed once", "an interceptor called proceed a second time (\(hook))")
      }
      return
    }
    run.log.tell("late proceed", number, "an interceptor proceeds for call \(number), which is over")
    // What a hook waited for came back, such as another call: it could not know better.
    let isEnding = run.callers.callers.contains {
      $0.call.endTime == now || $0.call.cancelTime == now || $0.call.deadline == now
    }
    let isAnswered = run.server.exchanges.contains { $0.attempt.call != number && $0.attempt.endTime == now }
    guard let end = caller.call.endTime, end < now, !isEnding, !isAnswered, !self.isContinuing(run)
    else { return }
    guard !self.settings.allowance.contains(.backgroundWork) else { return }
    run.log.find(
      "nothing after the end",
      "an interceptor still waited on a clock when call \(number) was over, and proceeded \(now - end) after the end",
      liftedBy: .backgroundWork
    )
  }
}

extension OnlineRules {
  /// A step of the test begins.
  func check(beginOfStep name: String, in run: ExplorerRun) {
    guard !self.settings.allowance.contains(.backgroundWork), run.callers.open.isEmpty else { return }
    let end = run.callers.lastEnd
    guard end > .zero || run.callers.callers.first?.call.endTime != nil, end < run.executor.now,
      !self.isContinuing(run)
    else { return }
    run.log.find(
      "nothing after the end",
      "“\(name)” begins \(run.executor.now - end) after the last call has ended: something still waited on a clock",
      liftedBy: .backgroundWork
    )
  }

  /// Whether what runs now only goes on from a step that has come back, or was held up while time passed.
  func isContinuing(_ run: ExplorerRun) -> Bool {
    let now = run.executor.now
    return run.steps.lastEnd == now || run.lastJump == now
  }
}

/// An answer that the server gives several times.
struct KeptAnswer {
  let answer: ExplorerAnswer
  /// Only to attempts with this number; nil for all.
  let attempt: Int?

  func holds(for attempt: ExploredAttempt) -> Bool { self.attempt.map { $0 == attempt.number } ?? true }
}
