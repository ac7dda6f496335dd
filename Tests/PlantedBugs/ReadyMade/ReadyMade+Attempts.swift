internal import Connect
internal import ConnectInterceptors
internal import ConnectTesting
internal import NIOCore

// Those that fail, repeat, hold up or answer calls.

extension ExplorationCase {
  static let credentialsInterceptor = ExplorationCase(
    ["CredentialsInterceptor"],
    doing: ["a refused token is replaced", "calls share a refresh"]
  ) { witness in
    InterceptorExplorer { world in
      let store = TokenStore {
        try await world.step("token endpoint", canFail: true)
        return world.token()
      }
      return Subject(observing: store) { [credentials = Credentials.explored(in: world, store)] _ in
        CredentialsInterceptor(credentials)
      }
    }
    .calls(3)
    .methods(.every)
    .server(.answers(.ok, .unauthenticated, .unavailable, .reset))
    // Without a token a call fails. A refresh goes on for the others when the call that began it is cancelled.
    .allowing(.failure, .backgroundWork)
    .check("one refresh at a time") { run in
      witness.saw("a refused token is replaced", if: run.calls.contains { $0.hasReplacedToken })
      witness.saw("calls share a refresh", if: run.steps.count < Set(run.attempts.map(\.call)).count)
      return run.subject.mostRunning <= 1
    }
    .check("no call without a token") { run in
      run.attempts.allSatisfy { $0.headers.contains("authorization") }
    }
  }

  static let cacheInterceptors = ExplorationCase(
    ["CacheReadInterceptor", "CacheWriteInterceptor"],
    doing: ["a hit", "a stale answer", "calls share an answer"]
  ) { witness in
    InterceptorExplorer { world in
      let cache = ResponseCache(
        configuration: .init(staleOnError: .seconds(600)),
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
    .check("what the cache says is true") { run in
      for call in run.calls where call.error == nil && call.endTime != nil {
        let status = CacheStatus(call.headers)
        if status == nil, call.attempts.last?.answer != .ok { return false }
        witness.saw("a hit", if: status == .hit)
        witness.saw("a stale answer", if: status == .stale)
        witness.saw("calls share an answer", if: status == .collapsed)
      }
      return true
    }
  }

  /// The second call asks the cache alone.
  static let cacheOnlyCall = ExplorationCase(
    named: "a call with cacheOnly",
    ["CachePolicy.cacheOnly", "CacheReadInterceptor", "CacheWriteInterceptor"],
    doing: ["a hit", "a miss without a request"]
  ) { witness in
    InterceptorExplorer { world in
      let cache = ResponseCache(storage: MemoryCacheStorage(), clock: world.clock)
      return Subject(interceptors: [
        { _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) },
      ])
    }
    .options { call, options in
      if call == 2 { options.context[CachePolicy.self] = .cacheOnly }
    }
    .calls(2)
    .idempotency(.noSideEffects)
    .requests { _ in ("the same for all", [:]) }
    .server(.answers(.ok, .unavailable, .headersThenNothing))
    .neighbours(false)
    .allowing(.recovery, .failure, .sharedResponses)
    .check("the second call asks no server") { run in
      for call in run.calls where call.number == 2 {
        witness.saw("a hit", if: call.error == nil && CacheStatus(call.headers) == .hit)
        witness.saw("a miss without a request", if: call.code == .failedPrecondition)
      }
      return run.attempts.allSatisfy { $0.call == 1 }
    }
  }

  static let persistedRequestInterceptor = ExplorationCase(
    ["PersistedRequestInterceptor", "HashServer"],
    doing: [HashServer.work, "a whole request goes after its hash"]
  ) { witness in
    InterceptorExplorer { world in
      let requests = PersistedRequests(minimumByteCount: 1, clock: world.clock)
      let messages = KnownMessages()
      return Subject(interceptors: [
        { _ in PersistedRequestInterceptor(requests) }, { _ in HashServer(messages, witness) },
      ])
    }
    .calls(2)
    .idempotency(.noSideEffects)
    .configuration { $0.unaryGET = .alwaysEnabled }
    .requests { _ in ("the same for all", [:]) }
    .server(.everyAnswer)
    .check("requests have their hash") { run in
      witness.saw(
        "a whole request goes after its hash",
        if: run.attempts.contains { !$0.headers["request-hash"].isEmpty }
      )
      return run.attempts.allSatisfy { $0.headers["request-hash"].count <= 1 }
    }
  }

  static let retryInterceptor = ExplorationCase(["RetryInterceptor"], doing: ["a call is repeated"]) {
    witness in
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
    .check("four attempts at most") { run in
      witness.saw("a call is repeated", if: run.calls.contains { $0.attempts.count > 1 })
      return run.calls.allSatisfy { $0.attempts.count <= 4 }
    }
  }

  static let maximumRetriesInterceptor = ExplorationCase(
    ["RetryInterceptor", "MaximumRetriesInterceptor"],
    doing: ["a call is repeated"]
  ) { witness in
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
    .check("two attempts at most") { run in
      witness.saw("a call is repeated", if: run.calls.contains { $0.attempts.count > 1 })
      return run.calls.allSatisfy { $0.attempts.count <= 2 }
    }
  }

  static let requestInterceptor = ExplorationCase(["RequestInterceptor"], doing: ["a call is repeated"]) {
    witness in
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
    .check("adapted once") { run in
      witness.saw("a call is repeated", if: run.calls.contains { $0.hasWaitedForNextAttempt })
      return run.attempts.allSatisfy { $0.headers["x-adapted"] == ["yes"] }
    }
  }

  static let circuitBreakerInterceptor = ExplorationCase(
    ["CircuitBreakerInterceptor"],
    doing: [
      "a circuit opens", "a circuit tries again", "an open circuit spares the server",
    ]
  ) { witness in
    InterceptorExplorer { world in
      let breaker = CircuitBreaker(
        .init(failureCodes: [.unavailable], minimumCalls: 1, openDuration: .milliseconds(10)),
        clock: world.clock
      ) { _, state in
        witness.saw("a circuit opens", if: state == .open)
        witness.saw("a circuit tries again", if: state == .halfOpen)
      }
      return Subject { _ in CircuitBreakerInterceptor(breaker) }
    }
    .calls(4)
    .methods(.every)
    .server(.everyAnswer)
    .allowing(.failure)
    .check("a circuit opens for a reason") { run in
      let isRefused = run.calls.contains(where: \.wasRefusedByCircuit)
      witness.saw("an open circuit spares the server", if: isRefused)
      return !isRefused || run.attempts.contains { $0.answer?.code == .unavailable }
    }
  }

  static let concurrencyLimitInterceptor = ExplorationCase(["ConcurrencyLimitInterceptor"], doing: []) { _ in
    InterceptorExplorer { world in
      let limiter = ConcurrencyLimiter(maximumCalls: 1, clock: world.clock)
      return Subject { _ in ConcurrencyLimitInterceptor(limiter) }
    }
    .calls(3)
    .methods(.every)
    .server(.answers(.ok, .unavailable, .reset))
    // A call that would wait beyond its deadline fails at once.
    .allowing(.failure)
    .check("one call at a time at the server") { run in run.mostAttemptsAtOnce <= 1 }
  }

  static let recommendedSet = ExplorationCase(
    named: "the recommended set",
    [
      "ContextInterceptor", "MetricsInterceptor", "LoggingInterceptor", "CredentialsInterceptor",
      "CookieInterceptor (requests)", "CacheReadInterceptor", "CacheWriteInterceptor", "RetryInterceptor",
      "CircuitBreakerInterceptor", "ConcurrencyLimitInterceptor", "CookieInterceptor (responses)",
      "CookieServer",
    ],
    doing: [
      "requests have an id", "calls are measured", "calls are logged", "requests have a token",
      "requests have cookies",
      "a hit", "a call is repeated", "an open circuit spares the server",
    ]
  ) { witness in RecommendedSet.explorer(witness) }
}

extension Credentials {
  /// Where the explorer's calls go.
  private static let explorerHost = "explorer.test"

  /// Tokens of a store.
  static func explored(in world: ExplorerWorld, _ store: TokenStore) -> Credentials {
    Credentials(
      for: [Self.explorerHost],
      configuration: .init(allowsCleartext: true),
      clock: world.clock,
      wallClock: WallClock { .seconds(1_000_000) + world.now }
    ) { _ in
      try await store.refresh()
      return AccessToken(store.token)
    }
  }
}
