/// How a unary call hedges against a slow or failing server. It makes further attempts while earlier ones still run,
/// and takes the first good answer.
///
/// The rules are those of [gRPC's proposal A6](https://github.com/grpc/proposal/blob/master/A6-client-retries.md). Each
/// further attempt starts a ``delay`` after the one before, or at once when an attempt fails with one of ``codes``. The
/// first success, or the first error with another code, is the call's outcome, and all attempts that still run are
/// cancelled on the wire. When all fail, the last error is the outcome. An error that carries `grpc-retry-pushback-ms`
/// delays the next attempt by exactly this number of milliseconds. With a negative value, or a value that is not a
/// number, no further attempt starts.
///
/// Interceptors see one request, and the answer that wins; only metrics hooks hear of every attempt. Requests from the
/// second attempt on say in `grpc-previous-rpc-attempts` how many there were before.
///
/// ```swift
/// config.hedging = { method in
///   method.name == "Search" ? HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(20), budget: budget) : nil
/// }
/// ```
public struct HedgingPolicy: Sendable {
  /// How many attempts a call makes at most, with the first one. Hedges do not count as retries
  /// (``ProtocolClientConfig/Retries/maximumRetries``). A retry by an interceptor does not allow more hedges. Less than
  /// 2 means no hedging; more than 5 count as 5, as in gRPC.
  public var maximumAttempts: Int
  /// The time between the starts of two attempts; zero to start all at once.
  public var delay: Duration
  /// The codes of errors after which another attempt may succeed. An error with any other code ends the call.
  public var codes: Set<Code>
  /// If the server asks for a longer delay before the next attempt than this, no further attempt starts.
  public var longestServerDelay: Duration
  /// Whether to hedge methods that their proto does not mark as free of side effects. The server may then process the
  /// request several times, even at the same time.
  public var allowsSideEffects: Bool
  /// Records successes, and failures with one of ``codes``. No further attempt starts while the budget does not allow
  /// it. Without a budget, hedges add to the load of a server that is slow from overload. If an interceptor uses the
  /// same budget for the same calls, the budget counts each outcome twice.
  public var budget: RetryBudget?

  /// A policy for the methods of a client or for one call. Only ``delay`` has no default: 2 attempts, after
  /// `unavailable`, server delays of up to 60 seconds, only methods without side effects, no budget.
  public init(
    maximumAttempts: Int = 2,
    delay: Duration,
    codes: Set<Code> = [.unavailable],
    longestServerDelay: Duration = .seconds(60),
    allowsSideEffects: Bool = false,
    budget: RetryBudget? = nil
  ) {
    self.maximumAttempts = maximumAttempts
    self.delay = delay
    self.codes = codes
    self.longestServerDelay = longestServerDelay
    self.allowsSideEffects = allowsSideEffects
    self.budget = budget
  }

  /// No hedging.
  public static var disabled: HedgingPolicy { HedgingPolicy(maximumAttempts: 1, delay: .zero) }

  /// ``maximumAttempts``, at most 5.
  var attemptLimit: Int { min(self.maximumAttempts, 5) }

  /// Whether calls of `method` are hedged.
  func applies(to method: MethodInfo) -> Bool {
    self.maximumAttempts > 1 && (self.allowsSideEffects || method.idempotencyLevel == .noSideEffects)
  }
}
