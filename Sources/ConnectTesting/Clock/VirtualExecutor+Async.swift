internal import Connect
internal import Synchronization

extension VirtualExecutor {
  /// Runs `operation` here, and lets time pass as fast as it can: whenever nothing more happens without time, it is
  /// moved on to the earliest scheduled work.
  ///
  /// ```swift
  /// let response = try await executor.lettingTimePass { await client.unary(say, request) }
  /// XCTAssertEqual(executor.now, .seconds(3))  // two delays, of 1 and 2 seconds
  /// ```
  ///
  /// Whatever runs elsewhere (a task that is made in `operation` without this executor, a callback of other code)
  /// is waited for only while nothing is scheduled here.
  ///
  /// - Parameters:
  ///   - limit: How much may pass.
  ///   - patience: How much real time the operation may spend waiting for something elsewhere.
  ///   - operation: Runs in a new task that prefers this executor.
  /// - Throws: What `operation` throws; ``VirtualTimeLimit`` if it has not ended at the limit, or when there is no
  ///   patience left. Its task is cancelled then.
  public func lettingTimePass<Value: Sendable>(
    upTo limit: Duration = .seconds(3600),
    patience: Duration = .seconds(30),
    _ operation: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let end = (self.now + limit.clamped).clamped
    let hasEnded = Flag()
    let task = Task(executorPreference: self) {
      defer { hasEnded.raise() }
      return try await operation()
    }
    do {
      try await withTaskCancellationHandler {
        try await self.poll(upTo: patience) {
          for _ in 0..<1000 where !hasEnded.isRaised {
            guard self.advanceToNext(by: end) else { break }
          }
          return hasEnded.isRaised || self.scheduled.first.map { $0 > end } == true
        }
      } onCancel: {
        task.cancel()
      }
    } catch {
      task.cancel()
      throw error
    }
    guard hasEnded.isRaised else {
      task.cancel()
      throw VirtualTimeLimit(description: "the operation has not ended by \(end)")
    }
    return try await task.value
  }

  /// Waits until `condition` holds, for tests of code that also works elsewhere, as in tasks of the concurrency pool.
  /// Time stands still.
  ///
  /// ```swift
  /// try await executor.wait { !executor.scheduled.isEmpty }
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The real time to wait at most.
  ///   - condition: Called again and again, at any time when the executor is idle.
  /// - Throws: ``VirtualTimeLimit`` if it does not hold in time, `CancellationError` if the task is cancelled.
  public func wait(upTo limit: Duration = .seconds(30), until condition: () -> Bool) async throws {
    try await self.poll(upTo: limit, condition)
  }

  private func poll(upTo limit: Duration, _ condition: () -> Bool) async throws {
    let end = ContinuousClock.now + limit.clamped
    var rounds = 0
    while true {
      self.runUntilIdle()
      if condition() { return }
      try Task.checkCancellation()
      guard ContinuousClock.now < end else {
        throw VirtualTimeLimit(
          description: "what was waited for did not happen within \(limit.clamped) of real time; "
            + "virtual time is \(self.now), scheduled is \(self.scheduled)"
        )
      }
      rounds += 1
      // Tasks of the pool get their turn at once; other threads may need a little longer.
      if rounds < 100 { await Task.yield() } else { try await Task.sleep(for: .milliseconds(1)) }
    }
  }
}

/// Something did not happen within the time that a test has given it.
public struct VirtualTimeLimit: Error, CustomStringConvertible {
  public let description: String
}

/// A flag that is raised once, from any thread.
final class Flag: Sendable {
  private let state = Atomic(false)

  func raise() { self.state.store(true, ordering: .releasing) }

  var isRaised: Bool { self.state.load(ordering: .acquiring) }
}
