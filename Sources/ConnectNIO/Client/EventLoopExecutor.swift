internal import Connect
internal import NIOCore

/// The executor of the calls on one event loop.
final class EventLoopExecutor: CallExecutor {
  let eventLoop: any EventLoop

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
    EventLoopTimer(self.eventLoop.scheduleTask(in: TimeAmount(delay), work))
  }
}

private final class EventLoopTimer: CallTimer {
  private let scheduled: Scheduled<Void>

  init(_ scheduled: Scheduled<Void>) {
    self.scheduled = scheduled
  }

  func cancel() {
    self.scheduled.cancel()
  }
}
