internal import Connect
internal import Synchronization

/// Work scheduled on a ``VirtualExecutor``.
final class VirtualTimer: CallTimer {
  let due: Duration
  /// nil once it has run or was cancelled.
  private let work: Mutex<(@Sendable () -> Void)?>

  init(due: Duration, work: @escaping @Sendable () -> Void) {
    self.due = due
    self.work = Mutex(work)
  }

  var isOver: Bool { self.work.withLock { $0 == nil } }

  func cancel() {
    _ = self.take()
  }

  func fire() {
    self.take()?()
  }

  private func take() -> (@Sendable () -> Void)? {
    self.work.withLock { work in
      defer { work = nil }
      return work
    }
  }
}
