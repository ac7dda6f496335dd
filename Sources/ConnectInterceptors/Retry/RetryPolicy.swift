public import Connect

/// Which calls a ``RetryInterceptor`` makes again, how often, and when.
///
/// The first of these in the error of the failed attempt decides how long it waits before the next:
///
/// | in the error | wait |
/// | --- | --- |
/// | `grpc-retry-pushback-ms` | exactly as long; less than zero, or no number: no other attempt |
/// | detail `google.rpc.RetryInfo` | its `retry_delay`, and the backoff's delay on top |
/// | `Retry-After`, in seconds or as a date | the same |
/// | nothing of these | the backoff's delay |
///
/// The delay on top spreads clients that all were told the same. After `grpc-retry-pushback-ms` the backoff restarts,
/// as [gRPC does it](https://github.com/grpc/proposal/blob/master/A6-client-retries.md). What the server says decides
/// when, not whether: an error with another code than those of ``codes`` is not retried.
///
/// The call's deadline is kept: where the wait would pass it, the error is the call's outcome at once.
public struct RetryPolicy: Sendable {
  /// How many attempts a call makes at most, including the first attempt and attempts that other interceptors start.
  /// The cap of the client's configuration (`ProtocolClientConfig.Retries`) applies as well. If the cap is lower, the
  /// client logs this with its first call.
  public var maximumAttempts: Int
  /// How long to wait before each further attempt where the server does not say it.
  public var backoff: Backoff
  /// The codes of errors after which another attempt may succeed.
  public var codes: Set<Code>
  /// Whether the calls of a method may be made twice.
  public var methods: @Sendable (MethodInfo) -> Bool
  /// If the server wants a longer wait than this, its error is the call's outcome at once.
  public var longestServerDelay: Duration
  /// Whether a stream's headers wait for its first message or its end. Once headers have gone out to the caller, a stream
  /// is not retried, and in most protocols headers come before any error.
  ///
  /// Set it to false if a caller waits for headers before it sends its messages, or before the first message arrives.
  public var holdsStreamHeaders: Bool
  /// Where the jitter of waits comes from: a number from 0 to 1 each time. The system's random numbers by default. In a
  /// simulation, use `SimulatedCluster.chance`, so that each run is the same.
  public var random: @Sendable () -> Double

  /// A policy as given; what is left out is as in ``defaults``.
  ///
  /// - Parameters:
  ///   - maximumAttempts: See ``maximumAttempts``.
  ///   - backoff: See ``backoff``.
  ///   - codes: See ``codes``.
  ///   - methods: By default those whose proto says that they are idempotent or have no side effects.
  ///     `{ _ in true }` for all.
  ///   - longestServerDelay: See ``longestServerDelay``.
  ///   - holdsStreamHeaders: See ``holdsStreamHeaders``.
  ///   - random: See ``random``.
  public init(
    maximumAttempts: Int = 4,
    backoff: Backoff = Backoff(),
    codes: Set<Code> = [.unavailable],
    methods: @escaping @Sendable (MethodInfo) -> Bool = { $0.idempotencyLevel != .unknown },
    longestServerDelay: Duration = .seconds(60),
    holdsStreamHeaders: Bool = true,
    random: @escaping @Sendable () -> Double = { .random(in: 0...1) }
  ) {
    self.maximumAttempts = maximumAttempts
    self.backoff = backoff
    self.codes = codes
    self.methods = methods
    self.longestServerDelay = longestServerDelay
    self.holdsStreamHeaders = holdsStreamHeaders
    self.random = random
  }

  /// 4 attempts after `unavailable`, 100 ms of backoff that doubles up to 10 s, for methods that may be repeated.
  public static var defaults: RetryPolicy { RetryPolicy() }
}
