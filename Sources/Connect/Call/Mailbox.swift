internal import Synchronization

/// Brings events from a call's executor, in order, to the one task that waits for them.
///
/// Besides values it brings jobs: async functions, which run where the waiting task is, and so see its task-local values.
///
/// `@unchecked Sendable`: its variables are touched only on the executor, which debug builds check.
final class Mailbox<Value: Sendable>: JobRunner, @unchecked Sendable {
  enum Event: Sendable {
    case run(Job)
    case value(Result<Value, any Error>)
  }

  let executor: any CallExecutor
  private var waiting: UnsafeContinuation<Event, Never>?
  /// What has arrived and was not taken: hardly ever more than one event.
  private var firstEvent: Event?
  private var laterEvents: [Event] = []
  /// Whether the waiting task was cancelled.
  var isCancelled = false

  init(executor: any CallExecutor) {
    self.executor = executor
  }

  // MARK: On the executor

  func post(_ result: Result<Value, any Error>) {
    self.post(.value(result))
  }

  func run(_ job: Job) {
    self.post(.run(job))
  }

  private func post(_ event: Event) {
    self.executor.assertIsCurrent()
    if let waiting = self.waiting {
      self.waiting = nil
      waiting.resume(returning: event)
    } else if self.firstEvent == nil {
      self.firstEvent = event
    } else {
      self.laterEvents.append(event)
    }
  }

  /// Lets the waiting task throw, whatever has arrived before.
  func cancel() {
    self.isCancelled = true
    self.firstEvent = nil
    self.laterEvents = []
    self.post(.value(.failure(CancellationError())))
  }

  private func takeEvent() -> Event? {
    self.executor.assertIsCurrent()
    defer { if !self.laterEvents.isEmpty { self.firstEvent = self.laterEvents.removeFirst() } }
    return self.firstEvent.take()
  }

  private func receive(_ continuation: UnsafeContinuation<Event, Never>) {
    if let event = self.takeEvent() {
      continuation.resume(returning: event)
    } else {
      self.waiting = continuation
    }
  }

  // MARK: In the waiting task

  /// Runs jobs, one after the other, until a value arrives. To be called by one task at a time. Does not suspend for what
  /// arrives while the task is on the executor.
  nonisolated(nonsending) func value<Waiter: MailboxWaiter<Value>>(for waiter: Waiter) async throws -> Value {
    var event: Event?
    if self.executor.isCurrent {
      if Task.isCancelled { waiter.cancel(self, inJob: false) }
      waiter.begin(self)
      event = self.takeEvent()
    } else {
      event = await self.event(for: waiter) { waiter.begin(self) }
    }
    while true {
      switch event {
      case .value(let result)?: return try result.get()
      case .run(let job)?:
        await job.run(on: self.executor)
        if Task.isCancelled { self.executor.run { waiter.cancel(self, inJob: true) } }
      case nil: break
      }
      event = self.executor.isCurrent ? self.takeEvent() : nil
      if event == nil { event = await self.event(for: waiter) }
    }
  }

  private nonisolated(nonsending) func event<Waiter: MailboxWaiter<Value>>(
    for waiter: Waiter,
    after start: (@Sendable () -> Void)? = nil
  ) async -> Event {
    await withTaskCancellationHandler {
      await self.event(after: start)
    } onCancel: {
      self.executor.run { waiter.cancel(self, inJob: false) }
    }
  }

  private nonisolated(nonsending) func event(after start: (@Sendable () -> Void)? = nil) async -> Event {
    await withUnsafeContinuation { continuation in
      if self.executor.isCurrent {
        self.receive(continuation)
        start?()
      } else {
        self.executor.execute {
          self.receive(continuation)
          start?()
        }
      }
    }
  }
}

/// What a task waits for in a ``Mailbox``. Its functions run on the executor.
protocol MailboxWaiter<Value>: Sendable {
  associatedtype Value: Sendable

  /// The waiting begins; posts an error if the task was cancelled.
  func begin(_ mailbox: Mailbox<Value>)
  /// The task was cancelled.
  ///
  /// - Parameter inJob: Whether the task was running a job then.
  func cancel(_ mailbox: Mailbox<Value>, inJob: Bool)
}

extension Mailbox where Value == Void {
  /// A mailbox with a task that starts async interceptors with the caller's task-local values, each in a task of its own.
  /// The task ends when something is posted.
  static func detached(on executor: any CallExecutor) -> Mailbox<Void> {
    let mailbox = Mailbox<Void>(executor: executor)
    mailbox.startJobs()
    return mailbox
  }

  /// Makes a task that starts jobs, each in a task of its own, until something is posted.
  func startJobs() {
    Task(executorPreference: self.executor.taskExecutor ?? .ofCurrentTask) {
      while case .run(let job) = await self.event() { job.start(on: self.executor) }
    }
  }
}

/// Runs jobs with the task-local values of the runner's own task.
protocol JobRunner: AnyObject {
  func run(_ job: Job)
}

extension Optional where Wrapped == any TaskExecutor {
  /// Where the current task prefers to run, which a new task does not inherit; nil without a preference.
  static var ofCurrentTask: Self {
    guard #available(macOS 26.4, *) else { return nil }
    return withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() }
  }
}

/// An async function that a call wants to run, and can cancel.
///
/// It has a task of its own, from ``start(on:)``, or runs in the waiting task, by ``run(on:)``. It is cancelled on the
/// executor. Once ``cancel()`` has returned, a body with a task of its own sees itself as cancelled, even if it begins only
/// then. A body in the waiting task does not begin any more. If it has begun, its pending `next` throws, or the waiting task
/// is cancelled, too.
final class Job: Sendable {
  private enum State {
    case new
    /// The body runs in the waiting task.
    case inPlace
    /// The task runs, but ``start(on:)`` does not have it yet: the body waits, since nobody could cancel it.
    case waiting(CheckedContinuation<Void, Never>)
    case running(Task<Void, Never>)
    case cancelled
  }

  private let body: nonisolated(nonsending) @Sendable () async -> Void
  /// Nothing is called while it is locked: executors and cancellation handlers may run at once, and re-enter this
  /// object.
  private let state = Mutex(State.new)

  init(_ body: nonisolated(nonsending) @escaping @Sendable () async -> Void) {
    self.body = body
  }

  /// Starts the task, which inherits the task-local values of the caller. It runs on `executor` if that runs tasks, else
  /// where the caller's task prefers to run.
  func start(on executor: any CallExecutor) {
    let task = Task(executorPreference: executor.taskExecutor ?? .ofCurrentTask) {
      if !self.isRunning {
        await self.waitForStart()
        // ``cancel()`` had no task to cancel.
        if !self.isRunning { withUnsafeCurrentTask { $0?.cancel() } }
      }
      await self.body()
    }
    let waiting = self.state.withLock { state -> CheckedContinuation<Void, Never>? in
      switch state {
      case .new:
        state = .running(task)
        return nil
      case .waiting(let continuation):
        state = .running(task)
        return continuation
      case .inPlace, .running, .cancelled:
        return nil
      }
    }
    waiting?.resume()
  }

  /// Runs the body in the caller's task, on `executor` if that runs tasks. Does nothing if the job is cancelled.
  nonisolated(nonsending) func run(on executor: any CallExecutor) async {
    let isNew = self.state.withLock { state in
      guard case .new = state else { return false }
      state = .inPlace
      return true
    }
    guard isNew else { return }
    if !executor.isCurrent, let required = executor.taskExecutor {
      await withTaskExecutorPreference(required) { await self.body() }
    } else {
      await self.body()
    }
  }

  func cancel() {
    let last = self.state.withLock { state in
      defer { state = .cancelled }
      return state
    }
    switch last {
    case .new, .inPlace, .cancelled: break
    case .waiting(let continuation): continuation.resume()
    case .running(let task): task.cancel()
    }
  }

  private func waitForStart() async {
    await withCheckedContinuation { continuation in
      let waits = self.state.withLock { state in
        guard case .new = state else { return false }
        state = .waiting(continuation)
        return true
      }
      if !waits { continuation.resume() }
    }
  }

  private var isRunning: Bool {
    self.state.withLock { if case .running = $0 { true } else { false } }
  }
}
