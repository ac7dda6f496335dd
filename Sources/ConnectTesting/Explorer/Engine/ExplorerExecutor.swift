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
  enum Work: Sendable {
    case closure(@Sendable () -> Void)
    case job(UnownedJob)
  }

  struct Piece {
    /// Pieces of one lane keep their order; those without lane (0) are independent of all others.
    let lane: Int
    let work: Work
  }

  /// Of work that calls and transports give to the executor, which is to run in order.
  static let callLane = 1

  private let inbox = Mutex<[Work]>([])
  private let hasInbox = Atomic(false)
  private let hasEnded = Atomic(false)
  private let thread: UInt
  private(set) var ready: [Piece] = []
  /// Waits until nothing else is ready.
  private var postponed: [Piece] = []
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
    if self.isCurrent { self.add(.closure(work), lane: Self.callLane) } else { self.post(.closure(work)) }
  }

  func enqueue(_ job: consuming ExecutorJob) { self.take(UnownedJob(job)) }

  /// A job of a task, with or without this executor as its preference.
  func take(_ job: UnownedJob) {
    if self.isCurrent { self.add(.job(job), lane: 0) } else { self.post(.job(job)) }
  }

  private func post(_ work: Work) {
    guard !self.hasEnded.load(ordering: .acquiring) else {
      // Calls are over. Tasks may still have something to release.
      if case .job(let job) = work { globalConcurrentExecutor.enqueue(job) }
      return
    }
    self.inbox.withLock { $0.append(work) }
    self.hasInbox.store(true, ordering: .releasing)
  }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.timer(after: delay) { [unowned self] in self.add(.closure(work), lane: 0) }
  }

  /// Adds a job when `delay` has passed.
  func take(_ job: UnownedJob, after delay: Duration) {
    guard self.isCurrent else {
      self.post(.job(job))
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
  func add(_ work: Work, lane: Int) {
    let piece = Piece(lane: lane, work: work)
    // What follows postponed work in its lane waits with it.
    let waits = lane > 0 && self.postponed.contains { $0.lane == lane }
    if waits { self.postponed.append(piece) } else { self.ready.append(piece) }
  }

  /// Takes what other threads have added.
  func takeInbox() {
    guard self.hasInbox.exchange(false, ordering: .acquiring) else { return }
    self.usedOtherThreads = true
    let work = self.inbox.withLock { inbox in
      defer { inbox = [] }
      return inbox
    }
    for work in work {
      if case .closure = work { self.add(work, lane: Self.callLane) } else { self.add(work, lane: 0) }
    }
  }

  /// The pieces of ready work that can run next: the first of each lane. At most `limit`.
  func candidates(limit: Int) -> [Int] {
    guard self.ready.count > 1 else { return self.ready.isEmpty ? [] : [0] }
    var lanes: [Int] = []
    var result: [Int] = []
    for (index, piece) in self.ready.enumerated() where result.count < limit {
      if piece.lane > 0 {
        if lanes.contains(piece.lane) { continue }
        lanes.append(piece.lane)
      }
      result.append(index)
    }
    return result
  }

  func runPiece(at index: Int) {
    switch self.ready.remove(at: index).work {
    case .closure(let work): work()
    case .job(let job): job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }

  /// Puts the first piece, and what waits behind it, aside until nothing else is ready.
  func postponeFirst() {
    let first = self.ready.removeFirst()
    self.postponed.append(first)
    guard first.lane > 0 else { return }
    self.postponed += self.ready.filter { $0.lane == first.lane }
    self.ready.removeAll { $0.lane == first.lane }
  }

  /// - Returns: Whether there was postponed work, which is ready now.
  func restorePostponed() -> Bool {
    guard !self.postponed.isEmpty else { return false }
    self.ready += self.postponed
    self.postponed = []
    return true
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
    let target = max(self.time, ExplorerExecutor.nanoseconds(time))
    let earlier = self.ready
    self.ready = []
    self.time = target
    while let work = self.timers.takeFirst(dueBy: target) { work() }
    self.ready += earlier
  }

  /// Has time move on to `time` at least, when there is nothing to do before.
  func pass(until time: Duration) {
    _ = self.timer(after: time - self.now) {}
  }

  private static func nanoseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  /// Nothing runs here any more. Timers that are left belong to tasks that never end.
  func end() {
    self.hasEnded.store(true, ordering: .sequentiallyConsistent)
    self.ready = []
    self.postponed = []
    guard self.timers.count == 0 else {
      AbandonedTimers.keep(self.timers)
      return
    }
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
  /// What is left of a delay that real clocks have measured, without the time that the computer has used since.
  var rounded: Duration {
    let (seconds, attoseconds) = max(self.clamped, .zero).components
    let milliseconds = seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    let step: Int64 = milliseconds < 20 ? 1 : milliseconds < 1_000 ? 10 : 50
    return .milliseconds((milliseconds + step - 1) / step * step)
  }
}
