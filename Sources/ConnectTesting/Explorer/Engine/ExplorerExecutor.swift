internal import Connect
internal import ConnectChannels
internal import Foundation
internal import Synchronization

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
@_spi(ExperimentalScheduling) internal import _Concurrency
#endif

/// Where all of a run happens: on one thread, in virtual time. It keeps ready work and timers. ``ExplorerRun`` chooses what
/// runs next, which is the difference from the executor of simulations.
///
/// `@unchecked Sendable`: mutable state is touched only by the thread of the exploration; work from other threads goes
/// through `inbox`.
final class ExplorerExecutor: CallExecutor, TaskExecutor, @unchecked Sendable {
  private let inbox = WorkInbox()
  private let hasEnded = Atomic(false)
  private let thread: UInt
  var ready = ReadyWork()
  private let timers = TimerQueue()
  /// In nanoseconds.
  private var time: Int64 = 0
  /// When calls have to end. Timers that are due then are no reason to wait.
  var deadlines: Set<Duration> = []
  /// How many timers besides those of deadlines are set.
  fileprivate(set) var reasonCount = 0
  /// Whether work has come from other threads.
  private(set) var usedOtherThreads = false

  /// An executor for the calling thread.
  init() {
    self.thread = Self.currentThread
  }

  static var currentThread: UInt { UInt(pthread_self()) }

  // MARK: CallExecutor

  var now: Duration { .nanoseconds(self.time) }
  var isCurrent: Bool { self.thread == Self.currentThread && !self.hasEnded.load(ordering: .relaxed) }
  var taskExecutor: (any TaskExecutor)? { self }

  func execute(_ work: @escaping @Sendable () -> Void) {
    if self.isCurrent {
      self.add(.closure(work), lane: Piece.callLane)
    } else {
      self.post(Piece(.closure(work)))
    }
  }

  func enqueue(_ job: consuming ExecutorJob) { self.take(UnownedJob(job)) }

  /// A job of a task, with or without this executor as its preference.
  func take(_ job: UnownedJob) {
    if self.isCurrent { self.add(.job(job), lane: 0) } else { self.post(Piece(.job(job))) }
  }

  private func post(_ piece: Piece) {
    guard self.hasEnded.load(ordering: .acquiring) else {
      self.inbox.post(piece)
      return
    }
    // Calls are over. Tasks may still have something to release.
    if case .job(let job) = piece.work { globalConcurrentExecutor.enqueue(job) }
  }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.timer(after: delay) { [unowned self] in self.add(.closure(work), lane: 0) }
  }

  /// Adds a job when `delay` has passed.
  func take(_ job: UnownedJob, after delay: Duration) {
    guard self.isCurrent else {
      self.post(Piece(.job(job)))
      return
    }
    _ = self.timer(after: delay) { [unowned self] in self.add(.job(job), lane: 0) }
  }

  private func timer(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    let (seconds, attoseconds) = max(delay.clamped, .zero).components
    let delay = seconds * 1_000_000_000 + (attoseconds + 999_999_999) / 1_000_000_000
    let due = self.time.addingReportingOverflow(delay).overflow ? .max : self.time + delay
    let isReason = !self.deadlines.contains(.nanoseconds(due))
    let timer = ExplorerTimer(isReason ? self : nil)
    timer.base = self.timers.schedule(at: due) {
      timer.end()
      work()
    }
    return timer
  }

  // MARK: For the run

  /// Adds a piece of work.
  func add(_ work: Piece.Work, lane: Int) { self.ready.add(Piece(work, lane: lane)) }

  /// Takes what other threads have added.
  func takeInbox() {
    let pieces = self.inbox.take()
    guard !pieces.isEmpty else { return }
    self.usedOtherThreads = true
    for piece in pieces { self.ready.add(piece) }
  }

  func runPiece(at index: Int) {
    switch self.ready.take(at: index).work {
    case .closure(let work): work()
    case .job(let job): job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }

  var nextTime: Duration? { self.timers.nextTime.map { .nanoseconds($0) } }

  /// Moves time on to the first timers, whose work is ready then.
  func advance() {
    guard let next = self.timers.nextTime else { return }
    self.time = max(self.time, next)
    while let work = self.timers.takeFirst(dueBy: next) { work() }
  }

  /// Moves time on at once, before what is ready. The work of the timers that are due is the first to run.
  func jump(to time: Duration) {
    self.time = max(self.time, time.nanoseconds)
    let earlier = self.ready.takeAll()
    while let work = self.timers.takeFirst(dueBy: self.time) { work() }
    for piece in earlier { self.ready.add(piece) }
  }

  /// Nothing runs here any more. Timers that are left belong to tasks that never end.
  func end() {
    self.hasEnded.store(true, ordering: .sequentiallyConsistent)
    self.ready = ReadyWork()
    if self.timers.count > 0 { AbandonedTimers.keep(self.timers) }
  }
}

/// Timers of tasks that sleep for ever. Releasing them would make the runtime warn of their continuations.
private enum AbandonedTimers {
  private static let kept = Mutex<[Confined<TimerQueue>]>([])

  static func keep(_ timers: TimerQueue) {
    let timers = Confined(timers)
    self.kept.withLock { $0.append(timers) }
  }
}

/// Confined to the executor.
///
/// `@unchecked Sendable`: touched on its executor alone, where `cancel` is called by contract.
private final class ExplorerTimer: CallTimer, @unchecked Sendable {
  var base: (any CallTimer)?
  /// Nil if it is a deadline's, or over.
  private var executor: ExplorerExecutor?

  init(_ executor: ExplorerExecutor?) {
    self.executor = executor
    executor?.reasonCount += 1
  }

  func end() {
    self.base = nil
    self.executor.take()?.reasonCount -= 1
  }

  func cancel() {
    self.base.take()?.cancel()
    self.end()
  }
}

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
/// `Task.sleep` and clocks of the standard library ask the executor of the task.
extension ExplorerExecutor: SchedulingExecutor {
  func enqueue<C: Clock>(
    _ job: consuming ExecutorJob,
    after delay: C.Duration,
    tolerance: C.Duration?,
    clock: C
  ) {
    self.take(UnownedJob(job), after: (delay as? Duration ?? .zero).rounded)
  }

  func enqueue<C: Clock>(
    _ job: consuming ExecutorJob,
    at instant: C.Instant,
    tolerance: C.Duration?,
    clock: C
  ) {
    let delay = clock.now.duration(to: instant) as? Duration ?? .zero
    self.take(UnownedJob(job), after: delay.rounded)
  }
}
#endif

extension Duration {
  /// Whole nanoseconds.
  fileprivate var nanoseconds: Int64 {
    let (seconds, attoseconds) = self.components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  /// What is left of a delay that real clocks have measured, without the time that the computer has used since.
  var rounded: Duration {
    let (seconds, attoseconds) = max(self.clamped, .zero).components
    let milliseconds = seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    let step: Int64 = milliseconds < 20 ? 1 : milliseconds < 1_000 ? 10 : 50
    return .milliseconds((milliseconds + step - 1) / step * step)
  }
}
