/// How a unary call hedges against a slow or failing server: it makes further attempts while earlier ones still run, and
/// takes the first good answer.
///
/// The rules are those of [gRPC's proposal A6](https://github.com/grpc/proposal/blob/master/A6-client-retries.md): each
/// further attempt starts a ``delay`` after the one before, or at once when an attempt fails with one of ``codes``. The
/// first success, or the first error with another code, is the call's outcome, and all attempts that still run are
/// cancelled on the wire. When all fail, the last error is the outcome. An error that carries `grpc-retry-pushback-ms`
/// puts off the next attempt for exactly so long; with a value less than zero, or none that is a number, no other starts.
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
  /// (``ProtocolClientConfig/Retries/maximumRetries``); a call that an interceptor retries makes no more
  /// hedges for that. Less than 2 means no hedging; more than 5 count as 5, as in gRPC.
  public var maximumAttempts: Int
  /// The time between the starts of two attempts; zero to start all at once.
  public var delay: Duration
  /// The codes of errors after which another attempt may succeed. Any other ends the call.
  public var codes: Set<Code>
  /// If the server wants the next attempt to be put off for longer than this, there is none.
  public var longestServerDelay: Duration
  /// Whether methods are hedged that are not marked as free of side effects in their proto. The server may then do what
  /// is asked several times, even at the same time.
  public var allowsSideEffects: Bool
  /// Is told of successes and of failures with one of ``codes``; no further attempts start while it does not allow them.
  /// Without one, a server that is slow from overload gets all the attempts on top. If an interceptor uses the same
  /// budget for the same calls, it counts their outcome once more.
  public var budget: (any AttemptBudget)?

  public init(
    maximumAttempts: Int = 2,
    delay: Duration,
    codes: Set<Code> = [.unavailable],
    longestServerDelay: Duration = .seconds(60),
    allowsSideEffects: Bool = false,
    budget: (any AttemptBudget)? = nil
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

  /// ``maximumAttempts``, as far as it counts.
  var attemptLimit: Int { min(self.maximumAttempts, 5) }

  /// Whether calls of `method` are hedged.
  func applies(to method: MethodInfo) -> Bool {
    self.maximumAttempts > 1 && (self.allowsSideEffects || method.idempotencyLevel == .noSideEffects)
  }
}
