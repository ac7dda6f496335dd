package import Connect
internal import Foundation
internal import NIOCore
internal import Synchronization

/// Where everything of a simulation happens: one thread, in virtual time. Work runs in the order in which it was given; when
/// there is none, time moves on to the next timer.
///
/// It is faster than a `VirtualExecutor`, since nothing changes threads, and it cannot be stopped by a test between two pieces
/// of work. It is also a `TaskExecutor`, so that tasks run here in a certain order, too.
///
/// `@unchecked Sendable`: what changes is touched by the thread that runs the simulation alone; what other threads give goes
/// through `inbox`.
package final class SimulationExecutor: CallExecutor, TaskExecutor, @unchecked Sendable {
  private enum Work {
    case closure(@Sendable () -> Void)
    case job(UnownedJob)
  }

  /// What keeps time from moving on.
  package struct Livelock: Error {
    package let time: Duration
  }

  /// So many pieces of work without time are taken for work that never ends.
  private static let maximumWork = 5_000_000

  private let inbox = Mutex<[Work]>([])
  private let hasInbox = Atomic(false)
  /// The thread that runs the simulation now; 0 if none does.
  private let thread = Atomic<UInt>(0)
  private var work = CircularBuffer<Work>(initialCapacity: 256)
  private var timers = TimerHeap<Duration, SimulationTimer>()
  private var cancelledCount = 0
  private var time = Duration.zero
  /// How many pieces of work have run, timers included.
  package private(set) var steps = 0

  package init() {}

  // MARK: CallExecutor

  package var now: Duration { self.time }

  package var isCurrent: Bool { self.thread.load(ordering: .relaxed) == Self.currentThread }

  package func execute(_ work: @escaping @Sendable () -> Void) { self.add(.closure(work)) }

  package func enqueue(_ job: consuming ExecutorJob) { self.add(.job(UnownedJob(job))) }

  private func add(_ work: Work) {
    if self.isCurrent {
      self.work.append(work)
    } else {
      self.inbox.withLock { $0.append(work) }
      self.hasInbox.store(true, ordering: .releasing)
    }
  }

  package func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    let timer = SimulationTimer(work, on: self)
    self.timers.insert(timer, at: self.time + max(delay.clamped, .zero))
    return timer
  }

  package var taskExecutor: (any TaskExecutor)? { self }

  fileprivate func didCancelTimer() {
    self.cancelledCount += 1
    // Cancelled ones go when they are most of what is there, so that each costs its share of one sweep.
    guard self.cancelledCount > 64, self.cancelledCount > self.timers.count / 2 else { return }
    self.timers.removeAll { $0.isCancelled }
    self.cancelledCount = 0
  }

  /// Moves time on without running the timers that are due: they come late.
  package func passUnnoticed(_ duration: Duration) {
    self.time += max(duration.clamped, .zero)
  }

  // MARK: Running

  /// Runs all work, and all timers that are due by `end`, on the calling thread. Time is `end` then.
  ///
  /// - Parameter isOver: Asked before time moves on; true to stop there.
  /// - Throws: ``Livelock`` if work gives more work without end.
  package func run(until end: Duration, isOver: () -> Bool = { false }) throws(Livelock) {
    self.thread.store(Self.currentThread, ordering: .relaxed)
    defer { self.thread.store(0, ordering: .relaxed) }
    while true {
      try self.runWork()
      guard !isOver() else { return }
      while self.timers.first?.element.isCancelled == true {
        self.timers.removeFirst()
        self.cancelledCount = max(self.cancelledCount - 1, 0)
      }
      guard let next = self.timers.first, next.time <= end else {
        self.time = max(self.time, end)
        return
      }
      self.timers.removeFirst()
      self.time = max(self.time, next.time)
      self.steps += 1
      next.element.fire()
    }
  }

  private func runWork() throws(Livelock) {
    var count = 0
    while true {
      if self.hasInbox.exchange(false, ordering: .acquiring) {
        for work in self.inbox.withLock({ exchange(&$0) }) { self.work.append(work) }
      }
      guard let next = self.work.popFirst() else { return }
      switch next {
      case .closure(let work): work()
      case .job(let job): job.runSynchronously(on: self.asUnownedTaskExecutor())
      }
      self.steps += 1
      count += 1
      guard count < Self.maximumWork else { throw Livelock(time: self.time) }
    }
  }

  /// When the timers are due that have not fired and were not cancelled; for tests that nothing is left.
  package var pendingTimers: Int { self.timers.elements.count { !$0.isCancelled } }

  private static var currentThread: UInt { UInt(pthread_self()) }
}

/// `@unchecked Sendable`: touched by the thread that runs the simulation alone, as `CallTimer` asks for.
private final class SimulationTimer: CallTimer, @unchecked Sendable {
  private var work: (@Sendable () -> Void)?
  private weak var executor: SimulationExecutor?

  init(_ work: @escaping @Sendable () -> Void, on executor: SimulationExecutor) {
    self.work = work
    self.executor = executor
  }

  var isCancelled: Bool { self.work == nil }

  func fire() { self.work.take()?() }

  func cancel() {
    guard self.work.take() != nil else { return }
    self.executor?.didCancelTimer()
  }
}

private func exchange<Value>(_ values: inout [Value]) -> [Value] {
  var taken: [Value] = []
  swap(&taken, &values)
  return taken
}
