public import Connect
public import Logging

/// What the recommended interceptors of a client share. Made once for a client, or for several of the same service.
///
/// ```swift
/// var parts = ClientParts(logger: Logger(label: "calls"))
/// parts.credentials = credentials
/// let config = ProtocolClientConfig(
///   host: "https://api.example.com",
///   interceptors: .recommended(for: parts),
///   contextPropagators: [ServiceContextPropagator()]
/// )
/// ```
///
/// A part that is nil is left out. Interceptors of your own stand before, after, or in place of a part. The part is named
/// by the type of its interceptor:
///
/// ```swift
/// parts.insert(before: RetryInterceptor.self) { MyInterceptor(config: $0) }
/// parts.replace(LoggingInterceptor.self) { MyInterceptor(config: $0) }
/// ```
///
/// A part that is left out, since it is nil or has no backend, still has its place. ``TracingInterceptor`` stands twice,
/// around calls and around attempts: the place before it is outside of both, the place after it inside of both. The same is
/// true of ``CookieInterceptor``, for requests and for the responses of attempts.
///
/// A type that is not in the recommended set is a mistake. Debug builds stop there. Release builds log a warning, and add
/// the interceptor behind the set.
public struct ClientParts: Sendable {
  /// Sends the request's id and baggage.
  public var context: ContextInterceptor.Options? = .defaults
  /// Whether calls and attempts have spans.
  public var isTraced = true
  /// Records the duration and the outcome of calls.
  public var metrics: CallMetrics? = CallMetrics()
  /// Logs calls.
  public var log: CallLog?
  /// The HTTP statuses that a unary response may have; nil for what the protocols let pass, which is 200, and 304 where
  /// the cache answers it.
  public var acceptedStatuses: Set<Int>?
  /// Authenticates calls; nil, the default, for none.
  public var credentials: Credentials?
  /// Sends cookies, of one user; nil, the default, for none.
  public var cookies: CookieJar?
  /// Answers repeated unary calls without side effects; nil, the default, for none.
  public var cache: ResponseCache?
  /// Which failed calls are retried, how often, and when.
  public var retryPolicy: RetryPolicy? = .defaults
  /// The budget of the retries. A `HedgingPolicy` in the client's configuration should have this budget, too.
  public var retryBudget = RetryBudget()
  /// Stops calls to servers that fail.
  public var circuitBreaker: CircuitBreaker? = CircuitBreaker()
  /// Bounds how many calls run at the same time; nil, the default, for no bound.
  public var concurrencyLimiter: ConcurrencyLimiter?
  /// What the user has put before, after, and in place of parts, in the order of the calls.
  var edits: [PartEdit] = []
  /// Warns of edits that cannot be made.
  let logger: Logger

  /// Context, traces, metrics, a log, retries and a circuit breaker with their defaults. No credentials, cache or
  /// concurrency limit: set these if they are needed.
  ///
  /// - Parameter logger: For the log. In each second, the first 100 lines of a kind are written, then every 100th.
  public init(logger: Logger) {
    self.logger = logger
    self.log = CallLog(
      logger: logger,
      options: CallLog.Options(sampling: LogSampling(first: 100, thereafter: 100))
    )
  }
}

extension ClientParts {
  /// The places of the recommended interceptors, in their order. A part that is left out has a place, too.
  var places: [PartPlace] {
    let spans: Void? = self.isTraced && TracingInterceptor.hasBackend ? () : nil
    return [
      PartPlace(ContextInterceptor.self, self.context.map { ContextInterceptor(options: $0) }) {
        interceptor in
        { _ in interceptor }
      },
      PartPlace(TracingInterceptor.self, spans) { _ in { TracingInterceptor(config: $0, spans: .call) } },
      PartPlace(MetricsInterceptor.self, self.metrics.flatMap { $0.isEnabled ? $0 : nil }) { metrics in
        { MetricsInterceptor(metrics, config: $0) }
      },
      PartPlace(LoggingInterceptor.self, self.log.flatMap { $0.hasBackend ? $0 : nil }) { log in
        { _ in LoggingInterceptor(log) }
      },
      PartPlace(
        HTTPStatusInterceptor.self,
        self.acceptedStatuses.map { HTTPStatusInterceptor(accepting: $0) }
      ) { interceptor in { _ in interceptor } },
      PartPlace(CredentialsInterceptor.self, self.credentials) { parts in
        { _ in CredentialsInterceptor(parts) }
      },
      PartPlace(CookieInterceptor.self, self.cookies) { jar in { _ in CookieInterceptor(jar, .requests) } },
      PartPlace(CacheReadInterceptor.self, self.cache) { cache in { _ in CacheReadInterceptor(cache) } },
      PartPlace(CacheWriteInterceptor.self, self.cache) { cache in { _ in CacheWriteInterceptor(cache) } },
      PartPlace(
        RetryInterceptor.self,
        self.retryPolicy.map { RetryPlan(policy: $0, budget: self.retryBudget) }
      ) { plan in { _ in RetryInterceptor(plan) } },
      PartPlace(CircuitBreakerInterceptor.self, self.circuitBreaker) { breaker in
        { _ in CircuitBreakerInterceptor(breaker) }
      },
      PartPlace(ConcurrencyLimitInterceptor.self, self.concurrencyLimiter) { limiter in
        { _ in ConcurrencyLimitInterceptor(limiter) }
      },
      PartPlace(CookieInterceptor.self, self.cookies) { jar in { _ in CookieInterceptor(jar, .responses) } },
      PartPlace(TracingInterceptor.self, spans) { _ in { TracingInterceptor(config: $0, spans: .attempts) } },
    ]
  }
}

extension [InterceptorFactory] {
  /// What a service's client should have, in the order in which it works:
  ///
  /// 1. The request's id, so that everything inside knows it.
  /// 2. The call's span, its metrics, its log: they see the call as its caller does, with all attempts, and answers of
  ///    the cache.
  /// 3. The check of the HTTP status, if it is to be stricter than the protocols are.
  /// 4. Credentials and cookies, which the cache's keys tell users apart by. Cookies of attempts are seen further inside, too.
  /// 5. The cache, outside of retries. Only a call's last error lets a stale response stand in, and headers that retries add
  ///    are no part of the key.
  /// 6. Retries, outside of what counts and bounds attempts. Each attempt counts for the circuit breaker, and an open circuit
  ///    ends retries. A call that waits for its next attempt has no permit of the concurrency limiter.
  /// 7. The attempt's span, which covers only what goes to the network; its context goes to the server.
  ///
  /// Metrics, log and traces without a backend are left out: set the backends up before this is called.
  ///
  /// Further interceptors may stand between these (``ClientParts/insert(before:_:)``), be listed before or after them, or
  /// belong to a method or a call. If there is a cache, their byte hooks stand outside of the cache and of what follows it here, wherever
  /// they are listed: they may tell users apart.
  /// Interceptors that are `HookPlacement.userIndependent` are exempt.
  public static func recommended(for parts: ClientParts) -> [InterceptorFactory] {
    parts.edited(parts.places)
  }
}
