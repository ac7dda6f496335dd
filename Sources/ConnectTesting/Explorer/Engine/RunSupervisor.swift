internal import Connect
internal import Synchronization

/// Finds tasks that loop without end, and ends those that would outlive their run.
final class RunSupervisor: SleepSupervisor {
  private let executor: ExplorerExecutor
  private let isEnding = Atomic(false)

  init(_ executor: ExplorerExecutor) {
    self.executor = executor
  }

  /// From now on, work goes on only to release what it holds.
  func beginEnd() { self.isEnding.store(true, ordering: .relaxed) }

  var endsTasks: Bool { self.isEnding.load(ordering: .relaxed) }

  func pause() async {
    await withUnsafeContinuation { continuation in
      let resume: @Sendable () -> Void = { continuation.resume() }
      if self.executor.hasEnded {
        // Whoever loops after the end leaves the processor to others.
        _ = self.executor.schedule(after: .milliseconds(10), resume)
      } else if self.executor.isCurrent {
        self.executor.add(.closure(resume), lane: 0)
      } else {
        self.executor.execute(resume)
      }
    }
  }
}
