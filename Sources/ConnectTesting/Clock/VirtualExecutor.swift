public import Connect
internal import Dispatch
internal import Synchronization

/// An executor in virtual time: work runs in order, one piece at a time, and time stands still until a test moves
/// it. Deadlines, delays and backoff of calls that live here take no real time.
///
/// Work runs by itself, on a separate thread; only timers wait for the test. A test passes the executor to a transport, or
/// to an ``InterceptorDriver``, and moves time on:
///
/// ```swift
/// let executor = VirtualExecutor()
/// // … a call, with a retry after 2 seconds …
/// executor.runUntilIdle()                  // the first attempt has failed, and its retry is scheduled
/// XCTAssertEqual(executor.scheduled, [.seconds(2)])
/// executor.advance(by: .seconds(2))
/// ```
///
/// It is also a `TaskExecutor`: async functions that run here, as in ``lettingTimePass(upTo:patience:_:)``, are pieces of
/// work like all others. So the executor knows when nothing more happens without time. A task elsewhere is not waited
/// for, unless by ``wait(upTo:until:)``.
///
/// Time ends 100 years after the executor was made: it does not move on from there, and later work is due then.
///
/// All functions may be called from any thread. Those that move time or wait block the caller until the executor is
/// idle. On the executor itself, they cannot wait and run only the timers that are due. Two threads must not move time
/// at once: the order of the effects would be random.
public final class VirtualExecutor: CallExecutor, TaskExecutor {
  private struct State {
    var now: Duration = .zero
    /// In the order in which they were scheduled.
    var timers: [VirtualTimer] = []
    /// How many pieces of work have not run to their end.
    var queuedCount = 0
  }

  private static let key = DispatchSpecificKey<ObjectIdentifier>()

  private let queue = DispatchQueue(label: "virtual executor")
  private let state = Mutex(State())
  private let runsTasks: Bool
  private let maximumRounds: Int

  /// An executor whose time is zero.
  ///
  /// - Parameters:
  ///   - runsTasks: Whether all tasks of its calls and of their interceptors run here, which makes their order
  ///     deterministic. If not, tasks of adapters, retriers and credentials run in the concurrency pool, as in production.
  ///   - maximumRounds: How many timers, or rounds of new work, one function runs before it stops waiting for the executor
  ///     to become idle; at least 1.
  public init(runsTasks: Bool = true, maximumRounds: Int = 100_000) {
    self.runsTasks = runsTasks
    self.maximumRounds = max(maximumRounds, 1)
    self.queue.setSpecific(key: Self.key, value: ObjectIdentifier(self))
  }

  // MARK: CallExecutor

  /// Time since the executor was made.
  public var now: Duration { self.state.withLock { $0.now } }

  public var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self) }

  public func execute(_ work: @escaping @Sendable () -> Void) {
    self.state.withLock { $0.queuedCount += 1 }
    self.queue.async {
      work()
      self.state.withLock { $0.queuedCount -= 1 }
    }
  }

  /// Runs `work` once a test has moved time on by `delay`. May be called from any thread.
  public func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.state.withLock { state in
      let timer = VirtualTimer(due: (state.now + max(delay.clamped, .zero)).clamped, work: work)
      state.timers.append(timer)
      return timer
    }
  }

  public var taskExecutor: (any TaskExecutor)? { self.runsTasks ? self : nil }

  // MARK: TaskExecutor

  /// Runs a piece of a task in its turn, as ``execute(_:)`` does. Called by the Swift runtime.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    self.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  // MARK: Moving time

  /// Moves time on, and runs each due timer at its time, and all work that it causes.
  ///
  /// - Parameter duration: Less than zero counts as zero.
  /// - Returns: As ``advance(to:)``.
  @discardableResult
  public func advance(by duration: Duration) -> Bool {
    self.advance(to: self.now + duration.clamped)
  }

  /// Moves time on to `time` since the executor was made, and runs each due timer at its time, and all work that it
  /// causes. Time never goes back: with a `time` that has passed, only due timers run.
  ///
  /// - Returns: Whether the executor has become idle. False after the maximum number of timers, for example if a timer
  ///   without delay schedules itself again. Time then stays at the last timer.
  @discardableResult
  public func advance(to time: Duration) -> Bool {
    let time = time.clamped
    var isIdle = self.runUntilIdle()
    for _ in 0..<self.maximumRounds {
      guard let timer = self.takeTimer(dueBy: max(time, self.now)) else {
        self.state.withLock { $0.now = max($0.now, time) }
        return isIdle
      }
      self.sync { timer.fire() }
      isIdle = self.runUntilIdle()
    }
    return false
  }

  /// Moves time on to the earliest scheduled work, if that is due by `limit`, and runs it.
  ///
  /// - Returns: Whether there was any.
  @discardableResult
  public func advanceToNext(by limit: Duration = .seconds(Int64.max)) -> Bool {
    guard let next = self.scheduled.first, next <= limit else { return false }
    self.advance(to: next)
    return true
  }

  /// Moves time on without running the timers that are due, as when a real executor is busy. They run when time is
  /// next advanced.
  public func passUnnoticed(_ duration: Duration) {
    self.state.withLock { $0.now = ($0.now + max(duration.clamped, .zero)).clamped }
  }

  private func takeTimer(dueBy end: Duration) -> VirtualTimer? {
    self.state.withLock { state in
      state.timers.removeAll { $0.isOver }
      guard let next = state.timers.filter({ $0.due <= end }).min(by: { $0.due < $1.due }) else { return nil }
      state.timers.removeAll { $0 === next }
      state.now = max(state.now, next.due)
      return next
    }
  }

  // MARK: Waiting

  /// Waits until all work, and the work that it causes, is done. Time stands still.
  ///
  /// - Returns: Whether the executor has become idle. False if each of the maximum number of rounds caused more work, or
  ///   if called on the executor.
  @discardableResult
  public func runUntilIdle() -> Bool {
    guard !self.isCurrent else { return false }
    for _ in 0..<self.maximumRounds {
      self.queue.sync {}
      guard self.state.withLock({ $0.queuedCount == 0 }) else { continue }
      // Objects held by the last piece of work are released after it.
      self.queue.sync {}
      return true
    }
    return false
  }

  /// Runs `work` on the executor and waits for it.
  public func sync<Value>(_ work: () throws -> Value) rethrows -> Value {
    if self.isCurrent { try work() } else { try self.queue.sync(execute: work) }
  }

  // MARK: Looking

  /// When each scheduled piece of work is due, on the scale of ``now``, the earliest first.
  public var scheduled: [Duration] {
    self.state.withLock { $0.timers.filter { !$0.isOver }.map(\.due) }.sorted()
  }
}
