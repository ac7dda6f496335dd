internal import Synchronization

/// One call, from its start to its end. It owns the deadline, cancellation, and the rule that a call completes exactly
/// once. The ``Pipeline`` moves requests and results through the hooks, ``Attempts`` handles the wire, and a
/// ``CallSide`` stands for the caller.
///
/// `@unchecked Sendable`: confined to its executor, which debug builds check at the entry points. `init`, ``cancel()``
/// and ``run(_:)`` may be called from any thread.
final class Call: Cancellable, @unchecked Sendable {
  /// The plan at the start of the call; ``Attempts/plan`` adds the service's rules.
  let plan: CallPlan
  let executor: any CallExecutor
  let side: any CallSide
  let attempts: Attempts
  let pipeline: Pipeline
  /// Nil for a call without interceptors.
  let hooks: CallHooks?

  private let isOverFlag = Atomic(false)
  /// Whether a hook may be on the stack while the call ends. End hooks run only after that hook has returned.
  private var mayEndInHook = false
  var timers = CallTimers()

  init(_ plan: CallPlan, _ interceptors: consuming [CallHooks.Entry], _ side: any CallSide) {
    let executor = plan.environment.executor
    let attempts = Attempts(plan)
    self.plan = plan
    self.executor = executor
    self.side = side
    self.attempts = attempts
    self.pipeline = Pipeline(
      isUnary: plan.isUnary,
      maximumWaiting: plan.environment.settings.maximumWaitingValues
    )
    guard !interceptors.isEmpty else {
      self.hooks = nil
      return
    }
    let hooks = CallHooks(interceptors, of: plan.info, plan.inheritance)
    self.hooks = hooks
    if side.runsJobsApart, hooks.haveAsyncForm(isUnary: plan.isUnary) { side.prepareForJobs(on: executor) }
  }

  /// No reference is left that could continue or end the call. Waiting hooks are told, as at any other end.
  deinit {
    guard !self.isOver else { return }
    self.plan.environment.load?.callEnded()
    let error = ConnectError.abandoned(self.plan.info)
    let end = self.side.outcome(of: self.side.end(of: error), after: self.attempts)
    let here = Confined((self.pipeline, self.hooks, self.side, self.attempts), to: self.executor)
    let plan = self.plan
    self.executor.execute {
      let (pipeline, hooks, side, attempts) = here.value
      Termination(error: error, plan: plan).tell(
        pipeline
      )
      var outcome = end
      hooks?.passUp(&outcome)
      attempts.drop()
      pipeline.release()
      hooks?.release().tell(end)
      side.complete(with: side.end(of: error))
      side.release()
    }
  }

  // MARK: From anywhere

  /// Runs `work` on the call's executor: at once if the caller is already there, else later.
  func run(_ work: @escaping @Sendable (Call) -> Void) {
    if self.executor.isCurrent { work(self) } else { self.executor.execute { work(self) } }
  }

  /// Cancels the call, also on the wire. Does nothing once it is over.
  func cancel() {
    self.run { $0.terminate(with: ConnectError(code: .canceled, message: "the call was cancelled")) }
  }

  var isOver: Bool { self.isOverFlag.load(ordering: .relaxed) }

  // MARK: Start

  func startOnExecutor() {
    self.executor.assertIsCurrent()
    guard !self.isOver else { return }
    if let error = self.plan.error {
      self.terminate(with: error)
      return
    }
    if !self.plan.context.isEmpty, let cancellation = self.plan.context.cancellation {
      cancellation.add(self)
      guard !self.isOver else { return }
    }
    if let rules = self.plan.environment.serviceRules, rules.areInUse {
      let isPatient = self.plan.waitsForReady
      if let found = rules.rules(for: self.plan.info, self.plan.headers, isPatient: isPatient) {
        found.begin(self, since: nil)
      } else {
        self.wait(for: rules)
      }
    } else {
      self.begin(by: nil)
    }
  }

  /// Waits until the service's rules are known.
  private func wait(for rules: ServiceRules) {
    let start = self.executor.now
    let (info, isPatient) = (self.plan.info, self.plan.waitsForReady)
    let (wait, count) = rules.wait(for: info, self.plan.headers, isPatient: isPatient) { found in
      self.timers.ruleWait = nil
      if !self.isOver { found.begin(self, since: start) }
    }
    self.timers.ruleWait = wait
    guard self.startDeadline() else { return }
    if let error = self.plan.environment.ruledEndpoint?.callsWaitForRules(count) {
      self.terminate(with: error)
    }
  }

  /// - Parameters:
  ///   - rules: The service's rules for the call; nil if there are none.
  ///   - destination: Where the call's route leads; nil if no route has chosen.
  ///   - start: When the call began to look for its rules; nil for now.
  ///   - fault: What the call gets on purpose.
  fileprivate func begin(
    by rules: MethodRules?,
    to destination: CallDestination? = nil,
    since start: Duration? = nil,
    _ fault: CallFault? = nil
  ) {
    if let destination { self.timers.destination = destination }
    // A plan of its own costs more than all the rest of a route.
    if let rules, !rules.areEmpty {
      self.attempts.plan = self.plan.following(rules, since: start ?? self.executor.now)
      self.plan.environment.ruleWarnings.check(rules, self.plan, self.hooks)
    }
    guard self.startDeadline() else { return }
    if let fault, !fault.lets(self) { return }
    self.goOn(with: self.attempts.plan.makeRequestHead())
  }

  /// Goes on with a call whose rules are known, and whose deadline has been started.
  ///
  /// - Parameter head: Of the call's plan. Not shared, so that hooks change it in place.
  func goOn(with head: consuming RequestHead) {
    guard let hooks = self.hooks else {
      self.pipeline.start(self.side.makeRequest(head), self)
      return
    }
    hooks.ask(for: self.pipeline, of: self.plan.method, self.attempts)
    guard !self.isOver else {
      // What the interceptor that ended the call has added since.
      self.attempts.end()
      self.release(hooks)
      return
    }
    guard let head = hooks.passDown(head, self) else { return }
    self.pipeline.start(self.side.makeRequest(head), self)
  }

  // MARK: End

  /// Takes the end that has passed all message hooks.
  func finish(with end: ResultPart) {
    self.executor.assertIsCurrent()
    guard let hooks = self.hooks, hooks.areWaiting, !self.isOver else {
      self.complete(with: end)
      return
    }
    var outcome = self.side.outcome(of: end, after: self.attempts)
    self.attempts.isEnding = true
    while let retry = hooks.passUp(&outcome, mayRetry: true) {
      self.attempts.isEnding = false
      if let error = hooks.interruption {
        self.terminate(with: error)
        return
      }
      if self.pipeline.restart(from: -1, retry.part, after: retry.delay, self) {
        self.pipeline.retryCause = outcome.error
        return
      }
      self.attempts.isEnding = true
    }
    self.complete(with: self.side.end(end, changedTo: outcome), consume outcome)
  }

  /// Ends the call with a local error: cancellation, the deadline, or an abandoned hook.
  func terminate(with error: ConnectError) {
    self.executor.assertIsCurrent()
    guard !self.isOver else { return }
    guard !self.attempts.isEnding else {
      self.hooks?.interruption = error
      return
    }
    self.attempts.isEnding = true
    if let hooks = self.hooks {
      if hooks.hasAsked {
        self.mayEndInHook = true
      } else {
        hooks.ask(for: nil, of: self.plan.method, self.attempts)
      }
    }
    self.attempts.drop()
    var error = error
    if self.hooks?.haveRequest == true || HookHolders(in: self.pipeline).haveHead { error.isUnsent = true }
    Termination(error: error, plan: self.plan).tell(
      self.pipeline
    )
    let end = self.side.end(of: error)
    if let hooks = self.hooks, hooks.areWaiting {
      var outcome = self.side.outcome(of: end, after: self.attempts)
      hooks.passUp(&outcome)
    }
    self.complete(with: end)
  }

  /// Completes the call unless it is over. Tells the interceptors and releases them.
  ///
  /// - Parameter known: The outcome as call hooks left it; nil if they have not seen the end.
  private func complete(with end: ResultPart, _ known: consuming CallOutcome? = nil) {
    guard !self.isOver else { return }
    self.isOverFlag.store(true, ordering: .relaxed)
    self.plan.environment.load?.callEnded()
    // Moved out, so that no access is in progress while timers are cancelled.
    var timers = CallTimers()
    swap(&timers, &self.timers)
    timers.cancelAll()
    self.attempts.end()
    if let hooks = self.hooks {
      self.tellEnd(end, consume known, to: hooks)
    } else {
      self.release(nil)
    }
    self.side.complete(with: end)
  }

  private func tellEnd(_ end: ResultPart, _ known: consuming CallOutcome?, to hooks: CallHooks) {
    guard hooks.hasEndHooks || hooks.isAsking else {
      self.release(hooks)
      return
    }
    let outcome = known ?? self.side.outcome(of: end, after: self.attempts)
    if hooks.isAsking {
      hooks.outcomeInAsking = outcome
    } else if self.mayEndInHook || self.attempts.pendingMetrics > 0 {
      let here = Confined((self.release(hooks), outcome), to: self.executor)
      self.executor.execute { here.value.0?.tell(here.value.1) }
    } else {
      self.release(hooks)?.tell(outcome)
    }
  }

  @discardableResult
  private func release(_ hooks: CallHooks?) -> CallHooks.Released? {
    let released = hooks?.release()
    self.pipeline.release()
    self.side.release()
    return released
  }

  // MARK: Deadline

  /// Starts the timer of the deadline, in place of an earlier one. Does nothing without a deadline.
  ///
  /// - Returns: False if the deadline has passed, which has ended the call.
  private func startDeadline() -> Bool {
    guard let remaining = self.attempts.plan.remainingTime else { return true }
    guard !self.endIfDeadlineHasPassed() else { return false }
    self.timers.deadline?.cancel()
    self.timers.deadline = self.executor.schedule(after: remaining) {
      self.terminate(with: HookHolders.deadlineExceeded(self))
    }
    return true
  }

  /// Ends the call with `deadline_exceeded` if the deadline has passed and the timer has not fired yet. Errors of the
  /// peer then no longer count.
  func endIfDeadlineHasPassed() -> Bool {
    guard self.attempts.plan.remainingTime.isUsedUp else { return false }
    self.terminate(with: HookHolders.deadlineExceeded(self))
    return true
  }
}

extension CallRules {
  /// Begins a call that these rules hold for.
  fileprivate func begin(_ call: Call, since start: Duration?) {
    switch self {
    case .method(let rules): call.begin(by: rules, since: start)
    case .route(let rules, let destination): call.begin(by: rules, to: destination, since: start)
    case .fault(let fault): call.begin(by: fault.rules, to: fault.destination, since: start, fault)
    case .refused(let error): call.terminate(with: error)
    }
  }
}
