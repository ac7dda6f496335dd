internal import DequeModule

/// An interceptor of streams in its async form, as a stage of a ``Pipeline``.
///
/// Its body runs in a separate task, see ``AsyncStreamTask``. Request messages from outside wait here until they are
/// read, by the body or through the sequence that it passed to `next`. Results from inside go straight to the waiting
/// reader. Nothing moves without demand.
///
/// Confined to the call's executor.
final class AsyncStreamStage: AsyncStage {
  typealias Messages = PulledSequence<any AnyMessage>
  typealias Results = PulledSequence<ResultPart>
  typealias Next = @Sendable (RequestHead, Messages) async throws -> Results
  typealias Body = @Sendable (RequestHead, Messages, @escaping Next) async throws -> Results
  /// A `next` that has begun, and its ``AsyncStreamNext/runner``, which its tasks use anywhere.
  typealias Begun = (Confined<AsyncStreamNext>, runner: Mailbox<Void>)

  private let body: Body
  /// Whether messages are bytes. Then they are counted once, since a retry here does not encode them again.
  private let isEncoded: Bool
  private let maximumReplayBytes: Int
  /// The current run of the body. A new attempt that begins further out starts another run.
  private var run: AsyncStreamRun?

  init(
    of interceptor: any Interceptor.Type,
    isEncoded: Bool,
    maximumReplayBytes: Int,
    body: @escaping Body
  ) {
    self.isEncoded = isEncoded
    self.maximumReplayBytes = maximumReplayBytes
    self.body = body
    super.init(isEncoded ? .streamBytes : .stream, of: interceptor)
  }

  // MARK: AsyncStage

  override var runner: (any JobRunner)? { self.run?.next?.runner }

  override func giveUp() {
    self.run.take()?.cancel()
  }

  override func finish(with error: ConnectError) -> () -> Void {
    guard let run = self.run.take() else { return {} }
    return {
      run.next?.waiting.take()?.post(.success(.failed(error)))
      run.cancel()
    }
  }

  override func charge(_ byteCount: Int) {
    self.run?.charge(byteCount)
  }

  override var held: HookHolder.Held? {
    guard let run = self.run, !run.isClosed else { return nil }
    guard run.hasCalledNext else { return .request }
    return run.isWanted && run.next?.waiting == nil ? .response : nil
  }

  override var hasRoomForRequest: Bool { self.run?.hasRoomForMessage ?? true }

  override func accept(_ part: RequestPart, of call: Call, in pipeline: Pipeline) {
    switch part {
    case .head(let head), .whole(let head, _), .wholeBytes(let head, _): self.start(head, call, pipeline)
    case .message(let message): self.run?.messages.append(message)
    case .bytes(let bytes): self.run?.messages.append(MessageBox(bytes))
    case .end: self.run?.hasRequestEnded = true
    }
    if let run = self.run { self.feedReader(of: run) }
  }

  override var keepsPart: Bool {
    guard let run = self.run else { return false }
    return !run.results.isEmpty || run.next?.parts.isEmpty == false
  }

  override func takeReadyRequest() -> RequestPart? {
    guard let next = self.run?.next, let part = next.parts.popFirst() else { return nil }
    if next.parts.isEmpty { next.room.take()?.post(.success(())) }
    return part
  }

  override func wantsResult(_ isWanted: Bool) -> Bool {
    if isWanted, let run = self.run, run.results.isEmpty, !run.isClosed {
      run.isWanted = true
      run.demand.take()?.post(.success(()))
    }
    return self.run?.next?.waiting != nil
  }

  override func take(_ result: consuming ResultPart) {
    guard let run = self.run, let next = run.next, let waiting = next.waiting.take() else { return }
    if result.isEnd {
      run.lastEnd = copy result
      next.end()
    }
    waiting.post(.success(result))
  }

  override func takeReadyResult() -> ResultPart? {
    guard let run = self.run, let result = run.results.popFirst() else { return nil }
    run.hasPassedOut = true
    return result
  }

  // MARK: The body

  private func start(_ head: RequestHead, _ call: Call, _ pipeline: Pipeline) {
    self.giveUp()
    let run = AsyncStreamRun(call, head: head, maximumReplayBytes: self.maximumReplayBytes)
    self.run = run
    let job = AsyncStreamTask(self, run, on: call.executor).makeJob(self.body, head)
    run.job = job
    pipeline.active.demandMayHaveChanged(at: self.index)
    pipeline.run(job, of: self.index, call)
    HoldWatch.hookWaits(in: call)
  }

  /// - Parameter next: Has to be current, too, if it is given.
  func isCurrent(_ run: AsyncStreamRun, _ next: AsyncStreamNext? = nil) -> Bool {
    self.run === run && next.map { run.next === $0 && !$0.hasEnded } ?? true
  }

  /// Passes a result of the body outwards.
  func pass(_ result: ResultPart, of run: AsyncStreamRun) {
    guard self.run === run, !run.isClosed else { return }
    run.isWanted = false
    run.results.append(result)
    run.call.pipeline.active.mayKeep(at: self.index)
    guard result.isEnd else {
      run.call.pump()
      return
    }
    run.isClosed = true
    run.next.take()?.cancel()
    self.perform(of: run) { $0.close(insideOf: self.index, cuttingAt: self.index, run.call) }
  }

  /// Starts the attempt that the body asks for instead of a result.
  func retry(_ retry: RetryRequest, of run: AsyncStreamRun) {
    guard self.run === run, !run.isClosed else { return }
    let call = run.call
    self.perform(of: run) { pipeline in
      if !run.hasPassedOut, run.results.isEmpty, pipeline.retry(retry, at: self.index, call) {
        pipeline.retryCause = run.lastError
        return
      }
      // The messages of an attempt that had no error are gone.
      let last = run.lastError == nil ? nil : run.lastEnd
      self.pass(last ?? .failed(.retriesUsedUp(call.plan.info)), of: run)
    }
  }

  /// Tells the body when a result is wanted.
  func awaitDemand(of run: AsyncStreamRun, _ mailbox: Mailbox<Void>) {
    if run.isWanted { mailbox.post(.success(())) } else { run.demand = mailbox }
  }

  // MARK: The request's messages

  func read(_ reader: AsyncStreamReader, of run: AsyncStreamRun, _ mailbox: Mailbox<(any AnyMessage)?>) {
    if run.reader !== reader {
      guard reader.position == run.firstMessage else {
        mailbox.post(.failure(ConnectError.tooMuchToReplay(run.call.plan.info)))
        return
      }
      run.reader?.end(throwing: CancellationError())
      run.reader = reader
    }
    reader.waiting = mailbox
    self.feedReader(of: run)
    run.call.pump()
  }

  private func feedReader(of run: AsyncStreamRun) {
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

  // MARK: next

  func begin(_ head: RequestHead, of run: AsyncStreamRun, _ mailbox: Mailbox<Begun>) {
    if let earlier = run.next, !earlier.hasEnded {
      mailbox.post(
        .failure(
          ConnectError(
            code: .internalError,
            message: "an interceptor called next while the results of an earlier next had not ended; "
              + "it has to read those to their end first"
          )
        )
      )
      return
    }
    let mustClose = run.hasCalledNext || run.isClosed
    if run.hasCalledNext {
      guard run.firstMessage == 0, !run.hasPassedOut,
        run.call.attempts.takeRetry(after: .zero, run.call)
      else {
        mailbox.post(.failure(run.lastError ?? .retriesUsedUp(run.call.plan.info)))
        return
      }
    }
    run.hasCalledNext = true
    if !self.isEncoded { run.restartCount() }
    let next = AsyncStreamNext(runner: Mailbox<Void>(executor: run.call.executor))
    run.next = next
    next.parts = [.head(head.completed(from: run.head))]
    run.call.pipeline.active.mayKeep(at: self.index)
    mailbox.post(.success((Confined(next, to: run.call.executor), next.runner)))
    // Before the first `next`, nothing is inside.
    self.perform(of: run) { if mustClose { $0.close(insideOf: self.index, cuttingAt: nil, run.call) } }
  }

  func send(_ part: RequestPart, _ next: AsyncStreamNext, of run: AsyncStreamRun, _ mailbox: Mailbox<Void>) {
    guard self.isCurrent(run, next) else {
      mailbox.post(.failure(CancellationError()))
      return
    }
    next.parts.append(part)
    next.room = mailbox
    run.call.pipeline.active.mayKeep(at: self.index)
    run.call.pump()
  }

  /// The messages that were given to `next` have ended with an error.
  func failRequest(_ error: ConnectError, _ next: AsyncStreamNext, of run: AsyncStreamRun) {
    guard self.isCurrent(run, next) else { return }
    self.perform(of: run) { pipeline in
      guard self.isCurrent(run, next) else { return }
      pipeline.answer(at: self.index + 1, with: [.failed(error)], run.call)
    }
  }

  func pullResult(_ next: AsyncStreamNext, of run: AsyncStreamRun, _ mailbox: Mailbox<ResultPart?>) {
    guard run.next === next, !next.isGivenUp else {
      mailbox.post(.failure(CancellationError()))
      return
    }
    guard !next.hasEnded else {
      mailbox.post(.success(nil))
      return
    }
    next.waiting = mailbox
    run.call.pipeline.active.demandMayHaveChanged(at: self.index)
    run.call.pump()
  }

  /// The task that reads the results was cancelled: the attempt is abandoned.
  func giveUp(_ next: AsyncStreamNext, of run: AsyncStreamRun) {
    guard self.isCurrent(run, next) else { return }
    next.cancel()
    self.perform(of: run) { pipeline in
      if run.next === next { pipeline.close(insideOf: self.index, cuttingAt: self.index + 1, run.call) }
    }
  }

  /// Runs `work` with the pipeline, once no hook is on the stack. If a hook has started an attempt further out by then,
  /// the run is obsolete and `work` does not run.
  private func perform(of run: AsyncStreamRun, _ work: @escaping (Pipeline) -> Void) {
    run.call.pipeline.perform(run.call) { if self.run === run { work($0) } }
  }
}
