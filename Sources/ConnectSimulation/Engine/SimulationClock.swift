internal import Connect

/// The time of a simulation, for interceptors and caches that have a clock of their own.
///
/// ```swift
/// let breaker = CircuitBreaker(clock: cluster.clock)
/// ```
public struct SimulationClock: Clock {
  public struct Instant: InstantProtocol {
    /// Since the simulation began.
    public let time: Duration

    public func advanced(by duration: Duration) -> Instant { Instant(time: self.time + duration) }
    public func duration(to other: Instant) -> Duration { other.time - self.time }
    public static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.time < rhs.time }
  }

  let executor: SimulationExecutor

  public var now: Instant { Instant(time: self.executor.now) }
  public var minimumResolution: Duration { .nanoseconds(1) }

  /// Waits in virtual time. To be called by tasks of the simulation, such as handlers and calls.
  ///
  /// - Throws: `CancellationError` if the task is cancelled meanwhile.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try Task.checkCancellation()
    let sleep = Sleep()
    let executor = self.executor
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        executor.run { sleep.begin(continuation, until: deadline.time, on: executor) }
      }
    } onCancel: {
      executor.run { sleep.cancel() }
    }
  }
}

/// `@unchecked Sendable`: touched on the executor alone.
private final class Sleep: @unchecked Sendable {
  private var continuation: CheckedContinuation<Void, any Error>?
  private var timer: (any CallTimer)?
  private var isCancelled = false

  func begin(
    _ continuation: CheckedContinuation<Void, any Error>,
    until time: Duration,
    on executor: SimulationExecutor
  ) {
    guard !self.isCancelled else {
      continuation.resume(throwing: CancellationError())
      return
    }
    self.continuation = continuation
    self.timer = executor.schedule(after: time - executor.now) { self.continuation.take()?.resume() }
  }

  func cancel() {
    self.isCancelled = true
    self.timer?.cancel()
    self.continuation.take()?.resume(throwing: CancellationError())
  }
}
