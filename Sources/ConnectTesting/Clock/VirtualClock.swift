public import Connect
internal import Synchronization

/// The time of a ``VirtualExecutor``, or of a simulation, as a `Clock`: for code that takes a clock to sleep on.
///
/// ```swift
/// let interceptor = BackoffInterceptor(clock: executor.clock)  // takes `any Clock<Duration>`
/// ```
public struct VirtualClock: Clock, ExecutorClock {
  /// A point in virtual time.
  public struct Instant: InstantProtocol {
    /// Time since the executor was made; at most 100 years count.
    public var offset: Duration

    /// A point in time by its offset.
    public init(offset: Duration) {
      self.offset = offset
    }

    /// The point in time after `duration`.
    public func advanced(by duration: Duration) -> Instant {
      Instant(offset: (self.offset.clamped + duration.clamped).clamped)
    }

    /// The time from this point to another; less than zero if the other is earlier.
    public func duration(to other: Instant) -> Duration {
      other.offset.clamped - self.offset.clamped
    }

    public static func < (lhs: Instant, rhs: Instant) -> Bool {
      lhs.offset < rhs.offset
    }
  }

  private let executor: any CallExecutor
  private let supervisor: (any SleepSupervisor)?

  /// - Parameters:
  ///   - executor: An executor in virtual time. If timers can be set only on the executor itself, `sleep` is only for
  ///     tasks that run on it.
  ///   - supervisor: Hears of tasks that sleep.
  package init(_ executor: any CallExecutor, supervisor: (any SleepSupervisor)? = nil) {
    self.executor = executor
    self.supervisor = supervisor
  }

  /// The executor's time now. It moves only when the test, or a simulation, moves it.
  public var now: Instant { Instant(offset: self.executor.now) }

  /// Zero: virtual time has no smallest step.
  public var minimumResolution: Duration { .zero }

  package var taskExecutor: (any TaskExecutor)? { self.executor.taskExecutor }

  /// Waits until a test has moved time on to `deadline`; returns at once if it has passed.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    if self.supervisor?.endsTasks == true { cancelCurrentTask() }
    guard !Task.isCancelled else {
      await self.supervisor?.pause()
      throw CancellationError()
    }
    let delay = self.now.duration(to: deadline)
    guard delay > .zero else {
      await self.supervisor?.pause()
      return
    }
    let sleeper = Sleeper()
    try await withTaskCancellationHandler {
      try await withUnsafeThrowingContinuation { continuation in
        let timer = self.executor.schedule(after: delay) { sleeper.wake(.success(())) }
        sleeper.begin(continuation, timer)
      }
    } onCancel: {
      sleeper.wake(.failure(CancellationError()))
    }
  }
}

/// Finds tasks that would go on for ever.
package protocol SleepSupervisor: Sendable {
  /// Whether tasks that want to sleep are cancelled, since nobody needs them any more.
  var endsTasks: Bool { get }

  /// Suspends the task in place of a sleep that takes no time. So a loop of such sleeps is no loop without suspensions.
  func pause() async
}

/// Cancels the task that calls it.
func cancelCurrentTask() { withUnsafeCurrentTask { $0?.cancel() } }

extension VirtualExecutor {
  /// This executor's time as a `Clock`.
  public var clock: VirtualClock { VirtualClock(self) }
}

/// One `sleep` of a ``VirtualClock``, which ends once: by time or by cancellation, whichever comes first. Executors that end let go
/// of sleepers for ever: a checked continuation would warn of each.
private final class Sleeper: Sendable {
  private enum State {
    case new
    case asleep(UnsafeContinuation<Void, any Error>, any CallTimer)
    case awake(Result<Void, any Error>)
  }

  private let state = Mutex(State.new)

  func begin(_ continuation: UnsafeContinuation<Void, any Error>, _ timer: any CallTimer) {
    let result = self.state.withLock { state -> Result<Void, any Error>? in
      if case .awake(let result) = state { return result }
      state = .asleep(continuation, timer)
      return nil
    }
    guard let result else { return }
    timer.cancel()
    continuation.resume(with: result)
  }

  func wake(_ result: Result<Void, any Error>) {
    let earlier = self.state.withLock { state in
      let earlier = state
      if case .awake = earlier {} else { state = .awake(result) }
      return earlier
    }
    guard case .asleep(let continuation, let timer) = earlier else { return }
    timer.cancel()
    continuation.resume(with: result)
  }
}
