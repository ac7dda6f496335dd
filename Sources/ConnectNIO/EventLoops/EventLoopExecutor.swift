package import Connect
internal import ConnectChannels
package import NIOCore
internal import NIOPosix
internal import Synchronization

/// The executor of the calls on one event loop.
///
/// NIO's own timers cost several allocations each, and a cancellation searches among all others. Here one NIO timer
/// serves all timers.
///
/// A client that was shut down no longer needs its event loop, which its owner may then end. ``leaveEventLoop()`` has the
/// executor go on elsewhere, so that late calls, and calls that interceptors still hold, end as they should.
///
/// `@unchecked Sendable`: `timers` and `wakeUp` are touched on the executor alone. By contract, `schedule` and a timer's
/// `cancel` are called there; `wakeUp` runs there. `eventLoop` is constant. `phase` is atomic, `move` behind a mutex.
package final class EventLoopExecutor: BufferingExecutor, @unchecked Sendable {
  private enum Phase: UInt8, AtomicRepresentable {
    /// Work runs on `eventLoop`.
    case own
    /// What was submitted before still runs there, and what comes now is held.
    case moving
    /// Work runs on `successor`.
    case moved
  }

  private struct Move {
    var heldWork: [@Sendable () -> Void] = []
    var isOver = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  /// The loop of all executors that have left their own. It is the process's own, which never ends.
  private static let successor = MultiThreadedEventLoopGroup.singleton.next()

  private static let grace = Duration.milliseconds(10)

  package let eventLoop: any EventLoop
  package let bodyBuffers = BodyBuffers()
  private let timers = TimerQueue()
  private var wakeUp: (scheduled: Scheduled<Void>, time: NIODeadline)?
  private let phase = Atomic(Phase.own)
  private let move = Mutex(Move())

  package init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
  }

  /// The event loop may have ended before its timers.
  deinit { self.timers.removeAll() }

  /// Where work runs now.
  private var currentLoop: any EventLoop {
    self.phase.load(ordering: .acquiring) == .moved ? Self.successor : self.eventLoop
  }

  package var now: Duration {
    .nanoseconds(Int64(clamping: self.eventLoop.now.uptimeNanoseconds))
  }

  package var isCurrent: Bool {
    // Not by `currentLoop`, which would retain the loop: each `proceed` of a hook asks for this.
    self.phase.load(ordering: .acquiring) == .moved ? Self.successor.inEventLoop : self.eventLoop.inEventLoop
  }

  package func execute(_ work: @escaping @Sendable () -> Void) {
    if self.phase.load(ordering: .acquiring) == .own {
      self.eventLoop.execute(work)
    } else {
      self.executeElsewhere(work)
    }
  }

  package func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    assert(self.isCurrent, "timers are made on the executor")
    let time = self.eventLoop.now + TimeAmount(max(delay.clamped, .zero))
    let timer = self.timers.schedule(at: Int64(clamping: time.uptimeNanoseconds), work)
    self.wakeUp(at: time)
    return timer
  }

  private func wakeUp(at time: NIODeadline) {
    if let current = self.wakeUp {
      guard time < current.time else { return }
      current.scheduled.cancel()
    }
    let scheduled = self.currentLoop.scheduleTask(deadline: time) { self.runDueTimers() }
    self.wakeUp = (scheduled, time)
  }

  private func runDueTimers() {
    self.wakeUp = nil
    let now = Int64(clamping: self.eventLoop.now.uptimeNanoseconds)
    while let work = self.timers.takeFirst(dueBy: now) { work() }
    if let next = self.timers.nextTime { self.wakeUp(at: .uptimeNanoseconds(UInt64(next))) }
  }

  // MARK: - Leaving the event loop

  /// Has all work and all timers go on elsewhere. Once this has returned, the executor does not touch its event loop any
  /// more. May be called more than once, also at the same time.
  func leaveEventLoop() async {
    let isFirst = self.phase.compareExchange(
      expected: .own,
      desired: .moving,
      ordering: .acquiringAndReleasing
    )
    // `execute` takes no lock, so a thread may have seen the phase before and not have submitted its work yet. Such a thread has
    // this long; a count of such threads would cost each call more.
    if isFirst.exchanged { try? await Task.sleep(for: Self.grace) }
    await withCheckedContinuation { continuation in
      let isOver = self.move.withLock { move in
        if !move.isOver { move.waiting.append(continuation) }
        return move.isOver
      }
      if isOver { continuation.resume() }
      // Behind all that was submitted before.
      if isFirst.exchanged { self.eventLoop.execute { self.finishMove() } }
    }
  }

  private func finishMove() {
    self.wakeUp.take()?.scheduled.cancel()
    let waiting = self.move.withLock { move in
      move.isOver = true
      self.phase.store(.moved, ordering: .releasing)
      // NIO runs none of it here and now.
      Self.successor.execute {
        if let next = self.timers.nextTime { self.wakeUp(at: .uptimeNanoseconds(UInt64(next))) }
      }
      for work in move.heldWork { Self.successor.execute(work) }
      move.heldWork = []
      defer { move.waiting = [] }
      return move.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  private func executeElsewhere(_ work: @escaping @Sendable () -> Void) {
    self.move.withLock { move in
      if move.isOver {
        Self.successor.execute(work)
      } else {
        move.heldWork.append(work)
      }
    }
  }
}
