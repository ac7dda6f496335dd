internal import Connect
private import DequeModule
private import Synchronization

/// Bounds how many calls are in flight at once. Make one for all calls that share the bound.
///
/// ```swift
/// let limiter = ConcurrencyLimiter(maximumCalls: 100, maximumWaiting: 1000, maximumWait: .seconds(1))
/// config.interceptors = [{ _ in ConcurrencyLimitInterceptor(limiter) }]
/// ```
///
/// Calls beyond the bound wait for their turn, first come, first served. A call whose deadline passes or that is
/// cancelled leaves the queue at once. A call fails with `resource_exhausted` if the queue is full, after the longest wait,
/// or at once if its deadline will pass before its expected turn. Nothing of such a call was sent. The error has the
/// header `grpc-retry-pushback-ms: -1`, so that it is not retried.
public final class ConcurrencyLimiter: Sendable {
  typealias Completion = @Sendable (Result<Void, ConnectError>) -> Void

  /// Names the permit that a call has or waits for.
  typealias PermitID = Int

  enum Acquisition {
    case running(PermitID)
    case waiting(PermitID)
    case refused(ConnectError)
  }

  private struct Waiter {
    var completion: Completion
    var since: Duration
  }

  private struct State {
    var lastID = 0
    /// The calls in flight, and since when.
    var running: [PermitID: Duration] = [:]
    /// The recent average time that calls keep their permits; nil until the first permit is released.
    var averageTime: Duration?
    var waiting: [PermitID: Waiter] = [:]
    /// In the order of arrival. Those that are not in `waiting` any more have left.
    var queue: Deque<PermitID> = []
    var isWatched = false

    mutating func makeID() -> PermitID {
      self.lastID += 1
      return self.lastID
    }

    /// Releases the permit of a call in flight; false if it has none.
    mutating func release(_ id: PermitID, now: Duration) -> Bool {
      guard let start = self.running.removeValue(forKey: id) else { return false }
      let time = now - start
      // An exponential moving average over about eight calls.
      self.averageTime = self.averageTime.map { $0 + (time - $0) / 8 } ?? time
      return true
    }

    /// How long a new call is expected to wait if there is no permit left: until as many calls have ended as are waiting, and
    /// one more. Nil as long as no call has ended.
    func expectedWait(_ maximumCalls: Int) -> Duration? {
      self.averageTime.map { $0.scaled(by: Double(self.waiting.count + 1) / Double(maximumCalls)) }
    }

    /// The call that has waited longest.
    mutating func first() -> (id: PermitID, waiter: Waiter)? {
      while let id = self.queue.first {
        if let waiter = self.waiting[id] { return (id, waiter) }
        self.queue.removeFirst()
      }
      return nil
    }

    mutating func takeFirst() -> (id: PermitID, waiter: Waiter)? {
      guard let first = self.first() else { return nil }
      self.queue.removeFirst()
      self.waiting[first.id] = nil
      return first
    }
  }

  /// How many calls may be in flight.
  public let maximumCalls: Int
  /// How many calls may wait for their turn; further calls fail with `resource_exhausted`.
  public let maximumWaiting: Int
  /// How long a call may wait before it fails with `resource_exhausted`; nil for as long as its deadline lets it.
  public let maximumWait: Duration?
  private let clock: any Clock<Duration>
  private let time: ElapsedTime
  private let state = Mutex(State())

  /// A limiter without calls.
  ///
  /// - Parameters:
  ///   - maximumCalls: How many calls may be in flight; at least 1.
  ///   - maximumWaiting: How many calls may wait; with 0, the least, calls beyond the bound fail at once.
  ///   - maximumWait: See ``maximumWait``.
  ///   - clock: Measures waits and the durations of calls.
  public init(
    maximumCalls: Int,
    maximumWaiting: Int = 1000,
    maximumWait: Duration? = nil,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.maximumCalls = max(1, maximumCalls)
    self.maximumWaiting = max(0, maximumWaiting)
    self.maximumWait = maximumWait?.clamped
    self.clock = clock
    self.time = ElapsedTime(on: clock)
  }

  /// How many calls are in flight.
  public var runningCount: Int { self.state.withLock { $0.running.count } }

  /// How many calls wait for their turn.
  public var waitingCount: Int { self.state.withLock { $0.waiting.count } }

  /// How long a new call can expect to wait, estimated from the number of waiting calls and the recent duration of
  /// calls. Nil as long as no call has ended.
  public var expectedWait: Duration? {
    self.state.withLock { state in
      state.running.count < self.maximumCalls ? .zero : state.expectedWait(self.maximumCalls)
    }
  }

  // MARK: For calls

  /// The time on the limiter's clock.
  var now: Duration { self.time.now }

  /// Acquires a permit for a call.
  ///
  /// - Parameters:
  ///   - deadline: When the call ends at the latest, on the same clock as ``now``; nil if there is no limit.
  ///   - completion: Called once if the call has to wait, with success when it may go on, or with the error that it fails
  ///     with. Not called any more after ``release(_:)``.
  func acquire(deadline: Duration?, _ completion: @escaping Completion) -> Acquisition {
    let now = self.time.now
    let (acquisition, mustWatch) = self.state.withLock { state -> (Acquisition, Bool) in
      if state.running.count < self.maximumCalls {
        let id = state.makeID()
        state.running[id] = now
        return (.running(id), false)
      }
      guard state.waiting.count < self.maximumWaiting else { return (.refused(self.queueIsFull), false) }
      if let deadline, let wait = state.expectedWait(self.maximumCalls), now + wait >= deadline {
        return (.refused(self.wouldComeTooLate(wait, remaining: deadline - now)), false)
      }
      let id = state.makeID()
      state.waiting[id] = Waiter(completion: completion, since: now)
      state.queue.append(id)
      let mustWatch = self.maximumWait != nil && !state.isWatched
      if mustWatch { state.isWatched = true }
      return (.waiting(id), mustWatch)
    }
    if mustWatch { self.watch() }
    return acquisition
  }

  func isRunning(_ id: PermitID) -> Bool {
    self.state.withLock { $0.running[id] != nil }
  }

  /// Releases the permit of a running call, or ends the wait of a waiting one. To be called once.
  func release(_ id: PermitID) {
    // The waiter is released outside of the lock: its release may release the call and run user code.
    let now = self.time.now
    let (next, left) = self.state.withLock { state -> (Waiter?, Waiter?) in
      guard state.release(id, now: now) else {
        let left = state.waiting.removeValue(forKey: id)
        // Compact the queue once most of it has left: amortised O(1) for each call.
        if state.queue.count > 2 * state.waiting.count + 16 {
          state.queue.removeAll { state.waiting[$0] == nil }
        }
        return (nil, left)
      }
      guard let next = state.takeFirst() else { return (nil, nil) }
      state.running[next.id] = now
      return (next.waiter, nil)
    }
    withExtendedLifetime(left) {}
    next?.completion(.success(()))
  }

  // MARK: The longest wait

  /// One task for all waiting calls, as long as there are any: the first in the queue is the first whose time is up.
  private func watch() {
    guard let maximumWait = self.maximumWait else { return }
    Task(executorPreference: (self.clock as? any ExecutorClock)?.taskExecutor) {
      while let first = self.state.withLock({ state -> Waiter? in
        let first = state.first()
        if first == nil { state.isWatched = false }
        return first?.waiter
      }) {
        let remaining = first.since + maximumWait - self.time.now
        if remaining > .zero { try? await self.clock.sleep(for: remaining) }
        self.refuseLate(maximumWait)
      }
    }
  }

  private func refuseLate(_ maximumWait: Duration) {
    let now = self.time.now
    while let late = self.state.withLock({ state -> Waiter? in
      guard let first = state.first(), first.waiter.since + maximumWait <= now else { return nil }
      return state.takeFirst()?.waiter
    }) {
      late.completion(.failure(self.waitedTooLong(maximumWait)))
    }
  }

  // MARK: Errors

  private var queueIsFull: ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message:
        "\(self.maximumCalls) calls are under way and \(self.maximumWaiting) wait, which are the limits"
    ).forbiddingRetry()
  }

  private func wouldComeTooLate(_ wait: Duration, remaining: Duration) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message:
        "the call would wait for about \(wait) for one of the \(self.maximumCalls) that may be under way, and has "
        + "\(remaining) left"
    ).forbiddingRetry()
  }

  private func waitedTooLong(_ maximumWait: Duration) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "the call has waited \(maximumWait) for one of the \(self.maximumCalls) that may be under way"
    ).forbiddingRetry()
  }
}
