package import Connect
internal import ConnectChannels
internal import ConnectTesting
internal import NIOCore

/// Runs all of a simulation: on one thread, in virtual time. Work runs in the order in which it was added; when there is
/// none, time moves on to the next timer.
///
/// It is faster than a `VirtualExecutor`, since nothing changes threads, and a test cannot stop it between two pieces of
/// work. It is also a `TaskExecutor`, so that tasks run here in a deterministic order, too.
///
/// `@unchecked Sendable`: mutable state is touched only by the thread that runs the simulation; work from other threads goes
/// through `thread`.
package final class SimulationExecutor: CallExecutor, TaskExecutor, @unchecked Sendable {
  /// Work goes on without end, so that time cannot move on.
  package struct Livelock: Error {
    package let time: Duration
  }

  /// After this many pieces of work at one time, work counts as never ending.
  private static let maximumWork = 5_000_000

  private let thread = VirtualThread()
  private var work = CircularBuffer<VirtualThread.Work>(initialCapacity: 256)
  /// How many pieces of work have run, timers included.
  package private(set) var steps = 0

  package init() {}

  // MARK: CallExecutor

  package var now: Duration { self.thread.now }

  package var isCurrent: Bool { self.thread.isCurrent }

  package func execute(_ work: @escaping @Sendable () -> Void) { self.add(.closure(work)) }

  package func enqueue(_ job: consuming ExecutorJob) { self.add(.job(UnownedJob(job))) }

  private func add(_ work: VirtualThread.Work) {
    if self.isCurrent {
      self.work.append(work)
    } else {
      self.thread.post(work)
      if self.thread.hasEnded { self.runLateWork() }
    }
  }

  private func runLateWork() {
    self.thread.runLateWork {
      try? self.runWork()
      self.thread.timers.removeAll()
    }
  }

  package func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.thread.timers.schedule(at: self.thread.time(after: delay), work)
  }

  package var taskExecutor: (any TaskExecutor)? { self }

  /// Moves time on without running the timers that are due: they come late.
  package func passUnnoticed(_ duration: Duration) {
    self.thread.move(to: self.thread.time(after: duration))
  }

  // MARK: Running

  /// Runs all work, and all timers that are due by `end`, on the calling thread. Time is `end` then.
  ///
  /// - Parameter isOver: Asked before time moves on; true to stop there.
  /// - Throws: ``Livelock`` if work gives more work without end.
  package func run(until end: Duration, isOver: () -> Bool = { false }) throws(Livelock) {
    let end = self.thread.time(after: end - self.now)
    self.thread.enter()
    defer { self.thread.leave() }
    let timers = self.thread.timers
    while true {
      try self.runWork()
      guard !isOver() else { return }
      guard let next = timers.nextTime, next <= end, let work = timers.takeFirst(dueBy: next) else {
        self.thread.move(to: end)
        return
      }
      self.thread.move(to: next)
      self.steps += 1
      work()
    }
  }

  private func runWork() throws(Livelock) {
    var count = 0
    while true {
      for work in self.thread.takePosted() { self.work.append(work) }
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
    self.thread.timers.removeAll()
    self.thread.end()
    self.runLateWork()
  }
}
