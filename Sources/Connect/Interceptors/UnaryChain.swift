/// The hooks of one level (messages or bytes) of a unary call, run one after the other: requests down, the
/// response up.
///
/// At any time it is at one place, ``Position``. Each visit of a hook has a number, and only a `proceed` with
/// the number of the present visit counts; that is how late and repeated ones are told apart.
///
/// Confined to the call's executor, which makes it `Sendable`.
class UnaryChain<Message: Sendable, Response: UnaryOutcome>: HookOwner, @unchecked Sendable {
  typealias Request = HTTPRequest<Message>
  typealias Hooks = UnaryHooks<Message, Response>
  typealias RequestFunction = (Request, Proceed<RequestVerb<Request, Response>>) -> Void
  typealias ResponseFunction = (Response, Proceed<ResponseVerb<Request, Response>>) -> Void
  typealias Next = @Sendable (Request) async throws -> Response
  typealias AsyncBody = @Sendable (Request, @escaping Next) async throws -> Response

  /// An interceptor's part in this level.
  private struct Stage {
    var hooks = Hooks()
    /// Set for the async form, which has no hooks.
    var asyncBody: AsyncBody?
    /// For messages.
    let interceptor: any Interceptor.Type
  }

  private enum Position {
    case idle
    case requestHook(Int)
    /// Inside all stages.
    case below
    case responseHook(Int)
    /// The body of an async stage is running and no `next` of it is pending.
    case asyncStage(Int)
    case waitingToRetry
  }

  /// Not retained, since the call owns the chain: each `proceed` that is handed out retains the call, so that
  /// it ends when the last one is thrown away uncalled.
  private unowned let call: Call
  /// Of the call, which may be gone when hooks are told of that.
  private let inheritance: Inheritance?
  private let level: StaticString
  // What is not checked for exclusive access is never replaced where it would go away, which may come back here, while it
  // is accessed: `take()` first, or a plain reference, which is released when the new one is in place.
  @exclusivity(unchecked) private var stages: [Stage]
  /// How many of the stages, the last ones, stand inside of all that are placed as listed.
  @exclusivity(unchecked) private var innerCount = 0
  private var isReleased = false

  private var position = Position.idle
  private var visit = 0
  /// What a request hook that has not proceeded yet was given.
  @exclusivity(unchecked) private var givenHead: RequestHead?
  /// What a response hook that has not proceeded yet was given.
  @exclusivity(unchecked) private var givenResponse: Response?
  @exclusivity(unchecked) private var initialRequest: Request?
  private var runs: [Int: AsyncUnaryRun<Response>] = [:]
  /// Whether there ever were any.
  private var hasRuns = false
  /// How many stages, from the outermost on, still wait for a response though their attempt was given up for a
  /// new one, which has not got to the stage behind them.
  private var unansweredCount = 0
  /// Read and written at once, never for longer.
  @exclusivity(unchecked) private var depth = 0

  init(call: Call, level: StaticString, capacity: Int) {
    self.call = call
    self.inheritance = call.inheritance
    self.level = level
    var stages: [Stage] = []
    stages.reserveCapacity(capacity)
    self.stages = stages
  }

  /// Adds hooks inside of the others, as far as their placement and that of the others let them, before the first attempt.
  func append(_ hooks: consuming Hooks, of interceptor: any Interceptor.Type) {
    let placement = hooks.placement
    let stage = Stage(hooks: hooks, interceptor: interceptor)
    switch placement {
    case .innermost: self.innerCount += 1
    case .userIndependent where self.innerCount > 0: self.innerCount += 1
    case .asListed where self.innerCount > 0:
      self.stages.insert(stage, at: self.stages.count - self.innerCount)
      return
    case .asListed, .userIndependent: break
    }
    self.stages.append(stage)
  }

  /// Adds the async form of an interceptor, which is placed as listed.
  func append(_ body: @escaping AsyncBody, of interceptor: any Interceptor.Type) {
    let stage = Stage(asyncBody: body, interceptor: interceptor)
    // To insert at the end costs more than to append, where types have to be looked up.
    if self.innerCount == 0 {
      self.stages.append(stage)
    } else {
      self.stages.insert(stage, at: self.stages.count - self.innerCount)
    }
  }

  // MARK: Around the chain

  /// Takes the request that has passed all stages.
  func passDown(_ request: Request) {}
  /// Takes the response that has passed all stages.
  func passUp(_ response: Response) {}
  /// Gives up whatever goes on below.
  func abandonInside() {}
  /// Runs jobs of this level where no `next` of this level is pending.
  var outerRunner: any JobRunner { self.call }

  // MARK: Down

  /// Starts an attempt at the first stage. An earlier one is given up.
  func start(_ request: Request) {
    if self.initialRequest.take() != nil { self.reset() }
    self.initialRequest = request
    self.descend(from: 0, request)
  }

  private func descend(from first: Int, _ request: Request) {
    guard self.depth < maximumDepth else {
      self.goOnLater(at: .requestHook(first)) { self.descend(from: first, request) }
      return
    }
    self.depth += 1
    defer { self.depth -= 1 }
    var request = request
    for index in first..<max(first, self.stages.count) {
      if let update = self.stages[index].hooks.requestUpdate {
        guard self.call(update, at: index, with: &request) else { return }
        continue
      }
      if let function = self.stages[index].hooks.requestHook {
        self.call(function, at: index, with: request)
        return
      }
      if let body = self.stages[index].asyncBody {
        self.startRun(index, request, body)
        return
      }
    }
    self.position = .below
    if !self.isReleased { self.passDown(request) }
  }

  /// Goes on in a while, from the bottom of the stack, unless something else happens before.
  @inline(never)
  private func goOnLater(at position: Position, _ goOn: @escaping () -> Void) {
    self.visit += 1
    let visit = self.visit
    self.position = position
    let work = Confined(goOn)
    self.call.hop { if visit == self.visit { work.value() } }
  }

  private func call(_ function: RequestFunction, at index: Int, with request: Request) {
    self.visit += 1
    let visit = self.visit
    self.position = .requestHook(index)
    self.visit(visit, of: self.call) { (proceed: Proceed<RequestVerb<Request, Response>>) in
      self.inheritance.bind(request.head.context, of: self.stages[index].interceptor) {
        function(request, proceed)
      }
    } did: { (verb: consuming RequestVerb<Request, Response>) in
      self.requestHook(visit, did: verb, given: request.head)
    } waits: {
      if visit == self.visit {
        self.givenHead = request.head
        self.call.hookWaits()
      }
    }
  }

  /// - Returns: Whether the request goes on.
  private func call(_ update: Hooks.RequestUpdate, at index: Int, with request: inout Request) -> Bool {
    self.visit += 1
    let visit = self.visit
    self.position = .requestHook(index)
    let given = request.head
    do {
      try self.inheritance.bind(given.context, of: self.stages[index].interceptor) { try update(&request) }
      guard visit == self.visit else { return false }
      request.complete(from: given)
      return true
    } catch {
      guard visit == self.visit else { return false }
      var error = ConnectError(error)
      error.isUnsent = true
      self.visit += 1
      self.ascend(from: index - 1, Response(failure: error))
      return false
    }
  }

  override func goOn(_ visit: Int, with verb: UnsafeRawPointer) {
    switch self.position {
    case .requestHook where visit == self.visit:
      self.requestHook(
        visit,
        did: verb.assumingMemoryBound(to: RequestVerb<Request, Response>.self).pointee,
        given: self.givenHead.take()
      )
    case .responseHook where visit == self.visit:
      guard let given = self.givenResponse.take() else { return }
      self.responseHook(
        visit,
        did: verb.assumingMemoryBound(to: ResponseVerb<Request, Response>.self).pointee,
        given: given
      )
    default:
      self.call.logIgnored("\(self.level) hook")
    }
  }

  private func requestHook(
    _ visit: Int,
    did verb: consuming RequestVerb<Request, Response>,
    given: RequestHead?
  ) {
    guard visit == self.visit, case .requestHook(let index) = self.position else {
      self.call.logIgnored("\(self.level) request hook")
      return
    }
    self.visit += 1
    switch consume verb {
    case .proceed(.success(var request)):
      request.complete(from: given)
      self.descend(from: index + 1, request)
    case .proceed(.failure(var error)):
      error.isUnsent = true
      self.ascend(from: index - 1, Response(failure: error))
    case .answer(let response):
      self.ascend(from: index - 1, response)
    }
  }

  // MARK: Up

  /// Takes the response from inside.
  func receive(_ response: Response) {
    guard case .below = self.position else { return }
    self.ascend(from: self.stages.count - 1, response)
  }

  private func ascend(from last: Int, _ response: Response) {
    guard self.depth < maximumDepth else {
      self.goOnLater(at: .responseHook(last + 1)) { self.ascend(from: last, response) }
      return
    }
    self.depth += 1
    defer { self.depth -= 1 }
    var response = response
    for index in stride(from: last, through: 0, by: -1) {
      self.unansweredCount = min(self.unansweredCount, index)
      if let update = self.stages[index].hooks.responseUpdate {
        guard self.call(update, at: index, with: &response) else { return }
        continue
      }
      if let function = self.stages[index].hooks.responseHook {
        self.call(function, at: index, with: response)
        return
      }
      if self.stages[index].asyncBody != nil {
        self.visit += 1
        self.position = .asyncStage(index)
        self.runs[index]?.finishNext(with: response)
        self.call.hookWaits()
        return
      }
    }
    self.position = .idle
    self.unansweredCount = 0
    if !self.isReleased { self.passUp(response) }
  }

  /// - Returns: Whether the response goes on.
  private func call(_ update: Hooks.ResponseUpdate, at index: Int, with response: inout Response) -> Bool {
    self.visit += 1
    let visit = self.visit
    self.position = .responseHook(index)
    let given = response
    let decision = self.inheritance.bind(nil, of: self.stages[index].interceptor) { update(&response) }
    guard visit == self.visit else { return false }
    guard case .retry(let delay) = decision else { return true }
    self.visit += 1
    self.call.retryCause = given.error
    guard !self.restart(from: index, with: nil, after: delay) else { return false }
    // As with a hook that proceeds: it has said nothing about what is to pass on.
    response = given
    return true
  }

  private func call(_ function: ResponseFunction, at index: Int, with response: Response) {
    self.visit += 1
    let visit = self.visit
    self.position = .responseHook(index)
    self.visit(visit, of: self.call) { (proceed: Proceed<ResponseVerb<Request, Response>>) in
      self.inheritance.bind(nil, of: self.stages[index].interceptor) { function(response, proceed) }
    } did: { (verb: consuming ResponseVerb<Request, Response>) in
      self.responseHook(visit, did: verb, given: response)
    } waits: {
      if visit == self.visit {
        withExtendedLifetime(self.givenResponse.take()) { self.givenResponse = response }
        self.call.hookWaits()
      }
    }
  }

  /// - Parameter given: What the hook was given.
  private func responseHook(
    _ visit: Int,
    did verb: consuming ResponseVerb<Request, Response>,
    given: Response
  ) {
    guard visit == self.visit, case .responseHook(let index) = self.position else {
      self.call.logIgnored("\(self.level) response hook")
      return
    }
    self.visit += 1
    switch consume verb {
    case .proceed(let response):
      self.ascend(from: index - 1, response)
    case .retry(let request, let delay):
      self.call.retryCause = given.error
      guard self.restart(from: index, with: request, after: delay) else {
        self.ascend(from: index - 1, given)
        return
      }
    }
  }

  /// Starts a new attempt at the first stage, for the stage at `index`.
  ///
  /// - Returns: False if there is to be none.
  private func restart(from index: Int, with request: Request?, after delay: Duration) -> Bool {
    guard var request = request ?? self.initialRequest, self.call.takeRetry(after: delay) else {
      return false
    }
    request.complete(from: self.initialRequest?.head)
    self.endRuns(inside: -1)
    self.position = .waitingToRetry
    self.unansweredCount = index
    let restarted = request
    let visit = self.visit
    self.call.afterDelay(delay) {
      guard visit == self.visit, case .waitingToRetry = self.position else { return }
      self.descend(from: 0, restarted)
    }
    return true
  }

  // MARK: End

  /// Whether a stage has the request and has not passed it on.
  var holdsRequest: Bool {
    switch self.position {
    case .requestHook: true
    case .asyncStage(let index): self.runs[index]?.hasCalledNext == false
    case .idle, .below, .responseHook, .waitingToRetry: false
    }
  }

  /// The interceptor that has the request, or a response, and has not passed it on.
  var holder: HookHolder? {
    let index: Int
    let what: HookHolder.Held
    switch self.position {
    case .requestHook(let position): (index, what) = (position, .request)
    case .responseHook(let position): (index, what) = (position, .response)
    case .asyncStage(let position):
      (index, what) = (position, self.runs[position]?.hasCalledNext == false ? .request : .response)
    case .idle, .below, .waitingToRetry: return nil
    }
    guard index < self.stages.count else { return nil }
    return HookHolder(interceptor: self.stages[index].interceptor, held: what)
  }

  override func hookWasDropped(_ visit: Int) {
    if visit == self.visit, let holder = self.holder { self.call.abandon(by: holder) }
  }

  /// Gives up what is going on in this level.
  func reset() {
    self.visit += 1
    self.givenHead = nil
    _ = self.givenResponse.take()
    self.endRuns(inside: -1)
    self.position = .idle
    self.unansweredCount = 0
  }

  /// Tells the stages that wait for a response that `error` ends the call. They cannot change that.
  ///
  /// - Parameter executor: Where hooks may run tasks; that of the call, which may be gone.
  func terminate(with error: ConnectError, on executor: any TaskExecutor) {
    let reached: Int
    switch self.position {
    case .idle, .waitingToRetry: reached = -1
    case .requestHook(let index), .responseHook(let index): reached = index - 1
    case .asyncStage(let index): reached = index
    case .below: reached = self.stages.count - 1
    }
    let last = max(reached, self.unansweredCount - 1)
    self.visit += 1
    self.position = .idle
    for index in stride(from: last, through: 0, by: -1) {
      if self.stages[index].asyncBody != nil {
        self.runs.removeValue(forKey: index)?.end(with: Response(failure: error))
      } else if let update = self.stages[index].hooks.responseUpdate {
        var response = Response(failure: error)
        _ = self.inheritance.bind(nil, of: self.stages[index].interceptor) { update(&response) }
      } else if let function = self.stages[index].hooks.responseHook {
        self.inheritance.bind(nil, of: self.stages[index].interceptor) {
          function(Response(failure: error), .over(on: executor))
        }
      }
    }
    self.endRuns(inside: -1)
  }

  /// Lets go of the interceptors, which may hold on to a `proceed` and thereby to this chain.
  func release() {
    self.reset()
    self.stages = []
    self.isReleased = true
    _ = self.initialRequest.take()
  }

  // MARK: Async stages

  private func startRun(
    _ index: Int,
    _ request: Request,
    _ body: @escaping AsyncBody
  ) {
    let executor = self.call.executor
    let run = AsyncUnaryRun<Response>(
      call: self.call,
      request: request.head
    )
    self.visit += 1
    self.position = .asyncStage(index)
    self.hasRuns = true
    self.runs[index]?.end(with: nil)
    self.runs[index] = run
    let next: Next = { request in
      let mailbox = Mailbox<Response>(executor: executor)
      return try await withTaskCancellationHandler {
        try await mailbox.value { self.next(of: run, index, request, mailbox) }
      } onCancel: {
        executor.run { self.cancelNext(of: run, index, mailbox) }
      }
    }
    let job = Job {
      let response: Response
      do {
        response = try await body(request, next)
      } catch {
        response = Response(failure: ConnectError(error))
      }
      executor.run { self.finish(run, index, with: response) }
    }
    run.job = job
    (self.runner(around: index) ?? self.outerRunner).run(job)
    self.call.hookWaits()
  }

  /// The pending `next` of the nearest async stage outside of `index`, in this level.
  private func runner(around index: Int) -> (any JobRunner)? {
    guard self.hasRuns else { return nil }
    for outer in stride(from: index - 1, through: 0, by: -1) {
      if let runner = self.runs[outer]?.pendingNext { return runner }
    }
    return nil
  }

  /// Runs jobs of what is inside of this level, where the innermost `next` was called.
  final var innerRunner: any JobRunner { self.runner(around: self.stages.count) ?? self.outerRunner }

  private func next(
    of run: AsyncUnaryRun<Response>,
    _ index: Int,
    _ request: Request,
    _ mailbox: Mailbox<Response>
  ) {
    guard self.runs[index] === run, !mailbox.isCancelled else {
      mailbox.post(.failure(CancellationError()))
      return
    }
    guard run.pendingNext == nil else {
      mailbox.post(
        .failure(
          ConnectError(
            code: .internalError,
            message: "an interceptor called next while an earlier next was pending"
          )
        )
      )
      return
    }
    guard !run.hasCalledNext || self.call.takeRetry() else {
      mailbox.post(
        run.lastResponse.map { .success($0) } ?? .failure(ConnectError.retriesUsedUp(self.call.method))
      )
      return
    }
    run.hasCalledNext = true
    run.pendingNext = mailbox
    var request = request
    request.complete(from: run.request)
    self.descend(from: index + 1, request)
  }

  private func cancelNext(of run: AsyncUnaryRun<Response>, _ index: Int, _ mailbox: Mailbox<Response>) {
    mailbox.isCancelled = true
    guard self.runs[index] === run, run.pendingNext === mailbox else { return }
    run.pendingNext = nil
    self.giveUp(inside: index)
    mailbox.post(.failure(CancellationError()))
  }

  private func finish(_ run: AsyncUnaryRun<Response>, _ index: Int, with response: Response) {
    guard self.runs[index] === run else { return }
    if run.pendingNext != nil { self.giveUp(inside: index) }
    self.runs[index] = nil
    run.job = nil
    run.end(with: nil)
    self.ascend(from: index - 1, response)
  }

  /// Gives up what goes on inside the stage at `index`, which lives on.
  private func giveUp(inside index: Int) {
    self.visit += 1
    self.endRuns(inside: index)
    self.position = .asyncStage(index)
    if !self.isReleased { self.abandonInside() }
  }

  @inline(__always)
  private func endRuns(inside index: Int) {
    if self.hasRuns { self.endAllRuns(inside: index) }
  }

  private func endAllRuns(inside index: Int) {
    for (stage, run) in self.runs where stage > index {
      self.runs[stage] = nil
      run.end(with: nil)
    }
  }
}

/// How many functions of a chain may stand on each other's stack. What goes on beyond that goes on later, so that the stack
/// is bounded, however many hooks proceed and retry at once. Outside of the chain, which is generic.
private let maximumDepth = 16
