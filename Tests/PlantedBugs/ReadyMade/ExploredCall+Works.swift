internal import Connect
internal import ConnectTesting

// What shows that an interceptor has done something.

extension ExploredCall {
  /// Whether a new token was shown after the server had refused the first.
  var hasReplacedToken: Bool {
    zip(self.attempts, self.attempts.dropFirst()).contains { first, second in
      first.answer == .unauthenticated && first.headers["authorization"] != second.headers["authorization"]
    }
  }

  /// Whether time passed between an error and the attempt after it. Retries of the explorer's own interceptors are at once.
  var hasWaitedForNextAttempt: Bool {
    zip(self.attempts, self.attempts.dropFirst()).contains { first, second in
      first.answer?.code == .unavailable && (first.endTime ?? second.time) < second.time
    }
  }

  /// Whether an open circuit has failed the call.
  var wasRefusedByCircuit: Bool { self.error?.message?.contains("the circuit breaker of") ?? false }
}

extension ExplorationRun {
  /// Whether so many ends were seen as there were. A call that is cancelled before its interceptors begin has none for them.
  func countsEnds(_ count: Int) -> Bool {
    let ended = self.calls.filter { $0.endTime != nil }
    return count <= ended.count && count >= ended.count { !$0.attempts.isEmpty }
  }

  /// How many attempts the server had at once, at most. Those that begin and end in one moment count for none.
  var mostAttemptsAtOnce: Int {
    let attempts = self.attempts
    return attempts.map { one in
      attempts.count {
        $0.time <= one.time && one.time < $0.endTime ?? self.duration
          && one.time < one.endTime ?? self.duration
      }
    }.max() ?? 0
  }
}
