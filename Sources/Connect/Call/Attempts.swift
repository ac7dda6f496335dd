/// The attempts of a call: starts them, counts them, and says whether there may be another. A retry of a hook, another `next`
/// and a hedge come here; so the cap and the delay stand in one place.
///
/// Confined to the call's executor.
final class Attempts {
  /// The number of the attempt that was started last, from 1 on.
  private(set) var number = 1
  /// How many of the attempts are hedges.
  private(set) var hedgeCount = 0
  /// The one that runs, of a call that does not hedge.
  private(set) var only: Attempt?
  /// Those that run, of a call that hedges.
  private(set) var running: [Attempt] = []
  private var hedge: Hedge?
  /// Whether the first attempt has been sent once more, as the server had not processed it.
  private var hasRetriedTransparently = false
  /// The hedges of which the same is true.
  private var retriedHedges: [Attempt] = []
  private var retryTimer: (any CallTimer)?

  /// The hooks for metrics, outermost first.
  var metricsHooks: [MetricsReport.Hook] = []
  /// How many attempts were given up whose metrics hooks are still to be called.
  private var pendingMetrics = 0
  /// How many attempts went to the network.
  private var sentCount = 0
  /// Whether somebody will ask for the last attempt.
  var keepsSummary = false
  /// The last attempt whose outcome counts, for call hooks.
  private var summary: CallOutcome.Exchange?

  // MARK: Starting

  /// Starts the attempts for a request that has passed all interceptors: one, or several if the call hedges.
  func begin(_ request: RequestHead, _ body: consuming Attempt.Body, _ call: Call) {
    guard call.plan.mayHedge, let policy = call.plan.hedgingPolicy else {
      self.start(request, body, isHedge: false, call)
      return
    }
    // The user's code that ran last may have ended the call.
    guard !call.isOver else { return }
    let hedge = Hedge(policy, request)
    self.hedge = hedge
    hedge.begin(after: self.start(request, body, isHedge: false, call), call)
  }

  /// Starts an attempt: the one place where that happens.
  @discardableResult
  func start(_ request: RequestHead, _ body: consuming Attempt.Body, isHedge: Bool, _ call: Call) -> Attempt {
    let attempt = Attempt(call, request, isHedge: isHedge)
    if self.hedge == nil { self.only = attempt } else { self.running.append(attempt) }
    attempt.start(body)
    return attempt
  }

  /// Takes one retry from the cap. Returns false if the cap is reached or the delay would pass the deadline.
  func takeRetry(after delay: Duration, _ call: Call) -> Bool {
    guard self.number - self.hedgeCount <= call.plan.environment.settings.maximumRetries else { return false }
    if let remaining = call.plan.remainingTime, delay >= remaining { return false }
    self.number += 1
    self.drop()
    return true
  }

  /// Runs `work` after a delay, unless the call is over by then.
  func afterDelay(_ delay: Duration, _ call: Call, _ work: @escaping () -> Void) {
    guard delay > .zero else {
      work()
      return
    }
    self.retryTimer?.cancel()
    let here = Confined((attempts: self, work: work), to: call.executor)
    self.retryTimer = call.executor.schedule(after: delay.clamped) {
      guard !call.isOver else { return }
      here.value.attempts.retryTimer = nil
      here.value.work()
    }
  }

  /// Counts an attempt that goes to the network.
  func countSent() { self.sentCount += 1 }

  /// Counts an attempt that starts beside others.
  func countHedge() {
    self.number += 1
    self.hedgeCount += 1
  }

  /// Whether a request that the server certainly did not process may be sent again: true once for the call, and once for each
  /// hedge.
  func takeTransparentRetry(of attempt: Attempt) -> Bool {
    if attempt.isHedge {
      guard !self.retriedHedges.contains(where: { $0 === attempt }) else { return false }
      self.retriedHedges.append(attempt)
      return true
    }
    guard !self.hasRetriedTransparently else { return false }
    self.hasRetriedTransparently = true
    return true
  }

  // MARK: What runs

  func isRunning(_ attempt: Attempt) -> Bool {
    attempt === self.only || self.running.contains { $0 === attempt }
  }

  /// The response of an attempt that is over, if it decides the call's outcome; then no attempt runs any more.
  func takeResponse(_ call: Call) -> (SingleMessage, of: Attempt)? {
    guard let hedge = self.hedge else {
      guard let attempt = self.only, let response = attempt.takeResponse() else { return nil }
      self.drop()
      return (response, attempt)
    }
    for attempt in self.running {
      // The deadline may have passed, or the user's budget may have ended the call.
      guard !call.isOver else { return nil }
      guard let response = attempt.takeResponse() else { continue }
      self.running.removeAll { $0 === attempt }
      attempt.cancel()
      var error: ConnectError?
      if case .failure(let failure) = response.result, !attempt.isNotModified { error = failure }
      if hedge.goesOn(after: error, call) { continue }
      self.drop()
      self.note(attempt)
      return (response, attempt)
    }
    return nil
  }

  /// Gives up what is on the wire, if anything is.
  func drop() {
    if let attempt = self.only {
      self.only = nil
      self.note(attempt)
      attempt.cancel()
    }
    if self.hedge != nil { self.dropHedges() }
  }

  private func dropHedges() {
    self.hedge.take()?.startNoMore()
    self.noteSummary()
    let running = self.running
    self.running = []
    self.retriedHedges = []
    for attempt in running { attempt.cancel() }
  }

  /// The call is over.
  func end() {
    self.retryTimer.take()?.cancel()
    self.drop()
    self.metricsHooks = []
  }

  // MARK: What hooks are told

  /// The metrics of an attempt are given to hooks later, and before the end.
  func metricsArePending() { self.pendingMetrics += 1 }

  func metricsWereGiven() { self.pendingMetrics -= 1 }

  var hasPendingMetrics: Bool { self.pendingMetrics > 0 }

  /// Remembers what call hooks are told of the attempt that runs.
  func noteSummary() {
    if let last = self.only ?? self.running.last { self.note(last) }
  }

  private func note(_ attempt: Attempt) {
    if self.keepsSummary, let summary = attempt.summary { self.summary = summary }
  }

  /// Says in an outcome what went to the network.
  func describe(_ outcome: inout CallOutcome) {
    outcome.attempts = self.sentCount
    outcome.exchange = self.summary
  }
}
