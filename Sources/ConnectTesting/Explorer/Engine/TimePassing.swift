internal import Connect
internal import Foundation

/// What happens in a run when nothing is left to do without time.
///
/// Confined to the thread of the exploration.
struct TimePassing {
  let run: ExplorerRun

  /// Moves time on, or ends a call that would wait for ever.
  ///
  /// - Returns: Whether the run goes on.
  func letTimePass() -> Bool {
    guard !self.run.callers.areAllOver else { return self.run.letRestPass() }
    let next = self.run.executor.nextTime
    let waiting = self.run.server.attemptsKeptWaiting.filter { self.run.callers.isWaiting($0.call) }
    if let next, self.run.executor.reasons.timerCount > 0 {
      let needsOthers = waiting.count < self.run.callers.open.count && self.run.watch.usesOtherThreads
      if needsOthers, self.waitForOtherThreads(min(self.run.settings.patience, RunLimits.glance)) {
        return true
      }
      // Something wakes up again and again, which does not keep callers from losing their patience with the server.
      if let attempt = waiting.first(where: { self.wearsOut($0, by: next) }) {
        self.run.callers.giveUp(attempt.call, in: self.run)
        return true
      }
      if let call = self.run.callers.firstOpen(longerThan: RunLimits.call, by: next) {
        if self.waitForOtherThreads(self.run.settings.patience) { return true }
        return self.endWaitingCall(call) {
          "call \($0) has not ended after an hour: an interceptor goes on and on"
        }
      }
      return self.advance()
    }
    // Its deadline ends the call, or its caller gives up.
    if next != nil, waiting.contains(where: { self.run.callers.hasTimeout($0.call) }) {
      return self.advance()
    }
    if let attempt = waiting.first {
      self.run.callers.giveUp(attempt.call, in: self.run)
      return true
    }
    if self.waitForOtherThreads(self.run.settings.patience) { return true }
    return self.endWaitingCall(self.run.callers.firstOpen()) {
      "nobody can end call \($0) any more but its deadline or its caller: nothing else is left to wait for"
    }
  }

  private func advance() -> Bool {
    self.run.executor.advance()
    return true
  }

  /// Whether the caller gives up: before `time`, or because the schedule has already done much work. A caller with a deadline waits
  /// for the deadline, up to a higher limit of work.
  private func wearsOut(_ attempt: ExploredAttempt, by time: Duration) -> Bool {
    if self.run.callers.hasTimeout(attempt.call) { return self.run.allPieces > RunLimits.pieces / 4 * 3 }
    return attempt.time + RunLimits.patience < time || self.run.allPieces > RunLimits.pieces / 4
  }

  /// A call waits for nothing: an interceptor holds it.
  ///
  /// - Parameter call: Nil for none.
  /// - Returns: Whether the run goes on.
  private func endWaitingCall(_ call: ExploredCall?, _ reason: (Int) -> String) -> Bool {
    guard let call else { return self.run.letRestPass() }
    if call.cancelTime != nil {
      self.run.log.find("each call ends", "call \(call.number) was cancelled and has not ended")
    } else if self.run.settings.allowance.contains(.endlessCalls) {
      self.run.callers.giveUp(call.number, in: self.run)
    } else {
      self.run.log.find("each call ends", reason(call.number), liftedBy: .endlessCalls)
    }
    return true
  }

  /// - Parameter patience: In real time.
  /// - Returns: Whether another thread has brought work.
  func waitForOtherThreads(_ patience: Duration) -> Bool {
    let end = ContinuousClock.now + patience
    while ContinuousClock.now < end {
      Thread.sleep(forTimeInterval: patience < .milliseconds(10) ? 0.0002 : 0.001)
      self.run.watch.beat()
      self.run.executor.takeInbox()
      if !self.run.executor.ready.isEmpty { return true }
    }
    return false
  }
}
