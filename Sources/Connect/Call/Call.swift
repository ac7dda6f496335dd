internal import Synchronization

/// One call, from its start to its end. It owns the deadline, cancellation, and the rule that a call completes exactly once;
/// the ``Pipeline`` moves what flows, ``Attempts`` what goes to the wire, and a ``CallSide`` is the caller's.
///
/// `@unchecked Sendable`: confined to its executor, which debug builds check at its doors. `init`, ``start()``, ``cancel()``
/// and ``run(_:)`` may be called from anywhere and hop.
final class Call: Cancellable, @unchecked Sendable {
  let plan: CallPlan
  let executor: any CallExecutor
  let side: any CallSide
  let attempts = Attempts()
  private var hooks: CallHooks
  let pipeline: Pipeline

  private(set) var isOver = false
  private let hasEndedFlag = Atomic(false)
  /// Whether interceptors are, or were, asked for their hooks.
  private var hasAskedForHooks = false
  /// Whether they are just being asked.
  private var isAskingForHooks = false
  /// The outcome, if the call has ended while they were asked.
  private var outcomeInAsking: CallOutcome?
  /// Whether a call hook has the request.
  private var isAtCallHook = false
  /// Whether a hook may be on the stack while the call ends, which is to return before the end hooks are called.
  private var mayEndInHook = false
  /// Whether hooks are being told of the end, which they must not start again.
  private(set) var isEndingNow = false
  private var deadlineTimer: (any CallTimer)?
  private var holdWatch: HoldWatch?
  /// The error of the last attempt that a hook has retried.
  var retryCause: ConnectError?

  init(_ plan: consuming CallPlan, _ interceptors: consuming [ResolvedInterceptor], _ side: any CallSide) {
    self.executor = plan.environment.executor
    self.side = side
    let isUnary = plan.isUnary
    self.hooks = CallHooks(interceptors, plan.inheritance)
    let settings = plan.environment.settings
    self.plan = plan
    self.pipeline = Pipeline(
      isUnary: isUnary,
      maximumWaiting: settings.maximumWaitingValues,
      maximumReplayBytes: settings.maximumReplayBytes
    )
    if !self.hooks.isEmpty, side.runsJobsApart, self.hooks.haveAsyncForm(isUnary: isUnary) {
      side.prepareForJobs(on: self.executor)
    }
  }

  /// Nobody is left who could continue the call or end it. Hooks that wait are told, like at any other end.
  deinit {
    guard !self.isOver, !self.side.isWaitedFor else { return }
    let error = ConnectError.abandoned(self.method)
    var hooks = self.hooks
    var outcome = self.side.outcome(of: self.side.end(of: error))
    self.attempts.describe(&outcome)
    let here = Confined((self.pipeline, hooks.takeWaiting(), self.side), to: self.executor)
    let (end, plan) = (outcome, self.plan)
    self.executor.execute {
      let (pipeline, hooks, side) = here.value
      pipeline.terminate(with: error, on: plan.environment.taskExecutor, plan.inheritance)
      var outcome = end
      hooks.passUp(&outcome)
      pipeline.release()
      hooks.end(end)
      side.complete(with: side.end(of: error))
      side.release(plan.method.info)
    }
  }

  // MARK: From anywhere

  /// Does something with the call on its executor: at once if the caller is there, else later.
  func run(_ work: @escaping @Sendable (Call) -> Void) {
    if self.executor.isCurrent { work(self) } else { self.executor.execute { work(self) } }
  }

  /// Starts the call on its executor.
  func start() {
    self.run { $0.startOnExecutor() }
  }

  /// Cancels the call, also on the wire. Does nothing once it is over.
  func cancel() {
    self.run { $0.terminate(with: ConnectError(code: .canceled, message: "the call was cancelled")) }
  }

  /// Whether the call is over, for other threads.
  var hasEnded: Bool { self.hasEndedFlag.load(ordering: .relaxed) }

  // MARK: Start

  func startOnExecutor() {
    guard !self.isOver else { return }
    if let error = self.plan.error {
      self.terminate(with: error)
      return
    }
    if !self.plan.context.isEmpty, let cancellation = self.plan.context.cancellation {
      cancellation.add(self)
      guard !self.isOver else { return }
    }
    if let remaining = self.plan.remainingTime {
      guard remaining > .zero else {
        self.deadlineDidPass()
        return
      }
      self.deadlineTimer = self.executor.schedule(after: remaining) { self.deadlineDidPass() }
    }
    let head = self.plan.makeRequestHead()
    guard !self.hooks.isEmpty else {
      self.pipeline.start(self.side.makeRequest(head), self)
      return
    }
    self.askForHooks()
    guard !self.isOver else {
      self.releaseAll()
      return
    }
    guard self.hooks.isTransparent else {
      self.passDown(head)
      return
    }
    self.pipeline.start(self.side.makeRequest(head), self)
  }

  /// Asks the interceptors for their hooks.
  ///
  /// - Parameter begins: Whether the call begins; else it ends before, and there are call hooks alone.
  private func askForHooks(begins: Bool = true) {
    self.hasAskedForHooks = true
    self.isAskingForHooks = true
    if begins {
      self.pipeline.askForHooks(of: self.plan.method, self)
    } else {
      for index in 0..<self.interceptorCount { _ = self.askForCallHooks(index) }
    }
    self.isAskingForHooks = false
    if let outcome = self.outcomeInAsking.take() {
      let hooks = self.hooks
      hooks.end(outcome)
    } else {
      self.attempts.keepsSummary = self.hooks.hasEndHooks || !self.hooks.isTransparent
    }
  }

  var interceptorCount: Int { self.hooks.interceptors.count }

  func askForCallHooks(_ index: Int) -> any Interceptor {
    let interceptor = self.hooks.interceptors[index].interceptor
    let function = interceptor.callFunction(self.method)
    self.hooks.set(function, index)
    return interceptor
  }

  private func passDown(_ head: consuming RequestHead) {
    // The one reference to the head: what hooks change, they change in place.
    var request = HTTPRequest(head: head)
    let hooks = self.hooks
    for index in hooks.interceptors.indices {
      self.isAtCallHook = true
      do {
        try hooks.passDown(&request, index)
      } catch {
        guard !self.isOver else { return }
        var error = ConnectError(error)
        error.isUnsent = true
        self.finish(with: self.side.end(of: error))
        return
      }
      self.isAtCallHook = false
      guard !self.isOver else { return }
      self.hooks.hasPassedDown(index)
    }
    self.pipeline.start(self.side.makeRequest(request.head), self)
  }

  // MARK: End

  /// Takes the end that has passed all message hooks.
  func finish(with end: ResultPart) {
    guard self.hooks.areWaiting, !self.isOver else {
      self.complete(with: end)
      return
    }
    var outcome = self.side.outcome(of: end)
    if self.passUp(&outcome) {
      self.complete(with: self.side.end(end, changedTo: outcome), outcome)
    } else {
      self.complete(with: end)
    }
  }

  /// Lets call hooks see and change the outcome.
  private func passUp(_ outcome: inout CallOutcome) -> Bool {
    self.isEndingNow = true
    self.attempts.noteSummary()
    self.attempts.describe(&outcome)
    return self.hooks.takeWaiting().passUp(&outcome)
  }

  /// Ends the call with an error of its own.
  func terminate(with error: ConnectError) {
    guard !self.isOver, !self.isEndingNow else { return }
    self.isEndingNow = true
    if self.hasAskedForHooks {
      self.mayEndInHook = true
    } else if !self.hooks.isEmpty {
      self.askForHooks(begins: false)
    }
    self.attempts.drop()
    var error = error
    if self.isAtCallHook || self.pipeline.holdsHead { error.isUnsent = true }
    self.pipeline.terminate(with: error, on: self.taskExecutor, self.plan.inheritance)
    if self.hooks.areWaiting {
      var outcome = self.side.outcome(of: self.side.end(of: error))
      _ = self.passUp(&outcome)
    }
    self.complete(with: self.side.end(of: error))
  }

  /// Completes the call, unless it is over.
  private func complete(with end: ResultPart, _ changed: CallOutcome? = nil) {
    guard !self.isOver else { return }
    self.isOver = true
    self.hasEndedFlag.store(true, ordering: .relaxed)
    if let timer = self.deadlineTimer {
      self.deadlineTimer = nil
      timer.cancel()
    }
    if let watch = self.holdWatch {
      self.holdWatch = nil
      watch.cancel()
    }
    self.attempts.end()
    if self.hooks.hasEndHooks || self.isAskingForHooks {
      self.tellEnd(changed ?? self.side.outcome(of: end))
    } else {
      self.releaseAll()
    }
    self.side.complete(with: end)
  }

  /// Lets go of the interceptors, and tells them that the call is over.
  private func tellEnd(_ outcome: consuming CallOutcome) {
    self.attempts.describe(&outcome)
    if self.isAskingForHooks {
      self.outcomeInAsking = outcome
      return
    }
    let hooks = self.hooks
    let comesLater = self.mayEndInHook || self.attempts.hasPendingMetrics
    self.releaseAll()
    if comesLater {
      let here = Confined((hooks, outcome), to: self.executor)
      self.executor.execute { here.value.0.end(here.value.1) }
    } else {
      hooks.end(outcome)
    }
  }

  private func releaseAll() {
    let interceptors = self.hooks.release()
    self.pipeline.release()
    self.side.release(self.method)
    withExtendedLifetime(interceptors) {}
  }

  // MARK: Deadline

  /// Ends the call with `deadline_exceeded` if its time is up, although the timer has not run yet: then no error
  /// of the peer counts any more.
  func endIfDeadlineHasPassed() -> Bool {
    guard let remaining = self.plan.remainingTime, remaining <= .zero else { return false }
    self.deadlineDidPass()
    return true
  }

  private func deadlineDidPass() {
    let timeout = self.plan.timeout ?? .zero
    let holder = self.pipeline.blockingHolder.map { "; \($0) and has not passed it on" } ?? ""
    self.terminate(
      with: ConnectError(
        code: .deadlineExceeded,
        message: "\(self.method.path) did not complete within \(timeout)\(holder)"
      )
    )
  }

  // MARK: Hooks that wait

  func hookWaits() {
    guard let patience = self.plan.environment.settings.holdingPatience else { return }
    let watch = self.holdWatch ?? HoldWatch(patience: patience)
    self.holdWatch = watch
    watch.hookWaits(self)
  }
}

extension CallHooks {
  func haveAsyncForm(isUnary: Bool) -> Bool {
    self.interceptors.indices.contains {
      let interceptor = self.interceptors[$0].interceptor
      return isUnary ? interceptor.asyncUnaryForm != nil : interceptor.asyncStreamForm != nil
    }
  }
}
