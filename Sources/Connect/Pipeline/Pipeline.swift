internal import DequeModule

/// Runs all hooks: moves the parts of a call's request and response through its stages.
///
/// ``PipelineOrder`` decides; ``RequestFlow`` and ``ResultFlow`` call hooks and the codec. Nothing that a hook does is
/// acted on before the hook has returned. Parts move only where there is room, so a slow hook, wire or caller holds
/// back the source.
///
/// The call, its ``PipelineHost``, owns the pipeline, which is confined to the call's executor. The pipeline has no
/// reference to the call: its functions take the host as an argument. So a call that nobody can continue is released.
package final class Pipeline {
  private enum Event {
    case hook(HookAction, Visit)
    case work((Pipeline) -> Void)
  }

  let order: PipelineOrder
  let surroundings: Surroundings
  private(set) var hasAsyncStages = false
  /// Whether the request has passed the call hooks. Nothing moves before.
  private(set) var hasStarted = false
  private(set) var isMoving = false
  private var mustMoveAgain = false
  /// What has happened while a hook was on the stack.
  private var events: Deque<Event> = []
  private(set) var hasEvents = false
  /// A visit that nobody uses any more, for the next hook.
  private var spareVisit: Visit?
  private var lastNumber = 0
  /// The error of the attempt that a hook abandoned last.
  var retryCause: ConnectError?

  /// A pipeline without stages.
  ///
  /// - Parameter maximumWaiting: How many parts wait at one stage, at most.
  package init(isUnary: Bool, maximumWaiting: Int, _ surroundings: Surroundings) {
    self.order = PipelineOrder(isUnary: isUnary, maximumWaiting: maximumWaiting)
    self.surroundings = surroundings
  }

  /// Asks interceptors for their hooks.
  package func askForHooks(_ interceptors: any InterceptorSource, of method: AnyMethod) {
    method.accept(StageBuilder(pipeline: self, interceptors: interceptors))
    for (index, stage) in self.order.stages.enumerated() {
      guard case .async(let stage) = stage else { continue }
      stage.index = index
      self.hasAsyncStages = true
    }
  }

  var hasByteStages: Bool { self.order.codec + 1 < self.order.stages.count }

  // MARK: Movement

  /// Sends the request, or a stream's head, down.
  package func start(_ part: consuming RequestPart, _ host: any PipelineHost) {
    host.executor.assertIsCurrent()
    self.hasStarted = true
    self.isMoving = true
    RequestFlow(pipeline: self, host: host).begin(part)
    self.isMoving = false
    self.restVisit()
    // Nothing follows the request of a unary call, and no attempt has a response already.
    let hasMore = !self.order.isUnary || self.hasAsyncStages
    if hasMore || self.mustMoveAgain || self.hasEvents { self.move(host) }
  }

  /// Moves everything that can move: results up, as far as they are wanted, and the request down, as far as there is room.
  package func move(_ host: any PipelineHost) {
    host.executor.assertIsCurrent()
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
    let results = ResultFlow(pipeline: self, host: host)
    let request = RequestFlow(pipeline: self, host: host)
    repeat {
      self.mustMoveAgain = false
      if self.hasEvents { self.handleEvents(host) }
      // A hook's action, perhaps on an earlier part, is handled before the next part.
      while !host.isOver, !self.hasEvents, results.moveNext() {}
      if !host.isOver, !self.hasEvents, request.moveAll() { self.mustMoveAgain = true }
    } while (self.mustMoveAgain || self.hasEvents) && !host.isOver
  }

  /// Takes the action of a hook that had already returned.
  package func hookDid(_ action: HookAction, _ visit: Visit, _ host: any PipelineHost) {
    host.executor.assertIsCurrent()
    self.events.append(.hook(action, visit))
    self.hasEvents = true
    self.move(host)
  }

  /// Runs `work` for an async stage, once no hook is on the stack.
  package func perform(_ work: @escaping (Pipeline) -> Void, _ host: any PipelineHost) {
    host.executor.assertIsCurrent()
    self.events.append(.work(work))
    self.hasEvents = true
    self.move(host)
  }

  private func handleEvents(_ host: any PipelineHost) {
    while let event = self.events.popFirst() {
      guard !host.isOver else { continue }
      switch event {
      case .work(let work): work(self)
      case .hook(let action, let visit): self.handle(action, visit, host)
      }
    }
    self.hasEvents = false
  }

  private func handle(_ action: HookAction, _ visit: Visit, _ host: any PipelineHost) {
    switch visit.place {
    case .request(let index):
      guard let step = self.order.stages[index].stage.didRequest(action, visit.number) else {
        host.logIgnored("request hook \(index)")
        return
      }
      if case .answer(let results) = step { self.answer(at: index, with: results, host) }
    case .result(let index):
      let results = ResultFlow(pipeline: self, host: host)
      if !results.hookDid(action, at: index, visit.number) { host.logIgnored("response hook \(index)") }
    case .metrics:
      break
    }
  }

  // MARK: Visits

  func makeVisit(at place: Visit.Place, _ host: any PipelineHost) -> Visit {
    self.lastNumber += 1
    guard let visit = self.spareVisit.take() else {
      return Visit(self.lastNumber, at: place, of: host, on: host.executor)
    }
    visit.renew(self.lastNumber, at: place, of: host)
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
  func fail(with error: ConnectError, _ host: any PipelineHost) {
    guard !host.isOver else { return }
    let form: Stage.Form = self.order.isUnary ? .response : .stream
    self.answer(at: self.order.codec, with: [form.failure(error)], host)
  }

  /// Lets results replace everything inside of a stage.
  func answer(at index: Int, with results: [ResultPart], _ host: any PipelineHost) {
    self.close(insideOf: index - 1, cuttingAt: index, host)
    self.order.setAnswer(results, at: index)
    self.mustMoveAgain = true
  }

  /// Abandons everything inside of a stage.
  ///
  /// - Parameter cut: From this stage on, parts of the request are dropped; nil if a new attempt starts.
  func close(insideOf index: Int, cuttingAt cut: Int?, _ host: any PipelineHost) {
    let busy = self.order.active.busy(insideOf: index, of: self.order.stages.count)
    self.giveUp(self.order.close(insideOf: index, cuttingAt: cut), from: busy)
  }

  /// - Returns: False if there is to be no other attempt.
  func retry(at index: Int, _ request: RequestPart?, after delay: Duration, _ host: any PipelineHost) -> Bool
  {
    guard let head = self.order.retryHead(request, at: index),
      self.surroundings.inside.takeRetry(after: delay, host)
    else { return false }
    let first = index < self.order.codec ? 0 : self.order.codec + 1
    let busy = self.order.active.busy(insideOf: first - 1, of: self.order.stages.count)
    self.giveUp(self.order.waitToRetry(for: index), from: busy)
    let epoch = self.order.epoch
    self.surroundings.inside.afterDelay(delay, host) { [self] in
      if self.order.retry(for: index, with: head, in: epoch) { host.pump() }
    }
    return true
  }

  /// Abandons the work of async stages and attempts, and then releases what waited.
  private func giveUp(_ old: [Stage.Kept], from stages: Range<Int>) {
    if self.hasAsyncStages {
      for case .async(let stage) in self.order.stages[stages] { stage.giveUp() }
    }
    self.surroundings.inside.drop()
    withExtendedLifetime(old) {}
  }

  /// Runs a job of the stage at `index` where the nearest `next` outside of it was called.
  func run(_ job: Job, of index: Int, _ host: any PipelineHost) {
    let stages = self.order.stages
    for index in (0..<index).reversed() {
      if case .async(let stage) = stages[index], let runner = stage.runner {
        runner.run(job)
        return
      }
    }
    self.surroundings.outside.run(job, on: host.executor)
  }

  // MARK: End

  /// Abandons all work, and releases the interceptors, which may hold a `proceed` and thereby the call.
  package func release() {
    if self.hasAsyncStages { self.giveUp([], from: self.order.stages.indices) }
    let old = self.order.release()
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
