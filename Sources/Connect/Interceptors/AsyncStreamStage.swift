internal import DequeModule

/// An interceptor of streams in its async form, as a stage of a ``StreamChain``.
///
/// Its body runs in a task of its own. Request messages that come from outside are kept here until the body,
/// or what it gave to `next`, asks for them; results that come from inside go straight to whoever asks.
/// Nothing is brought that was not asked for.
///
/// Confined to the call's executor, which makes it `Sendable`.
final class AsyncStreamStage<RequestMessage: Sendable, ResponseMessage: Sendable>: @unchecked Sendable {
  typealias Chain = StreamChain<RequestMessage, ResponseMessage>
  typealias Next = @Sendable (StreamRequest<RequestMessage>) async throws -> StreamResponse<ResponseMessage>
  typealias Body =
    @Sendable (StreamRequest<RequestMessage>, @escaping Next) async throws -> StreamResponse<
      ResponseMessage
    >
  typealias Result = StreamResult<ResponseMessage>
  typealias Run = AsyncStreamRun<RequestMessage, ResponseMessage>
  typealias NextAttempt = AsyncStreamAttempt<RequestMessage, ResponseMessage>
  typealias Reader = AsyncStreamReader<RequestMessage>

  private static var maximumUnreadMessages: Int { 16 }

  private let index: Int
  private let interceptor: any Interceptor.Type
  private unowned let chain: Chain
  private unowned let call: Call
  private let body: Body

  /// One run of the body. A new attempt that begins further out has another.
  private var run: Run?

  init(index: Int, interceptor: any Interceptor.Type, chain: Chain, body: @escaping Body) {
    self.index = index
    self.interceptor = interceptor
    self.chain = chain
    self.call = chain.call
    self.body = body
  }

  // MARK: For the chain

  private(set) lazy var requestSide = RequestSide(self)
  private(set) lazy var resultSide = ResultSide(self)

  /// Runs jobs of stages inside, while a `next` is under way.
  var innerRunner: (any JobRunner)? { self.run?.next?.runner }

  func reset() {
    let run = self.run
    self.run = nil
    run?.cancel()
  }

  /// Lets the body see `error` as the end of what it waits for; the call is over.
  func end(with error: ConnectError) {
    if let waiting = self.run?.next?.waiting {
      self.run?.next?.waiting = nil
      waiting.post(.success(.failed(error)))
    }
    self.reset()
  }

  func charge(_ byteCount: Int) {
    self.run?.charge(byteCount)
  }

  /// The interceptor, if it has something that it has not passed on.
  var holder: HookHolder? {
    guard let run = self.run, !run.isClosed else { return nil }
    guard run.hasCalledNext else { return HookHolder(interceptor: self.interceptor, held: .request) }
    guard run.isWanted, run.next?.waiting == nil else { return nil }
    return HookHolder(interceptor: self.interceptor, held: .response)
  }

  // MARK: The body

  private func start(_ head: HTTPRequest<Void>) {
    self.reset()
    let call = self.call
    let run = Run(call: call, head: head)
    self.run = run
    let body = self.body
    let request = StreamRequest(
      head: head,
      messages: PulledSequence<RequestMessage> {
        let reader = Reader()
        return { try await self.pullMessage(reader, of: run) }
      }
    )
    let job = Job {
      do {
        let response = try await body(request) { try await self.next($0, of: run) }
        let pull = response.results.makePull()
        var isComplete = false
        while !isComplete {
          try await self.awaitDemand(of: run)
          let result = try await pull() ?? .complete(code: .ok, error: nil, trailers: Headers())
          if case .complete = result { isComplete = true }
          call.executor.run { self.pass(result, of: run) }
        }
      } catch {
        let error = ConnectError(error)
        call.executor.run { self.pass(.failed(error), of: run) }
      }
    }
    run.job = job
    self.chain.runner(around: self.index).run(job)
    call.hookWaits()
  }

  /// Gives a result of the body outwards.
  private func pass(_ result: Result, of run: Run) {
    guard self.run === run, !run.isClosed else { return }
    run.isWanted = false
    run.results.append(result.consistent)
    if case .complete = result {
      run.isClosed = true
      run.next?.cancel()
      run.next = nil
      self.chain.closeInside(of: self.index)
    }
    self.chain.pump()
  }

  private func awaitDemand(of run: Run) async throws {
    try await self.wait(in: run) { mailbox in
      if run.isWanted { mailbox.post(.success(())) } else { run.demand = mailbox }
    } onCancel: { _ in
      run.demand = nil
    }
  }

  /// Waits for what `start` arranges to be posted. Throws if the run is over or the task is cancelled.
  ///
  /// - Parameter onCancel: Undoes what `start` has arranged, so that nothing is posted that nobody reads.
  private func wait<Value: Sendable>(
    in run: Run,
    _ start: @escaping @Sendable (Mailbox<Value>) -> Void,
    onCancel: @escaping @Sendable (Mailbox<Value>) -> Void
  ) async throws -> Value {
    let executor = run.call.executor
    let mailbox = Mailbox<Value>(executor: executor)
    return try await withTaskCancellationHandler {
      try await mailbox.value {
        guard self.run === run, !mailbox.isCancelled else {
          mailbox.post(.failure(CancellationError()))
          return
        }
        start(mailbox)
      }
    } onCancel: {
      executor.run {
        mailbox.isCancelled = true
        if self.run === run { onCancel(mailbox) }
        mailbox.post(.failure(CancellationError()))
      }
    }
  }
}

// MARK: - Request messages, as the body reads them

extension AsyncStreamStage {
  private func pullMessage(_ reader: Reader, of run: Run) async throws -> RequestMessage? {
    try await self.wait(in: run) { mailbox in
      if run.reader !== reader {
        guard reader.position == run.firstMessage else {
          mailbox.post(.failure(ConnectError.tooMuchToReplay(run.call.method)))
          return
        }
        run.reader?.end(throwing: CancellationError())
        run.reader = reader
      }
      reader.waiting = mailbox
      self.feedReader(of: run)
      self.chain.pump()
    } onCancel: { mailbox in
      if reader.waiting === mailbox { reader.waiting = nil }
    }
  }

  private func feedReader(of run: Run) {
    guard let reader = run.reader, let waiting = reader.waiting else { return }
    let index = reader.position - run.firstMessage
    if index < run.messages.count {
      reader.waiting = nil
      reader.position += 1
      waiting.post(.success(run.messages[index]))
      run.trim()
    } else if run.hasRequestEnded {
      reader.waiting = nil
      waiting.post(.success(nil))
    }
  }

  fileprivate func accept(_ part: RequestPart<RequestMessage>) {
    switch part {
    case .head(let head):
      self.start(head)
    case .message(let message):
      self.run?.messages.append(message)
    case .end:
      self.run?.hasRequestEnded = true
    }
    if let run = self.run { self.feedReader(of: run) }
  }

  fileprivate var hasRoomForMessages: Bool {
    guard let run = self.run else { return true }
    let read = (run.reader?.position ?? run.firstMessage) - run.firstMessage
    return run.messages.count - read < Self.maximumUnreadMessages
  }
}

// MARK: - next

extension AsyncStreamStage {
  private func next(
    _ request: StreamRequest<RequestMessage>,
    of run: Run
  ) async throws -> StreamResponse<ResponseMessage> {
    let executor = run.call.executor
    let attempt: NextAttempt = try await self.wait(in: run) {
      self.beginNext(request.head, of: run, $0)
    } onCancel: { _ in
    }
    // Both tasks begin here, where `next` was called, and so see the task-local values that are bound here.
    Task(executorPreference: executor.taskExecutor) { try? await attempt.runner.value {} }
    let sender = Job {
      do {
        let pull = request.messages.makePull()
        while let message = try await pull() {
          try await self.send(.message(message), attempt, of: run)
        }
        try await self.send(.end, attempt, of: run)
      } catch {
        let error = ConnectError(error)
        executor.run {
          guard self.isCurrent(attempt, of: run) else { return }
          self.chain.answer(at: self.index + 1, with: [.failed(error)])
        }
      }
    }
    sender.start(on: executor)
    executor.run {
      if self.isCurrent(attempt, of: run) { attempt.sender = sender } else { sender.cancel() }
    }
    return StreamResponse(
      results: PulledSequence { { try await self.pullResult(attempt, of: run) } }
    )
  }

  private func isCurrent(_ attempt: NextAttempt, of run: Run) -> Bool {
    self.run === run && run.next === attempt && !attempt.hasEnded
  }

  private func beginNext(_ head: HTTPRequest<Void>, of run: Run, _ mailbox: Mailbox<NextAttempt>) {
    if let earlier = run.next, !earlier.hasEnded {
      mailbox.post(
        .failure(
          ConnectError(
            code: .internalError,
            message: "an interceptor called next while the results of an earlier next had not ended"
          )
        )
      )
      return
    }
    if run.hasCalledNext {
      guard run.firstMessage == 0, !run.hasPassedOut, run.call.takeRetry() else {
        mailbox.post(.failure(run.lastError ?? .retriesUsedUp(run.call.method)))
        return
      }
    }
    run.hasCalledNext = true
    if !self.chain.isEncoded { run.restartCount() }
    let attempt = NextAttempt(runner: Mailbox<Void>(executor: run.call.executor))
    run.next = attempt
    self.chain.reopenInside(of: self.index)
    var head = head
    head.complete(from: run.head.head)
    attempt.parts = [.head(head)]
    mailbox.post(.success(attempt))
    self.chain.pump()
  }

  private func send(
    _ part: RequestPart<RequestMessage>,
    _ attempt: NextAttempt,
    of run: Run
  ) async throws {
    try await self.wait(in: run) { (mailbox: Mailbox<Void>) in
      guard self.isCurrent(attempt, of: run) else {
        mailbox.post(.failure(CancellationError()))
        return
      }
      attempt.parts.append(part)
      attempt.room = mailbox
      self.chain.pump()
    } onCancel: { mailbox in
      if attempt.room === mailbox { attempt.room = nil }
    }
  }

  fileprivate func takePart() -> RequestPart<RequestMessage>? {
    guard let attempt = self.run?.next, let part = attempt.parts.popFirst() else { return nil }
    if attempt.parts.isEmpty {
      attempt.room?.post(.success(()))
      attempt.room = nil
    }
    return part
  }

  private func pullResult(_ attempt: NextAttempt, of run: Run) async throws -> Result? {
    try await self.wait(in: run) { mailbox in
      guard run.next === attempt, !attempt.isGivenUp else {
        mailbox.post(.failure(CancellationError()))
        return
      }
      guard !attempt.hasEnded else {
        mailbox.post(.success(nil))
        return
      }
      attempt.waiting = mailbox
      self.chain.pump()
    } onCancel: { _ in
      guard self.isCurrent(attempt, of: run) else { return }
      attempt.cancel()
      self.chain.giveUpInside(of: self.index)
    }
  }
}

// MARK: - Results

extension AsyncStreamStage {
  fileprivate var isAwaitingResult: Bool { self.run?.next?.waiting != nil }

  fileprivate func accept(_ result: Result) {
    guard let run = self.run, let attempt = run.next, let waiting = attempt.waiting else { return }
    attempt.waiting = nil
    if case .complete(_, let error, _) = result {
      run.lastError = error
      attempt.end()
    }
    waiting.post(.success(result))
    run.call.hookWaits()
  }

  /// Lets the body go on to its next result.
  fileprivate func demandResult() {
    guard let run = self.run, run.results.isEmpty, !run.isClosed else { return }
    run.isWanted = true
    run.demand?.post(.success(()))
    run.demand = nil
  }

  fileprivate func takeResult() -> Result? {
    guard let run = self.run, let result = run.results.popFirst() else { return nil }
    run.hasPassedOut = true
    return result
  }
}

extension AsyncStreamStage {
  /// The stage's place in the lane down.
  final class RequestSide: LaneStage<RequestPart<RequestMessage>>,
    @unchecked Sendable
  {
    private unowned let stage: AsyncStreamStage

    init(_ stage: AsyncStreamStage) { self.stage = stage }

    override var hasRoom: Bool { self.stage.hasRoomForMessages }
    override var isEmpty: Bool { false }
    override func accept(_ part: RequestPart<RequestMessage>, mayPass: Bool) -> RequestPart<RequestMessage>? {
      self.stage.accept(part)
      return nil
    }
    override func takeReady() -> RequestPart<RequestMessage>? { self.stage.takePart() }
    override func wants(_ isWantedBehind: Bool) -> Bool { self.hasRoom }
  }

  /// The stage's place in the lane up.
  final class ResultSide: LaneStage<Result>, @unchecked Sendable {
    private unowned let stage: AsyncStreamStage

    init(_ stage: AsyncStreamStage) { self.stage = stage }

    override var hasRoom: Bool { self.stage.isAwaitingResult }
    override var isEmpty: Bool { false }
    override func accept(_ result: Result, mayPass: Bool) -> Result? {
      self.stage.accept(result)
      return nil
    }
    override func takeReady() -> Result? { self.stage.takeResult() }
    override func wants(_ isWantedBehind: Bool) -> Bool {
      if isWantedBehind { self.stage.demandResult() }
      return self.hasRoom
    }
  }
}
