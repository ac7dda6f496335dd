/// The caller of a unary call: a completion handler, or one task that waits for the response and also runs the call's async
/// interceptors.
final class UnarySide: CallSide {
  /// What the waiting task is to do next.
  private enum Wakeup: Sendable {
    case run(Job)
    case finish(AnyResponse)
  }

  private let message: any AnyMessage
  /// Called once, on the executor. Without it, ``response(of:)`` is to be called.
  private var completion: (@Sendable (AnyResponse) -> Void)?
  /// Runs async interceptors where the call was made, if there is a completion handler.
  private var detachedRunner: Mailbox<Void>?
  private var waitingTask: UnsafeContinuation<Wakeup, Never>?
  private var jobs: [Job] = []
  /// The outcome for the waiting task.
  private var response: AnyResponse?

  init(_ message: any AnyMessage, completion: (@Sendable (AnyResponse) -> Void)? = nil) {
    self.message = message
    self.completion = completion
  }

  // MARK: The waiting task

  /// Starts the call and waits for its response. To be called once, by one task. Cancelling the task cancels the call.
  nonisolated(nonsending) static func response(of call: Call, _ side: Confined<UnarySide>) async
    -> AnyResponse
  {
    await withTaskCancellationHandler {
      let wakeup: Wakeup = await withUnsafeContinuation { continuation in
        if call.executor.isCurrent {
          side.value.start(call, waking: continuation)
        } else {
          call.executor.execute { side.value.start(call, waking: continuation) }
        }
      }
      switch wakeup {
      case .finish(let response): return response
      case .run(let job): return await Self.response(of: call, side, after: job)
      }
    } onCancel: {
      call.cancel()
    }
  }

  /// Runs the jobs of async interceptors until the response is there.
  private nonisolated(nonsending) static func response(
    of call: Call,
    _ side: Confined<UnarySide>,
    after first: Job
  ) async -> AnyResponse {
    var job = first
    while true {
      job.start(on: call.executor)
      let wakeup: Wakeup = await withUnsafeContinuation { continuation in
        call.run { _ in side.value.wait(continuation) }
      }
      switch wakeup {
      case .finish(let response): return response
      case .run(let next): job = next
      }
    }
  }

  private func start(_ call: Call, waking continuation: UnsafeContinuation<Wakeup, Never>) {
    call.startOnExecutor()
    self.wait(continuation)
  }

  private func wait(_ continuation: UnsafeContinuation<Wakeup, Never>) {
    if let job = self.takeJob() {
      continuation.resume(returning: .run(job))
    } else if let response = self.response {
      continuation.resume(returning: .finish(response))
    } else {
      self.waitingTask = continuation
    }
  }

  // MARK: Jobs

  var runsJobsApart: Bool { self.completion != nil }

  func prepareForJobs(on executor: any CallExecutor) {
    self.detachedRunner = Mailbox.detached(on: executor)
  }

  func run(_ job: Job, on executor: any CallExecutor) {
    if let runner = self.detachedRunner {
      runner.run(job)
    } else if let waitingTask = self.waitingTask.take() {
      waitingTask.resume(returning: .run(job))
    } else {
      self.jobs = self.jobs + [job]
    }
  }

  private func takeJob() -> Job? {
    guard let job = self.jobs.first else { return nil }
    self.jobs = Array(self.jobs.dropFirst())
    return job
  }

  // MARK: CallSide

  func makeRequest(_ head: RequestHead) -> RequestPart { .whole(head, self.message) }

  var hasOutgoing: Bool { false }

  func takeOutgoing(isObsolete: @autoclosure () -> Bool) -> RequestPart? { nil }

  func outgoingWasTaken() {}

  /// The only result ends the call.
  var hasDelivered: Bool { false }

  var demand: Int { .max }

  func deliver(_ result: ResultPart) {}

  func complete(with end: ResultPart) {
    guard case .whole(let response) = end else { return }
    guard let completion = self.completion.take() else {
      if let waitingTask = self.waitingTask.take() {
        waitingTask.resume(returning: .finish(response))
      } else {
        self.response = response
      }
      return
    }
    self.detachedRunner?.post(.success(()))
    completion(response)
  }

  func release() {}

  func end(of error: ConnectError) -> ResultPart { .whole(AnyResponse(error: error)) }

  func outcome(of end: ResultPart, after attempts: Attempts) -> CallOutcome {
    let response: AnyResponse? = if case .whole(let response) = end { response } else { nil }
    let error = response?.error
    return CallOutcome(
      headers: response?.headers ?? Headers(),
      trailers: response?.trailers ?? Headers(),
      error: error,
      facts: attempts.facts(messagesSent: 1, messagesReceived: error == nil ? 1 : 0)
    )
  }

  func end(_ end: ResultPart, changedTo outcome: CallOutcome) -> ResultPart {
    guard case .whole(var response) = end else { return end }
    response.take(outcome)
    return .whole(response)
  }
}

extension AnyResponse {
  /// Takes over what call hooks have made of the call's outcome.
  fileprivate mutating func take(_ outcome: CallOutcome) {
    self.headers = outcome.headers
    self.trailers = outcome.trailers
    if let error = outcome.error { self.outcome = .error(error) }
  }
}
