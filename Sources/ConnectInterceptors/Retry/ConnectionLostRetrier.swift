public import Connect

/// A ``RequestRetrier`` for calls that have lost their connection, or had none. They are retried if their method may be
/// called twice.
///
/// ```swift
/// config.interceptors = [{ _ in RequestInterceptor(retriers: [ConnectionLostRetrier()]) }]
/// ```
///
/// Errors that a server has answered with are left to other retriers.
public struct ConnectionLostRetrier: RequestRetrier {
  /// How many attempts there may be beyond the first.
  public var maximumRetries: Int
  /// How long to wait before each further attempt.
  public var backoff: Backoff
  /// Whether the calls of a method may be made twice.
  public var methods: @Sendable (MethodInfo) -> Bool
  /// Where the jitter of waits comes from, as in ``RetryPolicy/random``.
  public var random: @Sendable () -> Double

  /// A retrier: by default 2 retries, with the default backoff.
  ///
  /// - Parameters:
  ///   - maximumRetries: See ``maximumRetries``.
  ///   - backoff: See ``backoff``.
  ///   - methods: By default those whose proto says that they are idempotent or have no side effects.
  ///   - random: See ``random``.
  public init(
    maximumRetries: Int = 2,
    backoff: Backoff = Backoff(),
    methods: @escaping @Sendable (MethodInfo) -> Bool = { $0.idempotencyLevel != .unknown },
    random: @escaping @Sendable () -> Double = { .random(in: 0...1) }
  ) {
    self.maximumRetries = maximumRetries
    self.backoff = backoff
    self.methods = methods
    self.random = random
  }

  public func retry(_ attempt: FailedAttempt) async -> RetryResult {
    guard attempt.error.isConnectionLost, !attempt.error.isFinal, attempt.number <= self.maximumRetries,
      self.methods(attempt.method)
    else { return .doNotRetry }
    return .retryWithDelay(self.backoff.delay(beforeRetry: attempt.number, random: self.random()))
  }
}
