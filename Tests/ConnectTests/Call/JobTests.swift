internal import Dispatch
internal import Synchronization
internal import XCTest

@testable internal import Connect

/// The start and the cancellation of a job, each in the middle of the other.
final class JobTests: XCTestCase {
  private let executor = HookedExecutor()

  func testCancelAfterTheStart() async {
    let seen = Signal<Bool>()
    let began = Signal<Void>()
    let job = Job {
      began.fire()
      try? await Task.sleep(for: .seconds(3600))
      seen.fire(Task.isCancelled)
    }
    job.start(on: self.executor)
    await began.wait()
    job.cancel()
    let isCancelled = await seen.wait()
    XCTAssertTrue(isCancelled)
  }

  /// The body runs all the same, and is cancelled from its first line on.
  func testCancelBeforeTheStart() async {
    for _ in 0..<200 {
      let seen = Signal<Bool>()
      let job = Job { seen.fire(Task.isCancelled) }
      job.cancel()
      job.start(on: self.executor)
      let isCancelled = await seen.wait()
      XCTAssertTrue(isCancelled)
    }
  }

  /// The executor cancels the job when it gets its task, which the job does not have yet.
  func testCancelDuringTheStart() async {
    let seen = Signal<Bool>()
    let job = Job { seen.fire(Task.isCancelled) }
    self.executor.beforeTask { job.cancel() }
    job.start(on: self.executor)
    let isCancelled = await seen.wait()
    XCTAssertTrue(isCancelled)
  }

  /// The task runs at once, before the job has it: the body waits, so that the cancellation still comes first.
  func testCancelOnceTheTaskRunsDuringTheStart() async {
    let seen = Signal<Bool>()
    let job = Job { seen.fire(Task.isCancelled) }
    self.executor.afterTask {
      XCTAssertEqual(seen.count, 0)
      job.cancel()
    }
    job.start(on: self.executor)
    let isCancelled = await seen.wait()
    XCTAssertTrue(isCancelled)
  }

  /// As above, without a cancellation: the start lets the body go on, and can cancel it later.
  func testTaskThatRunsDuringTheStart() async {
    let began = Signal<Bool>()
    let seen = Signal<Bool>()
    let job = Job {
      began.fire(Task.isCancelled)
      try? await Task.sleep(for: .seconds(3600))
      seen.fire(Task.isCancelled)
    }
    self.executor.afterTask { XCTAssertEqual(began.count, 0) }
    job.start(on: self.executor)
    let wasCancelled = await began.wait()
    XCTAssertFalse(wasCancelled)
    job.cancel()
    let isCancelled = await seen.wait()
    XCTAssertTrue(isCancelled)
  }

  /// Cancellation handlers run inside of `cancel()` and may cancel, too.
  func testCancellationHandlerThatCancels() async {
    let job = Mutex<Job?>(nil)
    let began = Signal<Void>()
    let ended = Signal<Void>()
    let made = Job {
      await withTaskCancellationHandler {
        began.fire()
        try? await Task.sleep(for: .seconds(3600))
      } onCancel: {
        job.withLock { $0 }?.cancel()
      }
      ended.fire()
    }
    job.withLock { $0 = made }
    made.start(on: self.executor)
    await began.wait()
    made.cancel()
    await ended.wait()
    job.withLock { $0 = nil }
  }

  // MARK: In the waiting task

  func testRunsInTheWaitingTask() async {
    let seen = Box(false)
    let job = Job {
      await Task.yield()
      seen.value = true
    }
    await job.run(on: self.executor)
    XCTAssertTrue(seen.value)
    // Once only.
    seen.value = false
    await job.run(on: self.executor)
    XCTAssertFalse(seen.value)
  }

  /// Nobody could tell the body of it.
  func testCancelBeforeItRunsInTheWaitingTask() async {
    let seen = Box(false)
    let job = Job { seen.value = true }
    job.cancel()
    await job.run(on: self.executor)
    XCTAssertFalse(seen.value)
  }

  /// The waiting task is not the job's to cancel, and a body that runs ends by itself.
  func testCancelWhileItRunsInTheWaitingTask() async {
    let began = Signal<Void>()
    let release = Signal<Void>()
    let executor = self.executor
    let seen = Box<Bool?>(nil)
    let job = Job {
      began.fire()
      await release.wait()
      seen.value = Task.isCancelled
    }
    let task = Task { await job.run(on: executor) }
    await began.wait()
    job.cancel()
    release.fire()
    await task.value
    XCTAssertEqual(seen.value, false)
  }

  /// Whatever is first: after `cancel()` the body never sees itself as running on.
  func testStartAndCancelAtOnce() async {
    let executor = self.executor
    for _ in 0..<1000 {
      let isCancelled = Box(false)
      let job = Job {
        // Read in this order: a cancellation that is over must be seen.
        let mustBeCancelled = isCancelled.value
        XCTAssertTrue(!mustBeCancelled || Task.isCancelled)
        while !Task.isCancelled { await Task.yield() }
      }
      await withTaskGroup(of: Void.self) { group in
        group.addTask { job.start(on: executor) }
        group.addTask {
          job.cancel()
          isCancelled.value = true
        }
      }
    }
  }
}

/// Runs tasks on a queue. Hooks run before the next task is queued, or when it has run to where it waits, while whoever
/// has made it is held.
private final class HookedExecutor: CallExecutor, TaskExecutor {
  private struct State {
    var beforeTask: (@Sendable () -> Void)?
    var afterTask: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "HookedExecutor")

  func beforeTask(_ work: @escaping @Sendable () -> Void) {
    self.state.withLock { $0.beforeTask = work }
  }

  func afterTask(_ work: @escaping @Sendable () -> Void) {
    self.state.withLock { $0.afterTask = work }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let hooks = self.state.withLock { state in
      defer { state = State() }
      return state
    }
    hooks.beforeTask?()
    if let afterTask = hooks.afterTask {
      let ran = DispatchSemaphore(value: 0)
      self.queue.async {
        job.runSynchronously(on: self.asUnownedTaskExecutor())
        ran.signal()
      }
      ran.wait()
      afterTask()
    } else {
      self.queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
  }

  // MARK: CallExecutor

  var taskExecutor: (any TaskExecutor)? { self }
  var now: Duration { .zero }
  var isCurrent: Bool { false }
  func execute(_ work: @escaping @Sendable () -> Void) { self.queue.async(execute: work) }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    NoTimer()
  }

  private final class NoTimer: CallTimer {
    func cancel() {}
  }
}
