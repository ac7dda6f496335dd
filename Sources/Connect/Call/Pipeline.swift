internal import DequeModule

/// Runs all hooks: moves the parts of a call's request and response through its stages.
///
/// It is a ``PipelineOrder``, which decides; ``RequestFlow`` and ``ResultFlow`` call hooks and the codec. Nothing that a hook
/// does is acted on before the hook has returned. Parts move only where there is room, so a slow hook, wire or caller holds
/// back the source.
///
/// The ``Call`` owns the pipeline, which is confined to the call's executor. The pipeline has no reference to the call: its
/// functions take the call as an argument. So a call that nobody can continue is released.
final class Pipeline: PipelineOrder {
  private enum Event {
    case hook(HookAction, Visit)
    case work((Pipeline) -> Void)
  }

  private(set) var hasAsyncStages = false
  /// Whether the request has passed the call hooks. Nothing moves before.
  private(set) var hasStarted = false
  private(set) var isMoving = false
  private var mustMoveAgain = false
  /// What has happened while a hook was on the stack.
  private var events: Deque<Event> = []
  private(set) var hasEvents = false
  /// Whether a call hook can ask for a retry.
  var callHooksMayRetry = false
  /// A visit that nobody uses any more, for the next hook.
  private var spareVisit: Visit?
  private var lastNumber = 0
  /// The error of the attempt that a hook abandoned last.
  var retryCause: ConnectError?

  /// Asks interceptors for their hooks.
  func askForHooks(_ interceptors: CallHooks, of method: AnyMethod, _ attempts: Attempts) {
    method.accept(StageBuilder(pipeline: self, interceptors: interceptors, attempts: attempts))
    for (index, stage) in self.stages.enumerated() {
      guard case .async(let stage) = stage else { continue }
      stage.index = index
      self.hasAsyncStages = true
    }
  }

  var hasByteStages: Bool { self.codec + 1 < self.stages.count }

  // MARK: Movement

  /// Sends the request, or a stream's head, down.
  func start(_ part: consuming RequestPart, _ call: Call) {
    call.executor.assertIsCurrent()
    self.hasStarted = true
    self.isMoving = true
    RequestFlow(pipeline: self, call: call).begin(part)
    self.isMoving = false
    self.restVisit()
    // Nothing follows the request of a unary call, and no attempt has a response already.
    let hasMore = !self.isUnary || self.hasAsyncStages
    if hasMore || self.mustMoveAgain || self.hasEvents { self.move(call) }
  }

  /// Moves everything that can move: results up, as far as they are wanted, and the request down, as far as there is room.
  func move(_ call: Call) {
    call.executor.assertIsCurrent()
    guard !self.isMoving else {
      self.mustMoveAgain = true
      return
    }
    guard self.hasStarted else { return }
    self.isMoving = true
    defer {
      self.isMoving = false
      self.restVisit()
    }
    let results = ResultFlow(pipeline: self, call: call)
    let request = RequestFlow(pipeline: self, call: call)
    repeat {
      self.mustMoveAgain = false
      if self.hasEvents { self.handleEvents(call) }
      // A hook's action, perhaps on an earlier part, is handled before the next part.
      while !call.isOver, !self.hasEvents, results.moveNext() {}
      if !call.isOver, !self.hasEvents, request.moveAll() { self.mustMoveAgain = true }
    } while (self.mustMoveAgain || self.hasEvents) && !call.isOver
  }

  /// Takes the action of a hook that had already returned.
  func hookDid(_ action: HookAction, _ visit: Visit, _ call: Call) {
    call.executor.assertIsCurrent()
    self.events.append(.hook(action, visit))
    self.hasEvents = true
    self.move(call)
  }

  /// Runs `work` of an async stage, once no hook is on the stack. Does nothing once the call is over.
  func perform(_ call: Call, _ work: @escaping (Pipeline) -> Void) {
    call.executor.assertIsCurrent()
    guard !call.isOver else { return }
    self.events.append(.work(work))
    self.hasEvents = true
    self.move(call)
  }

  private func handleEvents(_ call: Call) {
    while let event = self.events.popFirst() {
      guard !call.isOver else { continue }
      switch event {
      case .work(let work): work(self)
      case .hook(let action, let visit): self.handle(action, visit, call)
      }
    }
    self.hasEvents = false
  }

  private func handle(_ action: HookAction, _ visit: Visit, _ call: Call) {
    switch visit.place {
    case .request(let index):
      guard case .hooks(_, _, let form) = self.stages[index],
        let step = self.didRequest(action, visit.number, at: index, form)
      else {
        call.plan.logger.logIgnored("request hook \(index)", of: call.plan.info)
        return
      }
      if case .answer(let results) = step { self.answer(at: index, with: results, call) }
    case .result(let index):
      let results = ResultFlow(pipeline: self, call: call)
      if !results.hookDid(action, at: index, visit.number) {
        call.plan.logger.logIgnored("response hook \(index)", of: call.plan.info)
      }
    case .metrics:
      break
    }
  }

  // MARK: Visits

  func makeVisit(at place: Visit.Place, _ call: Call) -> Visit {
    self.lastNumber += 1
    guard let visit = self.spareVisit.take() else {
      return Visit(self.lastNumber, at: place, of: call, on: call.executor)
    }
    visit.renew(self.lastNumber, at: place, of: call)
    return visit
  }

  /// Keeps the visit of a hook that has proceeded for another hook, if nobody else has it.
  @inline(__always)
  func keep(_ visit: inout Visit) {
    if isKnownUniquelyReferenced(&visit) { self.spareVisit = visit }
  }

  /// Releases the call until the next hook.
  func restVisit() { self.spareVisit?.rest() }

  // MARK: Attempts

  /// The codec has found an error, which replaces everything inside.
  func fail(with error: ConnectError, _ call: Call) {
    guard !call.isOver else { return }
    let form: Stage.Form = self.isUnary ? .response : .stream
    self.answer(at: self.codec, with: [form.failure(error)], call)
  }

  /// Lets results replace everything inside of a stage.
  func answer(at index: Int, with results: [ResultPart], _ call: Call) {
    self.close(insideOf: index - 1, cuttingAt: index, call)
    self.setAnswer(results, at: index)
    self.mustMoveAgain = true
  }

  /// Abandons everything inside of a stage.
  ///
  /// - Parameter cut: From this stage on, parts of the request are dropped; nil if a new attempt starts.
  func close(insideOf index: Int, cuttingAt cut: Int?, _ call: Call) {
    let busy = self.active.busy(insideOf: index, of: self.stages.count)
    self.giveUp(self.close(insideOf: index, cuttingAt: cut), from: busy, call)
  }

  /// - Returns: False if there is to be no other attempt.
  func retry(at index: Int, _ request: RequestPart?, after delay: Duration, _ call: Call) -> Bool {
    guard let head = self.retryHead(request, at: index),
      call.attempts.takeRetry(after: delay, call)
    else { return false }
    let first = index < self.codec ? 0 : self.codec + 1
    let busy = self.active.busy(insideOf: first - 1, of: self.stages.count)
    self.giveUp(self.waitToRetry(for: index), from: busy, call)
    let epoch = self.epoch
    call.attempts.afterDelay(delay, call) { [self] in
      if self.retry(for: index, with: head, in: epoch) { call.pump() }
    }
    return true
  }

  /// Starts the attempt that an async interceptor or a call hook asks for.
  ///
  /// - Returns: False if there is to be no other attempt.
  func retry(_ retry: RetryRequest, at index: Int, _ call: Call) -> Bool {
    let request = retry.request(inPlaceOf: index < self.codec ? self.firstMessage : self.firstBytes)
    return switch retry.start {
    case .level: self.retry(at: index, request, after: retry.delay, call)
    case .start: self.restart(from: index, request, after: retry.delay, call)
    }
  }

  /// Starts the call again, at its first call hook.
  ///
  /// - Parameters:
  ///   - index: The stage of the interceptor that asks for it; -1 for a call hook.
  ///   - request: The request to start with; nil for the caller's. Only that of a message hook has a message that counts.
  /// - Returns: False if there is to be no other attempt.
  func restart(from index: Int, _ request: RequestPart?, after delay: Duration, _ call: Call) -> Bool {
    let canSendAgain = self.isUnary || !self.hasStarted || self.messages?.log.isComplete == true
    guard canSendAgain, !call.side.hasDelivered, call.attempts.takeRetry(after: delay, call) else {
      return false
    }
    let hasMessage = (0..<self.codec).contains(index)
    let request = hasMessage ? request : request?.head.map { RequestPart.head($0) }
    let busy = self.active.busy(insideOf: -1, of: self.stages.count)
    let maximumBytes = call.plan.environment.settings.maximumReplayBytes
    self.hasStarted = true
    self.giveUp(
      self.waitToRetry(for: index, from: .start, ReplayLog(maximumBytes: maximumBytes)),
      from: busy,
      call
    )
    let epoch = self.epoch
    call.attempts.afterDelay(delay, call) { [self] in
      self.perform(call) { pipeline in
        guard epoch == pipeline.epoch, let first = call.side.requestAgain(request, call) else { return }
        _ = pipeline.retry(for: index, from: .start, with: first, in: epoch)
      }
    }
    return true
  }

  /// Abandons the work of async stages and attempts, and then releases what waited.
  private func giveUp(_ old: [HookStates.Waiting], from stages: Range<Int>, _ call: Call) {
    if self.hasAsyncStages {
      for case .async(let stage) in self.stages[stages] { stage.giveUp() }
    }
    call.attempts.drop()
    withExtendedLifetime(old) {}
  }

  /// Runs a job of the stage at `index` where the nearest `next` outside of it was called.
  func run(_ job: Job, of index: Int, _ call: Call) {
    let stages = self.stages
    for index in (0..<index).reversed() {
      if case .async(let stage) = stages[index], let runner = stage.runner {
        runner.run(job)
        return
      }
    }
    call.side.run(job, on: call.executor)
  }

  // MARK: End

  /// Abandons all work, and releases the interceptors, which may hold a `proceed` and thereby the call.
  func release() {
    if self.hasAsyncStages {
      for case .async(let stage) in self.stages { stage.giveUp() }
    }
    let old = self.takeRemains()
    let visit = self.spareVisit
    self.hasAsyncStages = false
    self.spareVisit = nil
    if self.hasEvents {
      let events = self.events
      self.events = []
      withExtendedLifetime(events) {}
    }
    withExtendedLifetime(old) {}
    withExtendedLifetime(visit) {}
  }
}
