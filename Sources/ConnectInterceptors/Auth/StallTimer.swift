internal import Synchronization

/// The timer of the newest refresh that may wait for itself. Late events of earlier refreshes do not affect it.
final class StallTimer: Sendable {
  private struct Timer: Sendable {
    let refresh: UInt64
    let task: Task<Void, Never>
  }

  private let timer = Mutex<Timer?>(nil)

  /// Keeps the task that watches a refresh, in place of those of earlier refreshes. Cancels it if there is a newer one.
  func set(_ task: Task<Void, Never>, for refresh: UInt64) {
    let unneeded = self.timer.withLock { timer -> Task<Void, Never>? in
      let earlier = timer
      if let earlier, earlier.refresh > refresh { return task }
      timer = Timer(refresh: refresh, task: task)
      return earlier?.task
    }
    unneeded?.cancel()
  }

  /// All refreshes up to this number have ended.
  func cancel(upTo refresh: UInt64) {
    let task = self.timer.withLock { timer -> Task<Void, Never>? in
      guard let ended = timer, ended.refresh <= refresh else { return nil }
      timer = nil
      return ended.task
    }
    task?.cancel()
  }
}
