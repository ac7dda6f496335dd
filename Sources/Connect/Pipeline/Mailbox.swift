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
  private var waiting: CheckedContinuation<Event, Never>?
  private var events: [Event] = []
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
    } else {
      self.events.append(event)
    }
  }

  private func receive(_ continuation: CheckedContinuation<Event, Never>) {
    self.executor.assertIsCurrent()
    if self.events.isEmpty {
      self.waiting = continuation
    } else {
      continuation.resume(returning: self.events.removeFirst())
    }
  }

  // MARK: In the waiting task

  /// Runs jobs, one after the other, until a value arrives. To be called by one task at a time.
  ///
  /// - Parameter start: Runs on the executor, when the waiting begins.
  nonisolated(nonsending) func value(after start: @escaping @Sendable () -> Void) async throws -> Value {
    var event = await self.event(after: start)
    while true {
      switch event {
      case .run(let job): await job.run(on: self.executor)
      case .value(let result): return try result.get()
      }
      event = await self.event()
    }
  }

  private nonisolated(nonsending) func event(after start: (@Sendable () -> Void)? = nil) async -> Event {
    await withCheckedContinuation { continuation in
      self.executor.run {
        self.receive(continuation)
        start?()
      }
    }
  }
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
package final class Job: Sendable {
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
  package func start(on executor: any CallExecutor) {
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
    if let required = executor.taskExecutor {
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
