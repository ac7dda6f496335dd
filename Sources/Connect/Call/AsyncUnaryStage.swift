/// An interceptor of unary calls in its async form, as a stage of a ``Pipeline``.
///
/// Confined to the call's executor.
final class AsyncUnaryStage: AsyncStage {
  typealias Body =
    nonisolated(nonsending) @Sendable (RequestPart, @escaping ErasedUnaryNext) async throws -> ResultPart

  /// One run of the body. A new attempt that begins further out starts another run.
  private final class Run {
    /// Keeps the call alive while the body runs.
    let call: Call
    let head: RequestHead?
    var job: Job?
    var hasCalledNext = false
    /// Waits for the response from inside.
    var pendingNext: Mailbox<ResultPart>?
    var lastResponse: ResultPart?
    /// A request on its way inwards.
    var request: RequestPart?
    /// The body's response.
    var result: ResultPart?

    init(_ call: Call, _ head: RequestHead?) {
      self.call = call
      self.head = head
    }

    /// Cancels the body's task. A pending `next` returns or throws `result`.
    func end(with result: Result<ResultPart, any Error>) {
      self.job.take()?.cancel()
      self.pendingNext.take()?.post(result)
    }
  }

  /// A `next` of the body.
  private struct Next: MailboxWaiter {
    let here: Confined<(stage: AsyncUnaryStage, run: Run)>
    let request: RequestPart

    func begin(_ mailbox: Mailbox<ResultPart>) {
      let (stage, run) = self.here.value
      stage.next(of: run, self.request, mailbox)
    }

    func cancel(_ mailbox: Mailbox<ResultPart>, inJob: Bool) {
      let (stage, run) = self.here.value
      stage.cancelNext(of: run, mailbox, inJob: inJob)
    }
  }

  private let body: Body
  private var run: Run?

  init(_ form: Stage.Form, of interceptor: any Interceptor.Type, body: @escaping Body) {
    self.body = body
    super.init(form, of: interceptor)
  }

  // MARK: AsyncStage

  override func accept(_ part: RequestPart, of call: Call, in pipeline: Pipeline) {
    self.giveUp()
    let run = Run(call, part.head)
    self.run = run
    let body = self.body
    let form = self.form
    let executor = call.executor
    let here = Confined((stage: self, run: run), to: executor)
    let next: ErasedUnaryNext = { request in
      try await Mailbox<ResultPart>(executor: executor).value(for: Next(here: here, request: request))
    }
    let job = Job {
      let response: ResultPart
      do {
        response = try await body(part, next)
      } catch {
        response = form.failure(ConnectError(error))
      }
      if executor.isCurrent {
        here.value.stage.finish(here.value.run, with: response)
      } else {
        executor.execute { here.value.stage.finish(here.value.run, with: response) }
      }
    }
    run.job = job
    pipeline.run(job, of: self.index, call)
    HoldWatch.hookWaits(in: call)
  }

  override var keepsPart: Bool { self.run.map { $0.request != nil || $0.result != nil } ?? false }

  override func takeReadyRequest() -> RequestPart? { self.run?.request.take() }

  override func wantsResult(_ isWanted: Bool) -> Bool { self.run?.pendingNext != nil }

  override func take(_ result: consuming ResultPart) {
    guard let run = self.run, let mailbox = run.pendingNext.take() else { return }
    run.lastResponse = copy result
    mailbox.post(.success(result))
  }

  override func takeReadyResult() -> ResultPart? {
    guard let result = self.run?.result.take() else { return nil }
    self.run = nil
    return result
  }

  override var runner: (any JobRunner)? { self.run?.pendingNext }

  override var held: HookHolder.Held? {
    guard let run = self.run, run.pendingNext == nil, run.result == nil else { return nil }
    return run.hasCalledNext ? .response : .request
  }

  override var holdsRequest: Bool { self.run?.hasCalledNext == false }

  override func giveUp() {
    self.run.take()?.end(with: .failure(CancellationError()))
  }

  override func finish(with error: ConnectError) -> () -> Void {
    guard let run = self.run.take() else { return {} }
    return { run.end(with: .success(self.form.failure(error))) }
  }

  // MARK: The body

  private func next(of run: Run, _ request: RequestPart, _ mailbox: Mailbox<ResultPart>) {
    guard self.run === run, !mailbox.isCancelled else {
      mailbox.post(.failure(CancellationError()))
      return
    }
    guard run.pendingNext == nil else {
      mailbox.post(
        .failure(
          ConnectError(
            code: .internalError,
            message:
              "an interceptor called next while an earlier next was pending; it has to await that one first"
          )
        )
      )
      return
    }
    let isAgain = run.hasCalledNext
    guard !isAgain || run.call.attempts.takeRetry(after: .zero, run.call) else {
      mailbox.post(
        run.lastResponse.map { .success($0) } ?? .failure(ConnectError.retriesUsedUp(run.call.plan.info))
      )
      return
    }
    run.hasCalledNext = true
    run.pendingNext = mailbox
    run.request = request.inPlace(of: run.head, isUnary: true)
    run.call.pipeline.active.mayKeep(at: self.index)
    guard isAgain else {
      run.call.pump()
      return
    }
    run.call.pipeline.perform(run.call) { pipeline in
      if self.run === run { pipeline.close(insideOf: self.index, cuttingAt: nil, run.call) }
    }
  }

  /// The task that waits in `next` was cancelled.
  ///
  /// - Parameter inJob: Whether the task was running an inner interceptor, whose end has come here as a response.
  private func cancelNext(of run: Run, _ mailbox: Mailbox<ResultPart>, inJob: Bool) {
    mailbox.isCancelled = true
    guard self.run === run else { return }
    if run.pendingNext === mailbox {
      run.pendingNext = nil
      self.giveUpInside(of: run)
    } else if !inJob {
      return
    }
    mailbox.cancel()
  }

  private func finish(_ run: Run, with response: ResultPart) {
    guard self.run === run else { return }
    run.job = nil
    if let mailbox = run.pendingNext.take() {
      self.giveUpInside(of: run)
      mailbox.post(.failure(CancellationError()))
    }
    if let retry = response.error?.exception as? RetryRequest {
      self.retry(retry, of: run)
    } else {
      self.pass(response, of: run)
    }
  }

  private func pass(_ response: ResultPart, of run: Run) {
    run.result = response
    run.call.pipeline.active.mayKeep(at: self.index)
    run.call.pump()
  }

  private func retry(_ retry: RetryRequest, of run: Run) {
    let call = run.call
    call.pipeline.perform(call) { pipeline in
      guard self.run === run else { return }
      if pipeline.retry(retry, at: self.index, call) {
        pipeline.retryCause = run.lastResponse?.error
        return
      }
      self.pass(
        run.lastResponse ?? self.form.failure(.retriesUsedUp(call.plan.info)),
        of: run
      )
    }
  }

  private func giveUpInside(of run: Run) {
    run.request = nil
    run.call.pipeline.perform(run.call) { pipeline in
      // A hook that was on the stack may have started an attempt further out.
      if self.run === run { pipeline.close(insideOf: self.index, cuttingAt: self.index + 1, run.call) }
    }
  }
}
