/// The tasks of an ``AsyncStreamStage``. They may run anywhere, and use the stage only on the call's executor.
struct AsyncStreamTask: Sendable {
  typealias Stage = AsyncStreamStage

  private let executor: any CallExecutor
  private let here: Confined<(stage: AsyncStreamStage, run: AsyncStreamRun)>

  init(_ stage: AsyncStreamStage, _ run: AsyncStreamRun, on executor: any CallExecutor) {
    self.executor = executor
    self.here = Confined((stage, run), to: executor)
  }

  /// Runs the body and passes its results outwards, each on demand.
  func makeJob(_ body: @escaping Stage.Body, _ head: RequestHead) -> Job {
    Job {
      do {
        let pull = try await body(head, self.messages) { try await self.next($0, $1) }.makePull()
        var isComplete = false
        while !isComplete {
          try await self.wait {
            $0.awaitDemand(of: $1, $2)
          } onCancel: { (_, run, _: Mailbox<Void>) in
            run.demand = nil
          }
          let result = try await pull() ?? .end(nil, trailers: Headers())
          isComplete = result.isEnd
          self.perform { $0.pass(result, of: $1) }
        }
      } catch let retry as RetryRequest {
        self.perform { $0.retry(retry, of: $1) }
      } catch {
        let error = ConnectError(error)
        self.perform { $0.pass(.failed(error), of: $1) }
      }
    }
  }

  /// The request's messages, as the body reads them. Each iteration begins with the first message.
  private var messages: Stage.Messages {
    Stage.Messages {
      let reader = Confined(AsyncStreamReader(), to: self.executor)
      return {
        try await self.wait {
          $0.read(reader.value, of: $1, $2)
        } onCancel: { (_, _, mailbox: Mailbox<(any AnyMessage)?>) in
          if reader.value.waiting === mailbox { reader.value.waiting = nil }
        }
      }
    }
  }

  private func next(_ head: RequestHead, _ messages: Stage.Messages) async throws -> Stage.Results {
    let (next, runner): Stage.Begun = try await self.wait { $0.begin(head, of: $1, $2) }
    // Both tasks begin here, where `next` was called, and so see the task-local values that are bound here.
    runner.startJobs()
    let sender = Job {
      do {
        let pull = messages.makePull()
        while let message = try await pull() { try await self.send(.message(message), next) }
        try await self.send(.end, next)
      } catch {
        let error = ConnectError(error)
        self.perform { $0.failRequest(error, next.value, of: $1) }
      }
    }
    sender.start(on: self.executor)
    self.perform {
      if $0.isCurrent($1, next.value) { next.value.sender = sender } else { sender.cancel() }
    }
    return Stage.Results {
      {
        try await self.wait {
          $0.pullResult(next.value, of: $1, $2)
        } onCancel: { stage, run, _ in
          stage.giveUp(next.value, of: run)
        }
      }
    }
  }

  private func send(_ part: RequestPart, _ next: Confined<AsyncStreamNext>) async throws {
    try await self.wait {
      $0.send(part, next.value, of: $1, $2)
    } onCancel: { (_, _, mailbox: Mailbox<Void>) in
      if next.value.room === mailbox { next.value.room = nil }
    }
  }

  // MARK: On the executor

  private func perform(_ work: @escaping @Sendable (AsyncStreamStage, AsyncStreamRun) -> Void) {
    self.executor.run { work(self.here.value.stage, self.here.value.run) }
  }

  /// Waits for what `start` arranges to be posted. Throws if the run is over or the task is cancelled.
  ///
  /// - Parameter onCancel: Undoes `start`, so that no value is posted without a reader.
  private func wait<Value: Sendable>(
    _ start: @escaping @Sendable (AsyncStreamStage, AsyncStreamRun, Mailbox<Value>) -> Void,
    onCancel: @escaping @Sendable (AsyncStreamStage, AsyncStreamRun, Mailbox<Value>) -> Void = { _, _, _ in }
  ) async throws -> Value {
    try await Mailbox<Value>(executor: self.executor)
      .value(for: Waiter(here: self.here, start: start, onCancel: onCancel))
  }

  private struct Waiter<Value: Sendable>: MailboxWaiter {
    let here: Confined<(stage: AsyncStreamStage, run: AsyncStreamRun)>
    let start: @Sendable (AsyncStreamStage, AsyncStreamRun, Mailbox<Value>) -> Void
    let onCancel: @Sendable (AsyncStreamStage, AsyncStreamRun, Mailbox<Value>) -> Void

    func begin(_ mailbox: Mailbox<Value>) {
      let (stage, run) = self.here.value
      if stage.isCurrent(run), !mailbox.isCancelled {
        self.start(stage, run, mailbox)
      } else {
        mailbox.post(.failure(CancellationError()))
      }
    }

    func cancel(_ mailbox: Mailbox<Value>, inJob: Bool) {
      let (stage, run) = self.here.value
      mailbox.isCancelled = true
      if stage.isCurrent(run) { self.onCancel(stage, run, mailbox) }
      mailbox.post(.failure(CancellationError()))
    }
  }
}
