package import Connect
internal import ConnectChannels
internal import Foundation
internal import NIOCore
internal import Synchronization

/// Runs all of a simulation: on one thread, in virtual time. Work runs in the order in which it was added; when there is
/// none, time moves on to the next timer.
///
/// It is faster than a `VirtualExecutor`, since nothing changes threads, and a test cannot stop it between two pieces of
/// work. It is also a `TaskExecutor`, so that tasks run here in a deterministic order, too.
///
/// `@unchecked Sendable`: mutable state is touched only by the thread that runs the simulation; work from other threads goes
/// through `inbox`.
package final class SimulationExecutor: CallExecutor, TaskExecutor, @unchecked Sendable {
  private enum Work {
    case closure(@Sendable () -> Void)
    case job(UnownedJob)
  }

  /// Work goes on without end, so that time cannot move on.
  package struct Livelock: Error {
    package let time: Duration
  }

  /// After this many pieces of work at one time, work counts as never ending.
  private static let maximumWork = 5_000_000

  private let inbox = Mutex<[Work]>([])
  private let hasInbox = Atomic(false)
  /// Whether the simulation is over: late work, such as the ends of channels that outlive it, runs at once.
  private let hasEnded = Atomic(false)
  /// The thread that runs the simulation now; 0 if none does.
  private let thread = Atomic<UInt>(0)
  private var work = CircularBuffer<Work>(initialCapacity: 256)
  private let timers = TimerQueue()
  /// In nanoseconds.
  private var time: Int64 = 0
  /// How many pieces of work have run, timers included.
  package private(set) var steps = 0

  package init() {}

  // MARK: CallExecutor

  package var now: Duration { .nanoseconds(self.time) }

  package var isCurrent: Bool { self.thread.load(ordering: .relaxed) == Self.currentThread }

  package func execute(_ work: @escaping @Sendable () -> Void) { self.add(.closure(work)) }

  package func enqueue(_ job: consuming ExecutorJob) { self.add(.job(UnownedJob(job))) }

  private func add(_ work: Work) {
    if self.isCurrent {
      self.work.append(work)
    } else {
      self.inbox.withLock { $0.append(work) }
      self.hasInbox.store(true, ordering: .sequentiallyConsistent)
      if self.hasEnded.load(ordering: .relaxed) { self.runLateWork() }
    }
  }

  /// Runs work that came after the end, on the thread that added it.
  private func runLateWork() {
    while self.hasInbox.load(ordering: .sequentiallyConsistent) {
      let (isMine, _) = self.thread.compareExchange(
        expected: 0,
        desired: Self.currentThread,
        ordering: .sequentiallyConsistent
      )
      // Otherwise the running thread does the work, or looks again when it is done.
      guard isMine else { return }
      try? self.runWork()
      self.timers.removeAll()
      self.thread.store(0, ordering: .sequentiallyConsistent)
    }
  }

  package func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.timers.schedule(at: self.time(after: delay), work)
  }

  /// In whole nanoseconds, and not before `delay` has passed.
  private func time(after delay: Duration) -> Int64 {
    let (seconds, attoseconds) = max(delay.clamped, .zero).components
    let nanoseconds = seconds * 1_000_000_000 + (attoseconds + 999_999_999) / 1_000_000_000
    return self.time.addingReportingOverflow(nanoseconds).overflow ? .max : self.time + nanoseconds
  }

  package var taskExecutor: (any TaskExecutor)? { self }

  /// Moves time on without running the timers that are due: they come late.
  package func passUnnoticed(_ duration: Duration) {
    self.time = self.time(after: duration)
  }

  // MARK: Running

  /// Runs all work, and all timers that are due by `end`, on the calling thread. Time is `end` then.
  ///
  /// - Parameter isOver: Asked before time moves on; true to stop there.
  /// - Throws: ``Livelock`` if work gives more work without end.
  package func run(until end: Duration, isOver: () -> Bool = { false }) throws(Livelock) {
    let end = self.time(after: end - self.now)
    self.thread.store(Self.currentThread, ordering: .relaxed)
    defer { self.thread.store(0, ordering: .relaxed) }
    while true {
      try self.runWork()
      guard !isOver() else { return }
      guard let next = self.timers.nextTime, next <= end, let work = self.timers.takeFirst(dueBy: next) else {
        self.time = max(self.time, end)
        return
      }
      self.time = max(self.time, next)
      self.steps += 1
      work()
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
      guard count < Self.maximumWork else { throw Livelock(time: self.now) }
    }
  }

  /// Runs this work, and releases all timers, those of late work included.
  package func end(_ work: @escaping @Sendable () -> Void) {
    self.execute(work)
    // Work that never ends is abandoned.
    try? self.run(until: self.now)
    self.timers.removeAll()
    self.hasEnded.store(true, ordering: .sequentiallyConsistent)
    self.runLateWork()
  }

  private static var currentThread: UInt { UInt(pthread_self()) }
}

private func exchange<Value>(_ values: inout [Value]) -> [Value] {
  var taken: [Value] = []
  swap(&taken, &values)
  return taken
}
