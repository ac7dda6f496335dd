import Connect
import ConnectInterceptors
import ConnectTesting
import Logging
import LoopbackServer
import MetricsTestKit
import XCTest

/// Calls through interceptors whose configurations have extreme numbers. Nothing traps, and each call ends.
final class ExtremeInterceptorTests: XCTestCase {
  private typealias Server = ScriptedServer

  /// Makes calls, some of which fail at first, at different times.
  private func makeCalls(_ server: ScriptedServer, _ interceptors: InterceptorFactory...) async throws {
    let config = ProtocolClientConfig(
      host: "http://scripted.test",
      interceptors: interceptors,
      timeout: .seconds(3600),
      retries: .init(maximumRetries: 4)
    )
    let client = ProtocolClient(httpClient: server.transport, config: config)
    for _ in 0..<3 {
      _ = try await server.executor.lettingTimePass(upTo: .seconds(Int64.max)) {
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<3 {
            group.addTask { _ = await client.unary(Server.method(.unary, .noSideEffects), .text("x")) }
            group.addTask {
              _ = try? await client.serverStream(Server.method(.serverStream), .text("x")).results.collected()
            }
          }
        }
      }
      server.executor.advance(by: .seconds(20))
    }
  }

  private func makeServer() -> ScriptedServer {
    Server { number, context in
      try await context.sleep(for: .milliseconds(10))
      if number.isMultiple(of: 3) { throw ConnectError(code: .unauthenticated) }
      if number.isMultiple(of: 2) { throw ConnectError.away }
    }
  }

  private func callThroughCredentials(
    _ configuration: Credentials.Configuration,
    lifetime: Duration? = .seconds(30)
  ) async throws {
    let server = self.makeServer()
    var configuration = configuration
    configuration.allowsCleartext = true
    let clock = server.executor.clock
    let credentials = Credentials(for: ["scripted.test"], configuration: configuration, clock: clock) { _ in
      try await clock.sleep(for: .milliseconds(1))
      return AccessToken("t", expiresIn: lifetime)
    }
    try await self.makeCalls(server, { _ in CredentialsInterceptor(credentials) })
    credentials.update(AccessToken("u", expiresIn: lifetime))
    credentials.invalidate()
    try await self.makeCalls(server, { _ in CredentialsInterceptor(credentials) })
  }

  func testCredentials() async throws {
    for lifetime in Extremes.durations {
      XCTAssertFalse("\(AccessToken("t", expiresIn: lifetime))".isEmpty)
      try await self.callThroughCredentials(.defaults, lifetime: lifetime)
    }
    try await withExtremes(
      of: Credentials.Configuration.defaults,
      [
        .init("refreshAhead", \.refreshAhead), .init("refreshTimeout", \.refreshTimeout),
        .init("streamHeaderDelay", \.streamHeaderDelay), .init("stallTimeout", \.stallTimeout),
      ]
    ) { try await self.callThroughCredentials($0) }
    try await withExtremes(
      of: Credentials.RefreshWindow.defaults,
      [.init("interval", \.interval), .init("maximumRefreshes", \.maximumRefreshes)]
    ) { try await self.callThroughCredentials(.init(window: $0)) }
  }

  func testCircuitBreaker() async throws {
    try await withExtremes(
      of: CircuitBreaker.Configuration(minimumCalls: 1),
      [
        .init("failureRate", \.failureRate), .init("minimumCalls", \.minimumCalls),
        .init("window", \.window), .init("openDuration", \.openDuration),
        .init("trialCalls", \.trialCalls), .init("maximumCircuits", \.maximumCircuits),
      ]
    ) { configuration in
      let server = self.makeServer()
      let breaker = CircuitBreaker(configuration, clock: server.executor.clock)
      try await self.makeCalls(server, { _ in CircuitBreakerInterceptor(breaker) })
    }
  }

  func testConcurrencyLimiter() async throws {
    for calls in Extremes.integers {
      for waiting in Extremes.integers {
        for wait in Extremes.durations {
          let server = self.makeServer()
          let limiter = ConcurrencyLimiter(
            maximumCalls: calls,
            maximumWaiting: waiting,
            maximumWait: wait,
            clock: server.executor.clock
          )
          try await self.makeCalls(server, { _ in ConcurrencyLimitInterceptor(limiter) })
          XCTAssertEqual(limiter.runningCount, 0)
          XCTAssertEqual(limiter.waitingCount, 0)
        }
      }
    }
  }

  func testCache() async throws {
    try await withExtremes(
      of: ResponseCache.Configuration(staleOnError: .seconds(1)),
      [
        .init("timeToLive", \.timeToLive), .init("maximumTimeToLive", \.maximumTimeToLive),
        .init("staleOnError", \.staleOnError),
      ]
    ) { configuration in
      for byteCount in Extremes.integers {
        let server = Server { number, context in
          context.responseHeaders["age"] = ["9223372036854775807"]
          if number.isMultiple(of: 2) { throw ConnectError.away }
        }
        let storage = MemoryCacheStorage(maximumByteCount: byteCount)
        let cache = ResponseCache(
          configuration: configuration,
          storage: storage,
          clock: server.executor.clock
        )
        try await self.makeCalls(
          server,
          { _ in CacheReadInterceptor(cache) },
          { _ in CacheWriteInterceptor(cache) }
        )
      }
    }
    for byteCount in Extremes.integers {
      for pause in Extremes.durations {
        let server = self.makeServer()
        let requests = PersistedRequests(
          minimumByteCount: byteCount,
          pause: pause,
          clock: server.executor.clock
        )
        try await self.makeCalls(server, { _ in PersistedRequestInterceptor(requests) })
      }
    }
  }

  func testRetries() async throws {
    try await withExtremes(
      of: RetryPolicy.defaults,
      [.init("maximumAttempts", \.maximumAttempts), .init("longestServerDelay", \.longestServerDelay)]
    ) { policy in
      let budget = RetryBudget()
      try await self.makeCalls(self.makeServer(), { _ in RetryInterceptor(policy: policy, budget: budget) })
    }
    try await withExtremes(
      of: Backoff(),
      [.init("base", \.base), .init("multiplier", \.multiplier), .init("maximum", \.maximum)]
    ) { backoff in
      for number in Extremes.integers {
        for random in Extremes.doubles {
          XCTAssertGreaterThanOrEqual(backoff.delay(beforeRetry: number, random: random), .zero)
        }
      }
      let budget = RetryBudget()
      let policy = RetryPolicy(backoff: backoff)
      try await self.makeCalls(self.makeServer(), { _ in RetryInterceptor(policy: policy, budget: budget) })
    }
    for tokens in Extremes.doubles {
      for ratio in Extremes.doubles {
        let budget = RetryBudget(maximumTokens: tokens, tokenRatio: ratio)
        XCTAssertGreaterThanOrEqual(budget.tokens, 1)
        try await self.makeCalls(self.makeServer(), { _ in RetryInterceptor(budget: budget) })
      }
    }
  }

  func testRetriers() async throws {
    for delay in Extremes.durations {
      let retriers = [Retrier { _ in .retryWithDelay(delay) }]
      try await self.makeCalls(self.makeServer(), { _ in RequestInterceptor(retriers: retriers) })
      try await self.makeCalls(self.makeServer(), { _ in AfterDelay(delay: delay) })
    }
    for number in Extremes.integers {
      let retrier = ConnectionLostRetrier(maximumRetries: number)
      try await self.makeCalls(
        self.makeServer(),
        { _ in MaximumRetriesInterceptor(number) },
        { _ in RequestInterceptor(retriers: [retrier]) }
      )
    }
  }

  func testObservability() async throws {
    try await withExtremes(
      of: LogSampling(first: 1, thereafter: 2),
      [.init("first", \.first), .init("thereafter", \.thereafter), .init("interval", \.interval)]
    ) { sampling in
      let server = self.makeServer()
      let log = CallLog(
        logger: CallLogRecorder().makeLogger(),
        options: .init(sampling: sampling),
        clock: server.executor.clock
      )
      try await self.makeCalls(server, { LoggingInterceptor(log, config: $0) })
    }
    try await withExtremes(
      of: CallLog.Options(logsHeaders: true, messageFormatter: { "\($0)" }),
      [.init("maximumLength", \.maximumLength)]
    ) { options in
      let log = CallLog(logger: CallLogRecorder().makeLogger(), options: options)
      try await self.makeCalls(self.makeServer(), { LoggingInterceptor(log, config: $0) })
    }
    try await withExtremes(
      of: CallMetrics.Options.defaults,
      [.init("maximumMethods", \.maximumMethods)]
    ) { options in
      let metrics = CallMetrics(factory: TestMetrics(), options: options)
      try await self.makeCalls(self.makeServer(), { MetricsInterceptor(metrics, config: $0) })
    }
    for number in Extremes.integers {
      let server = self.makeServer()
      let explainer = CallExplainer(maximumCalls: number)
      let options = CallOptions().explained(by: explainer)
      for _ in 0..<3 { _ = try await server.call(server.client(), options: options) }
      XCTAssertEqual(explainer.explanations.count, min(max(number, 1), 3))
    }
  }

  /// What is measured with a clock that jumps from one end of time to the other.
  func testClock() async throws {
    for time in Extremes.durations {
      for first in Extremes.durations {
        let clock = JumpingClock(first: first, then: time)
        let server = Server { number, _ in if number.isMultiple(of: 2) { throw ConnectError.away } }
        let breaker = CircuitBreaker(.init(minimumCalls: 1), clock: clock)
        let limiter = ConcurrencyLimiter(maximumCalls: 1, clock: clock)
        let cache = ResponseCache(clock: clock)
        let metrics = CallMetrics(factory: TestMetrics(), clock: clock)
        let log = CallLog(logger: CallLogRecorder().makeLogger(), clock: clock)
        let explainer = CallExplainer(clock: clock)
        let client = server.client(
          { MetricsInterceptor(metrics, config: $0) },
          { LoggingInterceptor(log, config: $0) },
          { _ in CacheReadInterceptor(cache) },
          { _ in CacheWriteInterceptor(cache) },
          { _ in CircuitBreakerInterceptor(breaker) },
          { _ in ConcurrencyLimitInterceptor(limiter) }
        )
        let options = CallOptions().explained(by: explainer)
        for _ in 0..<3 {
          _ = try await server.call(client, idempotencyLevel: .noSideEffects, options: options)
        }
        XCTAssertFalse(explainer.explanation.description.isEmpty)
      }
    }
  }
}

private struct AfterDelay: Interceptor {
  let delay: Duration

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(responseFunction: { response, proceed in
      if response.error != nil { proceed.retry(after: self.delay) } else { proceed(response) }
    })
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(streamResultFunction: { result, proceed in
      if case .complete(_, .some, _) = result { proceed.retry(after: self.delay) } else { proceed(result) }
    })
  }
}

/// Shows one time when it is read first, and another from then on.
private struct JumpingClock: Clock {
  struct Instant: InstantProtocol {
    var offset: Duration

    func advanced(by duration: Duration) -> Instant { Instant(offset: duration) }
    func duration(to other: Instant) -> Duration { other.offset }
    static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
  }

  private let isRead = Observed(false)
  private let first: Duration
  private let then: Duration

  init(first: Duration, then: Duration) {
    self.first = first
    self.then = then
  }

  var now: Instant {
    let isRead = self.isRead.update { isRead in
      defer { isRead = true }
      return isRead
    }
    return Instant(offset: isRead ? self.then : self.first)
  }

  var minimumResolution: Duration { .zero }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {}
}
