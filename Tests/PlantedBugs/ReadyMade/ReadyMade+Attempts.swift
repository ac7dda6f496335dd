internal import Connect
internal import ConnectInterceptors
internal import ConnectTesting
internal import Logging

// Those that fail, repeat, hold up or answer calls.

extension ExplorationCase {
  static let credentialsInterceptor = ExplorationCase(
    "CredentialsInterceptor",
    InterceptorExplorer { world in
      let store = TokenStore {
        try await world.step("token endpoint", canFail: true)
        return world.token()
      }
      let credentials = Credentials(
        for: [explorerHost],
        configuration: .init(allowsCleartext: true),
        clock: world.clock,
        wallClock: WallClock { .seconds(1_000_000) + world.now }
      ) { _ in
        try await store.refresh()
        return AccessToken(store.token)
      }
      return Subject(observing: store) { _ in CredentialsInterceptor(credentials) }
    }
    .calls(3)
    .methods(.every)
    .server(.answers(.ok, .unauthenticated, .unavailable, .reset))
    // Without a token a call fails. A refresh goes on for the others when the call that began it is cancelled.
    .allowing(.failure, .backgroundWork)
    .check("one refresh at a time") { run in run.subject.mostRunning <= 1 }
  )

  static let cacheInterceptors = ExplorationCase(
    "CacheReadInterceptor and CacheWriteInterceptor",
    InterceptorExplorer { world in
      let cache = ResponseCache(
        configuration: .init(staleOnError: .seconds(60)),
        storage: MemoryCacheStorage(),
        clock: world.clock
      )
      return Subject(interceptors: [
        { _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) },
      ])
    }
    .calls(3)
    .idempotency(.noSideEffects)
    .requests { _ in ("the same for all", [:]) }
    .server(.answers(.ok, .unavailable, .permissionDenied, .headersThenNothing, .reset))
    .allowing(.recovery, .sharedResponses)
  )

  static let persistedRequestInterceptor = ExplorationCase(
    "PersistedRequestInterceptor",
    InterceptorExplorer { world in
      let requests = PersistedRequests(minimumByteCount: 1, clock: world.clock)
      return Subject { _ in PersistedRequestInterceptor(requests) }
    }
    .calls(2)
    .idempotency(.noSideEffects)
    .server(.everyAnswer)
  )

  static let retryInterceptor = ExplorationCase(
    "RetryInterceptor",
    InterceptorExplorer { _ in
      let budget = RetryBudget()
      let policy = RetryPolicy(random: { 0.5 })
      return Subject { _ in RetryInterceptor(policy: policy, budget: budget) }
    }
    .calls(2)
    .methods(.every)
    .idempotency(.idempotent)
    .server(.everyAnswer)
    .neighbours(false)
    .check("four attempts at most") { run in run.calls.allSatisfy { $0.attempts.count <= 4 } }
  )

  static let maximumRetriesInterceptor = ExplorationCase(
    "MaximumRetriesInterceptor",
    InterceptorExplorer { _ in
      let budget = RetryBudget()
      let policy = RetryPolicy(random: { 0.5 })
      return Subject(interceptors: [
        { _ in RetryInterceptor(policy: policy, budget: budget) },
        { _ in MaximumRetriesInterceptor(1) },
      ])
    }
    .calls(2)
    .methods(.every)
    .idempotency(.idempotent)
    .server(.everyAnswer)
    .allowing(.failure)
    .neighbours(false)
    .check("two attempts at most") { run in run.calls.allSatisfy { $0.attempts.count <= 2 } }
  )

  static let requestInterceptor = ExplorationCase(
    "RequestInterceptor",
    InterceptorExplorer { world in
      let adapter = Adapter { request, _ in
        try await world.step("adapter", canFail: true)
        var request = request
        request.headers["x-adapted"] = ["yes"]
        return request
      }
      let retrier = Retrier { attempt in
        try? await world.step("retrier")
        return attempt.error.code == .unavailable && attempt.number < 3
          ? .retryWithDelay(.seconds(1)) : .doNotRetry
      }
      return Subject { _ in RequestInterceptor(adapters: [adapter], retriers: [retrier]) }
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
    .allowing(.failure)
    .check("adapted once") { run in run.attempts.allSatisfy { $0.headers["x-adapted"] == ["yes"] } }
  )

  static let circuitBreakerInterceptor = ExplorationCase(
    "CircuitBreakerInterceptor",
    InterceptorExplorer { world in
      let breaker = CircuitBreaker(
        .init(failureCodes: [.unavailable], minimumCalls: 1, openDuration: .seconds(1)),
        clock: world.clock
      )
      return Subject { _ in CircuitBreakerInterceptor(breaker) }
    }
    .calls(4)
    .methods(.every)
    .server(.everyAnswer)
    .allowing(.failure)
  )

  static let concurrencyLimitInterceptor = ExplorationCase(
    "ConcurrencyLimitInterceptor",
    InterceptorExplorer { world in
      let limiter = ConcurrencyLimiter(maximumCalls: 1, clock: world.clock)
      return Subject { _ in ConcurrencyLimitInterceptor(limiter) }
    }
    .calls(3)
    .methods(.every)
    .server(.answers(.ok, .unavailable, .reset))
    // A call that would wait beyond its deadline fails at once.
    .allowing(.failure)
  )

  static let recommendedSet = ExplorationCase(
    "the recommended set",
    InterceptorExplorer { world in
      var parts = ClientParts(logger: QuietLogHandler.logger)
      parts.context = .init(makeRequestID: { world.token() })
      parts.log = CallLog(logger: QuietLogHandler.logger, clock: world.clock)
      parts.retryPolicy = RetryPolicy(random: { 0.5 })
      parts.circuitBreaker = CircuitBreaker(clock: world.clock)
      parts.concurrencyLimiter = ConcurrencyLimiter(maximumCalls: 2, clock: world.clock)
      parts.cache = ResponseCache(clock: world.clock)
      parts.credentials = Credentials(
        for: [explorerHost],
        configuration: .init(allowsCleartext: true),
        clock: world.clock,
        wallClock: WallClock { .seconds(1_000_000) + world.now }
      ) { _ in
        try await world.step("token endpoint", canFail: true)
        return AccessToken(world.token())
      }
      return Subject(interceptors: .recommended(for: parts))
    }
    .calls(3)
    .methods(.every)
    .idempotency(.noSideEffects)
    .server(.everyAnswer)
    .allowing(.failure, .recovery, .backgroundWork)
  )
}

/// Where the explorer's calls go.
private let explorerHost = "explorer.test"
