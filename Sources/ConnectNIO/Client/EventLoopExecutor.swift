package import Connect
internal import ConnectChannels
package import NIOCore

/// The executor of the calls on one event loop.
///
/// NIO's own timers cost several allocations each, and a cancellation searches among all others. Here one NIO timer
/// serves all timers.
///
/// `@unchecked Sendable`: `timers` and `wakeUp` are touched on `eventLoop` alone. By contract, `schedule` and a timer's
/// `cancel` are called there; `wakeUp` runs there. `eventLoop` is constant.
package final class EventLoopExecutor: CallExecutor, @unchecked Sendable {
  package let eventLoop: any EventLoop
  private let timers = TimerQueue()
  private var wakeUp: (scheduled: Scheduled<Void>, time: NIODeadline)?

  package init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
  }

  /// The event loop may have ended before its timers.
  deinit { self.timers.removeAll() }

  package var now: Duration {
    .nanoseconds(Int64(clamping: self.eventLoop.now.uptimeNanoseconds))
  }

  package var isCurrent: Bool { self.eventLoop.inEventLoop }

  package func execute(_ work: @escaping @Sendable () -> Void) {
    self.eventLoop.execute(work)
  }

  package func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.eventLoop.assertInEventLoop()
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
    let scheduled = self.eventLoop.scheduleTask(deadline: time) { self.runDueTimers() }
    self.wakeUp = (scheduled, time)
  }

  private func runDueTimers() {
    self.wakeUp = nil
    let now = Int64(clamping: self.eventLoop.now.uptimeNanoseconds)
    while let work = self.timers.takeFirst(dueBy: now) { work() }
    if let next = self.timers.nextTime { self.wakeUp(at: .uptimeNanoseconds(UInt64(next))) }
  }
}
