internal import Connect
internal import NIOCore

/// The executor of the calls on one event loop.
///
/// Calls set a timer for their deadline and nearly always cancel it. NIO's own timers cost several allocations
/// each, and a search among all others to cancel. Here cancelling marks the timer; one timer of NIO's stands for
/// all of them.
///
/// `@unchecked Sendable`: `timers` and `wakeUp` are touched on `eventLoop` alone: by `schedule`, which by contract
/// is called there, by `EventLoopTimer.cancel`, likewise, and by `wakeUp` itself. `eventLoop` is constant.
final class EventLoopExecutor: CallExecutor, @unchecked Sendable {
  let eventLoop: any EventLoop
  private var timers = TimerHeap<NIODeadline, EventLoopTimer>()
  private var cancelledCount = 0
  private var wakeUp: (scheduled: Scheduled<Void>, time: NIODeadline)?

  init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
  }

  var now: Duration {
    .nanoseconds(Int64(clamping: self.eventLoop.now.uptimeNanoseconds))
  }

  var isCurrent: Bool { self.eventLoop.inEventLoop }

  func execute(_ work: @escaping @Sendable () -> Void) {
    self.eventLoop.execute(work)
  }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.eventLoop.assertInEventLoop()
    let time = self.eventLoop.now + TimeAmount(max(delay.clamped, .zero))
    let timer = EventLoopTimer(work, on: self)
    self.timers.insert(timer, at: time)
    self.wakeUp(at: time)
    return timer
  }

  fileprivate func didCancelTimer() {
    self.eventLoop.assertInEventLoop()
    self.cancelledCount += 1
    // Cancelled ones go when they are most of what is there, so that each costs its share of one sweep.
    guard self.cancelledCount > 64, self.cancelledCount > self.timers.count / 2 else { return }
    self.timers.removeAll { $0.isCancelled }
    self.cancelledCount = 0
  }

  private func wakeUp(at time: NIODeadline) {
    if let current = self.wakeUp {
      guard time < current.time else { return }
      current.scheduled.cancel()
    }
    let scheduled = self.eventLoop.scheduleTask(deadline: time) { self.runDueTimers() }
    self.wakeUp = (scheduled, time)
  }

  private func runDueTimers() {
    self.wakeUp = nil
    let now = self.eventLoop.now
    while let first = self.timers.first, first.time <= now || first.element.isCancelled {
      self.timers.removeFirst()
      if first.element.isCancelled {
        self.cancelledCount = max(self.cancelledCount - 1, 0)
      } else {
        first.element.fire()
      }
    }
    if let next = self.timers.first { self.wakeUp(at: next.time) }
  }
}

/// `@unchecked Sendable`: `work` and `executor` are touched on the executor's event loop alone, where `cancel` is called by
/// contract and `fire` by the executor.
private final class EventLoopTimer: CallTimer, @unchecked Sendable {
  private var work: (@Sendable () -> Void)?
  private var executor: EventLoopExecutor?

  init(_ work: @escaping @Sendable () -> Void, on executor: EventLoopExecutor) {
    self.work = work
    self.executor = executor
  }

  var isCancelled: Bool { self.work == nil }

  func fire() {
    self.executor = nil
    self.work.take()?()
  }

  func cancel() {
    guard self.work.take() != nil else { return }
    self.executor.take()?.didCancelTimer()
  }
}
