/// When a call that hedges starts which attempt, as its ``HedgingPolicy`` says. Confined to the call's executor.
final class Hedge {
  private let policy: HedgingPolicy
  private let request: RequestHead
  /// What each attempt sends; nil once no other will start.
  private var written: Attempt.Written?
  /// Will start the next attempt.
  private var timer: (any CallTimer)?

  init(_ policy: HedgingPolicy, _ request: RequestHead) {
    self.policy = policy
    self.request = request
  }

  // MARK: Starting attempts

  /// The first attempt has started.
  func begin(after first: Attempt, _ call: Call) {
    guard !call.isOver else { return }
    self.written = first.written
    self.scheduleNext(after: self.policy.delay, call)
  }

  private func startNext(_ call: Call) {
    guard var written = self.written else { return }
    call.attempts.countHedge()
    written.head.headers["grpc-previous-rpc-attempts"] = ["\(call.attempts.number - 1)"]
    call.attempts.start(self.request, .written(written), isHedge: true, call)
    self.scheduleNext(after: self.policy.delay, call)
  }

  /// Replaces what was scheduled.
  private func scheduleNext(after delay: Duration, _ call: Call) {
    let isInTime = call.plan.remainingTime.map { delay < $0 } ?? true
    guard self.written != nil, isInTime, call.attempts.hedgeCount + 1 < self.policy.attemptLimit else {
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
    // Where none runs, the server has said when to come again, and the budget has been asked then.
    guard call.attempts.running.isEmpty || self.budgetAllowsMore else {
      self.startNoMore()
      return
    }
    self.startNext(call)
  }

  func startNoMore() {
    self.written = nil
    self.timer.take()?.cancel()
  }

  private var budgetAllowsMore: Bool { self.policy.budget?.allowsRetry ?? true }

  // MARK: Ends of attempts

  /// Whether other attempts decide the call's outcome, since one that is over ended with `error` and does not.
  func goesOn(after error: ConnectError?, _ call: Call) -> Bool {
    guard let error else {
      self.policy.budget?.recordSuccess()
      return false
    }
    let isFinal = !self.policy.codes.contains(error.code)
    let pushback = Pushback(error)
    if !isFinal || pushback == .never { self.policy.budget?.recordFailure() }
    guard !isFinal else { return false }
    self.continueSchedule(pushback, call)
    return !call.attempts.running.isEmpty || self.timer != nil
  }

  private func continueSchedule(_ pushback: Pushback?, _ call: Call) {
    guard self.written != nil, self.budgetAllowsMore else {
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
