internal import Synchronization

#if canImport(Musl)
internal import Musl
#else
internal import Glibc
#endif

/// The executor of calls that no transport serves, since their host is not usable. Runs work in order, in tasks of the
/// concurrency pool.
final class PoolExecutor: CallExecutor {
  private struct State {
    var work: [@Sendable () -> Void] = []
    var isRunning = false
    /// The thread that runs a piece of work just now.
    var thread: pthread_t?
  }

  private let state = Mutex(State())
  private let start = ContinuousClock.now

  var now: Duration { ContinuousClock.now - self.start }

  var isCurrent: Bool { self.state.withLock { $0.thread == pthread_self() } }

  func execute(_ work: @escaping @Sendable () -> Void) {
    let mustStart = self.state.withLock { state in
      state.work.append(work)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    guard mustStart else { return }
    Task.detached { self.drain() }
  }

  private func drain() {
    while let work = self.takeNext() {
      self.state.withLock { $0.thread = pthread_self() }
      work()
      self.state.withLock { $0.thread = nil }
    }
  }

  private func takeNext() -> (@Sendable () -> Void)? {
    self.state.withLock { state in
      guard !state.work.isEmpty else {
        state.isRunning = false
        return nil
      }
      return state.work.removeFirst()
    }
  }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    TaskTimer(
      Task.detached {
        guard (try? await Task.sleep(for: delay.clamped)) != nil else { return }
        self.execute(work)
      }
    )
  }
}

private final class TaskTimer: CallTimer {
  private let task: Task<Void, Never>

  init(_ task: Task<Void, Never>) {
    self.task = task
  }

  func cancel() {
    self.task.cancel()
  }
}
