/// The attempts of a call that hedges, which start when its ``HedgingPolicy`` says. Confined to the call's executor.
final class Hedge {
  private let policy: HedgingPolicy
  private var request: RequestHead
  private let attempts: Attempts
  private var running: [Attempt] = []
  /// What each attempt sends; nil once no further attempt will start.
  private var sent: SentRequest?
  /// Will start the next attempt.
  private var timer: (any CallTimer)?

  init(_ policy: HedgingPolicy, _ request: RequestHead, _ attempts: Attempts) {
    self.policy = policy
    self.request = request
    self.attempts = attempts
  }

  // MARK: Starting attempts

  /// The first attempt has started.
  func begin(after first: Attempt, _ call: Call) {
    guard !call.isOver else { return }
    self.sent = first.sent
    self.scheduleNext(after: self.policy.delay, call)
  }

  func append(_ attempt: Attempt, replacing replaced: Attempt?) {
    self.running.removeAll { $0 === replaced }
    self.running.append(attempt)
  }

  /// `attempt` has replaced another one, in another protocol. Later attempts also use the new protocol.
  func didReplaceAttempt(by attempt: Attempt) {
    guard self.sent != nil, let sent = attempt.sent else { return }
    self.sent = sent
    self.request = attempt.request
  }

  private func startNext(_ call: Call) {
    guard let sent = self.sent else { return }
    self.attempts.startHedge(self.request, sent, call)
    self.scheduleNext(after: self.policy.delay, call)
  }

  /// Replaces what was scheduled.
  private func scheduleNext(after delay: Duration, _ call: Call) {
    let isInTime = self.attempts.plan.remainingTime.map { delay < $0 } ?? true
    guard self.sent != nil, isInTime, self.attempts.hedgeCount + 1 < self.policy.attemptLimit else {
      self.startNoMore()
      return
    }
    self.timer?.cancel()
    let here = Confined(self, to: call.executor)
    self.timer = call.executor.schedule(after: delay.clamped) {
      here.value.timer = nil
      if !call.endIfDeadlineHasPassed() { here.value.startDue(call) }
    }
  }

  private func startDue(_ call: Call) {
    // If no attempt runs, this one follows a pushback of the server, and the budget was checked then.
    if self.running.isEmpty || self.budgetAllowsMore { self.startNext(call) } else { self.startNoMore() }
  }

  private func startNoMore() {
    self.sent = nil
    self.timer.take()?.cancel()
  }

  private var budgetAllowsMore: Bool { self.policy.budget?.allowsRetry ?? true }

  // MARK: What runs

  /// The running attempt that started last.
  var last: Attempt? { self.running.last }

  func runs(_ attempt: Attempt) -> Bool { self.running.contains { $0 === attempt } }

  func cancel() {
    self.startNoMore()
    let running = self.running
    self.running = []
    for attempt in running { attempt.cancel() }
  }

  // MARK: Ends of attempts

  /// The response of an attempt that is over, if it decides the call's outcome.
  func takeResponse(_ call: Call) -> (SingleMessage, of: Attempt)? {
    for attempt in self.running {
      // The deadline may have passed, or the user's budget may have ended the call.
      guard !call.isOver else { return nil }
      guard let response = attempt.takeResponse() else { continue }
      self.running.removeAll { $0 === attempt }
      attempt.cancel()
      var error: ConnectError?
      if case .failure(let failure) = response.result, !attempt.response.isNotModified(for: attempt.request) {
        error = failure
      }
      if !self.goesOn(after: error, call) { return call.isOver ? nil : (response, attempt) }
    }
    return nil
  }

  /// Whether the call goes on after an attempt that ended with `error`, so that other attempts decide its outcome.
  private func goesOn(after error: ConnectError?, _ call: Call) -> Bool {
    guard let error else {
      self.policy.budget?.recordSuccess()
      return false
    }
    let isFinal = error.isFinal || !self.policy.codes.contains(error.code)
    let pushback = Pushback(error)
    if !isFinal || pushback == .never { self.policy.budget?.recordFailure() }
    guard !isFinal else { return false }
    self.continueSchedule(pushback, call)
    return !self.running.isEmpty || self.timer != nil
  }

  private func continueSchedule(_ pushback: Pushback?, _ call: Call) {
    guard self.sent != nil, self.budgetAllowsMore else {
      self.startNoMore()
      return
    }
    switch pushback {
    case nil: self.startNext(call)
    case .after(let delay) where delay <= self.policy.longestServerDelay:
      self.scheduleNext(after: delay, call)
    case .after, .never: self.startNoMore()
    }
  }
}
