internal import Foundation
internal import Synchronization

/// Runs explorations one after the other, each on a thread of its own. Code under test is then never in a task of the test.
enum ExplorerThread {
  private static let turns = ExplorationTurns()

  /// Runs `body`, until it ends or hangs.
  ///
  /// - Parameters:
  ///   - limit: How long `body` may take from one beat of its watch to the next, in real time.
  ///   - body: Is told whether jobs of tasks without executor are caught.
  /// - Throws: What `body` throws; `CancellationError` if the task is cancelled before its turn; ``ExplorationFailure`` if
  ///   `body` hangs. Its thread is left behind then. Nothing that it still does reaches later explorations: hooks and
  ///   executors know their threads.
  static func run<Value: Sendable>(
    hangingAfter limit: Duration,
    _ body: @escaping @Sendable (_ watch: ExplorationWatch, _ catchesJobs: Bool) throws -> Value
  ) async throws -> Value {
    let watch = ExplorationWatch()
    return try await withTaskCancellationHandler {
      try await self.turns.wait()
      let hooks = RuntimeHooks.install()
      return try await withCheckedThrowingContinuation { continuation in
        // Called by both threads. The first one counts.
        let end: @Sendable (Result<Value, any Error>) -> Void = { result in
          guard watch.end() else { return }
          hooks.remove()
          self.turns.next()
          continuation.resume(with: result)
        }
        self.start("explorer") { end(Result { try body(watch, hooks.catchJobs) }) }
        self.start("explorer's watch") {
          if let failure = watch.waitForHang(limit) { end(.failure(failure)) }
        }
      }
    } onCancel: {
      watch.cancel()
    }
  }

  private static func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
    let thread = Thread(block: body)
    thread.name = name
    // Chains of interceptors are deep in debug builds.
    thread.stackSize = 4 << 20
    thread.start()
  }
}

/// Gives explorations their turns, in their order.
private final class ExplorationTurns: Sendable {
  private struct State {
    var isTaken = false
    var waiting: [(number: Int, continuation: CheckedContinuation<Void, any Error>)] = []
    var count = 0
  }

  private let state = Mutex(State())

  /// Waits for a turn, which ends with ``next()``.
  ///
  /// - Throws: `CancellationError` if the task is cancelled before its turn.
  func wait() async throws {
    let number = self.state.withLock { state in
      state.count += 1
      return state.count
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result = self.state.withLock { state -> Result<Void, any Error>? in
          // A cancellation from now on waits for the lock, and finds the number.
          guard !Task.isCancelled else { return .failure(CancellationError()) }
          guard state.isTaken else {
            state.isTaken = true
            return .success(())
          }
          state.waiting.append((number, continuation))
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      self.cancel(number)
    }
  }

  private func cancel(_ number: Int) {
    let continuation = self.state.withLock { state in
      state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0).continuation }
    }
    continuation?.resume(throwing: CancellationError())
  }

  func next() {
    let next = self.state.withLock { state -> CheckedContinuation<Void, any Error>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst().continuation }
      state.isTaken = false
      return nil
    }
    next?.resume()
  }
}
