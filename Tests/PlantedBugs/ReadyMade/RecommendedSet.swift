internal import Connect
internal import ConnectInterceptors
internal import ConnectTesting
internal import MetricsTestKit

/// All recommended interceptors that need no backend of a process, and a server that sets cookies.
enum RecommendedSet {
  struct Observed: Sendable {
    let store: TokenStore
    let metrics = TestMetrics()
    let ends = Counter()
  }

  static func explorer(_ witness: Witness) -> InterceptorExplorer<Observed> {
    InterceptorExplorer { world in
      let observed = Observed(
        store: TokenStore {
          try await world.step("token endpoint", canFail: true)
          return world.token()
        }
      )
      let parts = Self.parts(world, observed)
      return Subject(observing: observed, interceptors: .recommended(for: parts) + [{ _ in CookieServer() }])
    }
    .calls(4)
    .methods(.every)
    .idempotency(.noSideEffects)
    .requests { _ in ("the same for all", [:]) }
    .server(.everyAnswer)
    .allowing(.failure, .recovery, .backgroundWork)
    .check("two calls at a time at the server") { run in
      Self.observe(run, witness)
      return run.mostAttemptsAtOnce <= 2
    }
  }

  private static func parts(_ world: ExplorerWorld, _ observed: Observed) -> ClientParts {
    let logger = QuietLogHandler.logger(observed.ends)
    var parts = ClientParts(logger: logger)
    parts.context = .init(makeRequestID: { world.token() })
    parts.metrics = CallMetrics(factory: observed.metrics, clock: world.clock)
    parts.log = CallLog(logger: logger, clock: world.clock)
    parts.credentials = .explored(in: world, observed.store)
    parts.cookies = CookieJar(wallClock: WallClock { .seconds(1_000_000) + world.now })
    parts.cache = ResponseCache(clock: world.clock)
    parts.retryPolicy = RetryPolicy(random: { 0.5 })
    parts.circuitBreaker = CircuitBreaker(
      .init(failureCodes: [.unavailable], minimumCalls: 3, openDuration: .seconds(1)),
      clock: world.clock
    )
    parts.concurrencyLimiter = ConcurrencyLimiter(maximumCalls: 2, clock: world.clock)
    return parts
  }

  private static func observe(_ run: ExplorationRun<Observed>, _ witness: Witness) {
    let (attempts, observed) = (run.attempts, run.subject)
    witness.saw("requests have an id", if: attempts.contains { !$0.headers["x-request-id"].isEmpty })
    witness.saw("calls are measured", if: observed.metrics.timers.contains { !$0.values.isEmpty })
    witness.saw("calls are logged", if: observed.ends.value > 0)
    witness.saw("requests have a token", if: attempts.contains { !$0.headers["authorization"].isEmpty })
    witness.saw("requests have cookies", if: attempts.contains { !$0.headers["cookie"].isEmpty })
    witness.saw("a hit", if: run.calls.contains { CacheStatus($0.headers) == .hit })
    witness.saw("a call is repeated", if: run.calls.contains { $0.hasWaitedForNextAttempt })
    witness.saw("an open circuit spares the server", if: run.calls.contains(where: \.wasRefusedByCircuit))
  }
}
