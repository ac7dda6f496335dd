internal import Connect
internal import ConnectChannels
internal import Dispatch

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
@_spi(ExperimentalScheduling) internal import _Concurrency
#endif

/// Where all of a run happens: on one thread, in virtual time. It keeps ready work and timers. ``ExplorerRun`` chooses what
/// runs next, which is the difference from the executor of simulations.
///
/// Work, timers and their cancellations may come from any thread. After the end, they are late: closures run at once on the
/// thread that brings them, tasks go on in the concurrency pool, and time is real.
///
/// `@unchecked Sendable`: mutable state is touched only by the thread of the exploration, and after the end by one thread at
/// a time (`thread`); work from other threads goes through `thread`.
final class ExplorerExecutor: CallExecutor, TaskExecutor, @unchecked Sendable {
  fileprivate let thread = VirtualThread()
  private let watch: ExplorationWatch
  var ready = ReadyWork()
  var reasons = WaitingReasons()
  /// Whether work has come from other threads.
  private(set) var usedOtherThreads = false
  /// When the current piece of a task began, and the piece that brought it, in real time; nil while there is none. A task may change
  /// executors between reading the time and sleeping.
  fileprivate var pieceOfTask: (start: ContinuousClock.Instant, origin: ContinuousClock.Instant)?

  /// An executor for the calling thread.
  init(_ watch: ExplorationWatch) {
    self.watch = watch
    self.thread.enter()
  }

  // MARK: CallExecutor

  var now: Duration { self.thread.now }
  var isCurrent: Bool { self.thread.isCurrent }
  var taskExecutor: (any TaskExecutor)? { self }
  /// On the exploration's thread, until the end.
  private var isInRun: Bool { self.thread.isCurrent && !self.thread.hasEnded }

  func execute(_ work: @escaping @Sendable () -> Void) {
    if self.isInRun {
      self.add(.closure(work), lane: Piece.callLane)
    } else {
      self.post(.closure(work))
    }
  }

  func enqueue(_ job: consuming ExecutorJob) { self.take(UnownedJob(job)) }

  /// A job of a task, with or without this executor as its preference.
  func take(_ job: UnownedJob) {
    if self.isInRun {
      self.ready.add(Piece(.job(job), origin: self.pieceOfTask?.start))
    } else {
      self.post(.job(job))
    }
  }

  private func post(_ work: VirtualThread.Work) {
    self.thread.post(work)
    if self.thread.hasEnded { self.runLateWork() }
  }

  private func runLateWork() {
    self.thread.runLateWork {
      for work in self.thread.takePosted() {
        switch work {
        case .closure(let work): work()
        case .job(let job): globalConcurrentExecutor.enqueue(job)
        }
      }
    }
  }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.timer(after: delay, .closure(work))
  }

  /// Adds a job when `delay` has passed.
  func take(_ job: UnownedJob, after delay: Duration) {
    _ = self.timer(after: delay, .job(job))
  }

  private func timer(after delay: Duration, _ work: VirtualThread.Work) -> any CallTimer {
    let timer = ExplorerTimer(self)
    if self.isInRun {
      timer.start(after: delay, work)
    } else {
      self.post(.closure { timer.start(after: delay, work) })
    }
    return timer
  }

  // MARK: For the run

  /// Adds a piece of work.
  func add(_ work: VirtualThread.Work, lane: Int) { self.ready.add(Piece(work, lane: lane)) }

  /// Takes what other threads have added.
  func takeInbox() {
    let posted = self.thread.takePosted()
    guard !posted.isEmpty else { return }
    self.usedOtherThreads = true
    self.watch.noteOtherThreads()
    for work in posted { self.ready.add(Piece(work)) }
  }

  func runPiece(at index: Int) {
    self.watch.beat()
    self.reasons.deadline = nil
    let piece = self.ready.take(at: index)
    switch piece.work {
    case .closure(let work): work()
    case .job(let job):
      let start = ContinuousClock.now
      self.pieceOfTask = (start, piece.origin ?? start)
      job.runSynchronously(on: self.asUnownedTaskExecutor())
      self.pieceOfTask = nil
    }
  }

  var nextTime: Duration? { self.thread.timers.nextTime.map { .nanoseconds($0) } }

  /// Moves time on to the first timers, whose work is ready then.
  func advance() {
    guard let next = self.thread.timers.nextTime else { return }
    self.thread.move(to: next)
    while let work = self.thread.timers.takeFirst(dueBy: next) { work() }
  }

  /// Moves time on at once, before what is ready. The work of the timers that are due is the first to run.
  func jump(to time: Duration) {
    self.thread.move(to: time.nanoseconds)
    let earlier = self.ready.takeAll()
    while let work = self.thread.timers.takeFirst(dueBy: self.thread.nanoseconds) { work() }
    for piece in earlier { self.ready.add(piece) }
  }

  // MARK: The end

  /// Whether nothing runs here any more but late work.
  var hasEnded: Bool { self.thread.hasEnded }

  /// Lets go of work and timers: they belong to tasks that never end.
  func abandonWork() {
    self.ready = ReadyWork()
    self.thread.timers.removeAll()
  }

  /// Nothing runs here any more but late work.
  func end() {
    while !self.ready.isEmpty || self.ready.restorePostponed() {
      self.thread.post(self.ready.take(at: 0).work)
    }
    self.thread.timers.removeAll()
    self.thread.end()
    self.thread.leave()
    self.runLateWork()
  }
}

/// Why time may have to pass before calls are over.
struct WaitingReasons {
  /// The end of the call that begins in this piece of work, in nanoseconds; nil if it has no deadline, or its timer is set.
  fileprivate var deadline: Int64?
  /// How many timers besides those of deadlines are set.
  fileprivate(set) var timerCount = 0

  /// A call begins, in this piece of work. The timer of its deadline is no reason to wait.
  ///
  /// - Parameter timeout: Nil for none.
  mutating func callBegins(at now: Duration, timeout: Duration?) {
    self.deadline = timeout.map { (now + $0.clamped).nanoseconds }
  }

  /// Whether the timer is the deadline of the call that begins. A call sets its deadline before any other timer, so that other timers
  /// that are due at the same time come later.
  fileprivate mutating func takesDeadline(_ due: Int64, _ work: VirtualThread.Work) -> Bool {
    guard case .closure = work, self.deadline == due else { return false }
    self.deadline = nil
    return true
  }
}

/// Confined to the executor, but for `cancel`.
///
/// `@unchecked Sendable`: mutable state is touched on its executor alone.
private final class ExplorerTimer: CallTimer, @unchecked Sendable {
  private let executor: ExplorerExecutor
  private var base: (any CallTimer)?
  private var isReason = false
  private var isOver = false

  init(_ executor: ExplorerExecutor) {
    self.executor = executor
  }

  func start(after delay: Duration, _ work: VirtualThread.Work) {
    guard !self.isOver else { return }
    let executor = self.executor
    guard !executor.hasEnded else {
      let delay = min(max(delay, .zero), .seconds(86_400))
      DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(Int(delay.nanoseconds))) {
        executor.execute { self.fireLate(work) }
      }
      return
    }
    let due = executor.thread.time(after: delay)
    self.base = executor.thread.timers.schedule(at: due) { [unowned executor] in
      self.end()
      executor.add(work, lane: 0)
    }
    self.isReason = !executor.reasons.takesDeadline(due, work)
    if self.isReason { executor.reasons.timerCount += 1 }
  }

  private func fireLate(_ work: VirtualThread.Work) {
    guard !self.isOver else { return }
    self.isOver = true
    switch work {
    case .closure(let work): work()
    case .job(let job): self.executor.take(job)
    }
  }

  private func end() {
    self.isOver = true
    self.base = nil
    guard self.isReason else { return }
    self.isReason = false
    self.executor.reasons.timerCount -= 1
  }

  func cancel() {
    guard self.executor.isCurrent else {
      self.executor.execute { self.cancel() }
      return
    }
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
    self.take(UnownedJob(job), after: delay as? Duration ?? .zero)
  }

  func enqueue<C: Clock>(
    _ job: consuming ExecutorJob,
    at instant: C.Instant,
    tolerance: C.Duration?,
    clock: C
  ) {
    // The task has added its delay to the real time at some moment since its origin.
    let least = clock.now.duration(to: instant) as? Duration ?? .zero
    let origin = self.isCurrent ? self.pieceOfTask?.origin : nil
    let most = least + (origin?.duration(to: .now) ?? .zero)
    self.take(UnownedJob(job), after: .roundest(from: least, through: most))
  }
}
#endif

extension Duration {
  /// Whole nanoseconds, rounded down.
  var nanoseconds: Int64 {
    let (seconds, attoseconds) = self.clamped.components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  /// The delay that somebody has meant whose end real clocks have measured: the roundest of those that are possible. If all have
  /// parts of milliseconds, they are rounded up.
  static func roundest(from least: Duration, through most: Duration) -> Duration {
    let (least, most) = (max(least.nanoseconds, 0), max(most.nanoseconds, 0))
    let steps: [Int64] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000]
    for step in steps where most >= step && most / step * step >= least {
      return .nanoseconds(most / step * step)
    }
    return .milliseconds((least + 999_999) / 1_000_000)
  }
}
