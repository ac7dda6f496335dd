import Connect
import ConnectTesting
import XCTest

@testable import ConnectInterceptors

final class CircuitBreakerTests: XCTestCase {
  /// Opens on half of four calls within ten seconds, for five seconds.
  private static func configuration(
    scope: CircuitBreaker.Scope = .host,
    trialCalls: Int = 1
  ) -> CircuitBreaker.Configuration {
    .init(scope: scope, minimumCalls: 4, trialCalls: trialCalls)
  }

  private static let url = RequestURL(
    origin: Origin(scheme: .http, host: "scripted.test", port: 80),
    path: ScriptedServer.method().path
  )

  /// A server that can be away, and a client with a breaker.
  private struct Setup {
    let isAway = Observed(true)
    let changes = Observed<[String]>([])
    let server: ScriptedServer
    let breaker: CircuitBreaker
    let client: ProtocolClient

    init(
      _ configuration: CircuitBreaker.Configuration = CircuitBreakerTests.configuration(),
      outside: InterceptorFactory...
    ) {
      let (isAway, changes) = (self.isAway, self.changes)
      let server = ScriptedServer { _, context in
        if context.method.streamType == .unary, context.requestHeaders.contains("x-slow") {
          try await context.sleep(for: .seconds(30))
        }
        if isAway.value { throw ConnectError.away }
      }
      let breaker = CircuitBreaker(configuration, clock: server.executor.clock) { key, state in
        changes.update { $0.append("\(key) \(state)") }
      }
      self.server = server
      self.breaker = breaker
      self.client = ProtocolClient(
        httpClient: server.transport,
        config: ProtocolClientConfig(
          host: "http://scripted.test",
          interceptors: outside + [{ _ in CircuitBreakerInterceptor(breaker) }]
        )
      )
    }

    var state: CircuitBreaker.State { self.breaker.state(for: CircuitBreakerTests.url) }

    @discardableResult
    func call(_ count: Int = 1) async throws -> ResponseMessage<ScriptedServer.Response> {
      for _ in 1..<count { _ = try await self.server.call(self.client) }
      return try await self.server.call(self.client)
    }
  }

  func testOpensAndClosesAgain() async throws {
    let setup = Setup()
    try await setup.call(3)
    XCTAssertEqual(setup.state, .closed)
    try await setup.call()
    XCTAssertEqual(setup.state, .open)

    let refused = try await setup.call()
    XCTAssertEqual(refused.code, .unavailable)
    XCTAssertEqual(
      refused.error?.message,
      "the circuit breaker of http://scripted.test is open since 4 of 4 calls failed;"
        + " the next call is tried in 5.0 seconds"
    )
    XCTAssertEqual(setup.server.attempts.count, 4)

    // A trial call fails.
    setup.server.executor.advance(by: .seconds(5))
    let trial = try await setup.call()
    XCTAssertEqual(trial.error?.message, "away")
    XCTAssertEqual(setup.state, .open)
    try await setup.call()
    XCTAssertEqual(setup.server.attempts.count, 5)

    // And one succeeds.
    setup.server.executor.advance(by: .seconds(5))
    setup.isAway.update { $0 = false }
    let good = try await setup.call()
    XCTAssertEqual(good.code, .ok)
    XCTAssertEqual(setup.state, .closed)

    // The past is forgotten.
    setup.isAway.update { $0 = true }
    try await setup.call(3)
    XCTAssertEqual(setup.state, .closed)
    XCTAssertEqual(
      setup.changes.value.map { $0.replacing("http://scripted.test ", with: "") },
      ["open", "halfOpen", "open", "halfOpen", "closed"]
    )
  }

  func testTheRateCounts() async throws {
    let setup = Setup()
    setup.isAway.update { $0 = false }
    try await setup.call(10)
    setup.isAway.update { $0 = true }
    try await setup.call(9)
    XCTAssertEqual(setup.state, .closed)
    try await setup.call()
    XCTAssertEqual(setup.state, .open)
  }

  func testOnlyTheWindowCounts() async throws {
    let setup = Setup()
    try await setup.call(3)
    setup.server.executor.advance(by: .seconds(10))
    try await setup.call(3)
    XCTAssertEqual(setup.state, .closed)
    setup.server.executor.advance(by: .seconds(9))
    try await setup.call()
    XCTAssertEqual(setup.state, .open)
  }

  func testSeveralTrialCallsMustSucceed() async throws {
    let setup = Setup(Self.configuration(trialCalls: 2))
    try await setup.call(4)
    setup.server.executor.advance(by: .seconds(5))
    setup.isAway.update { $0 = false }
    try await setup.call()
    XCTAssertEqual(setup.state, .halfOpen)
    try await setup.call()
    XCTAssertEqual(setup.state, .closed)
  }

  /// While a trial call is under way others are refused; one that is cancelled makes room, one that hangs is replaced.
  func testTrialCallsThatDoNotEnd() async throws {
    let setup = Setup()
    let options = CallOptions(headers: ["x-slow": ["1"]])
    try await setup.call(4)
    setup.isAway.update { $0 = false }
    let executor = setup.server.executor
    executor.advance(by: .seconds(5))

    let trial = setup.client.unary(ScriptedServer.method(), .text("x"), options: options) { _ in }
    executor.runUntilIdle()
    let refused = Observed<ConnectError?>(nil)
    func call() {
      setup.client.unary(ScriptedServer.method(), .text("x")) { response in
        refused.update { $0 = response.error }
      }
      executor.runUntilIdle()
    }
    call()
    XCTAssertEqual(refused.value?.code, .unavailable)
    XCTAssertEqual(setup.state, .halfOpen)

    trial.cancel()
    executor.runUntilIdle()
    XCTAssertEqual(setup.state, .halfOpen)
    let second = setup.client.unary(ScriptedServer.method(), .text("x"), options: options) { _ in }
    executor.runUntilIdle()
    call()
    XCTAssertEqual(refused.value?.code, .unavailable)

    executor.advance(by: .seconds(5))
    call()
    XCTAssertNil(refused.value)
    XCTAssertEqual(setup.state, .closed)
    second.cancel()
    executor.runUntilIdle()
  }

  func testScope() async throws {
    for (scope, state) in [(CircuitBreaker.Scope.host, CircuitBreaker.State.open), (.method, .closed)] {
      let setup = Setup(Self.configuration(scope: scope))
      try await setup.call(4)
      XCTAssertEqual(setup.state, .open)
      var other = Self.url
      other.path = "/other/Method"
      XCTAssertEqual(setup.breaker.state(for: other), state)
      other.origin.port = 8080
      XCTAssertEqual(setup.breaker.state(for: other), .closed)
    }
  }

  func testCircuitsAreBounded() async throws {
    let server = ScriptedServer { _, _ in throw ConnectError.away }
    let configuration = CircuitBreaker.Configuration(minimumCalls: 1, maximumCircuits: 2)
    let breaker = CircuitBreaker(configuration, clock: server.executor.clock)
    func call(_ host: String) async throws -> Code {
      let client = ProtocolClient(
        httpClient: server.transport,
        config: ProtocolClientConfig(
          host: "http://\(host)",
          interceptors: [{ _ in CircuitBreakerInterceptor(breaker) }]
        )
      )
      let code = try await server.call(client).code
      server.executor.advance(by: .milliseconds(1))
      return code
    }
    func state(_ host: String) -> CircuitBreaker.State {
      breaker.state(for: RequestURL(origin: Origin(scheme: .http, host: host, port: 80), path: "/"))
    }
    for host in ["a", "b", "a", "c"] { _ = try await call(host) }
    XCTAssertEqual(["a", "b", "c"].map(state), [.open, .closed, .open])
  }

  func testACircuitWithCallsUnderWayIsForgottenLast() throws {
    let clock = VirtualExecutor()
    let breaker = CircuitBreaker(.init(minimumCalls: 1, maximumCircuits: 2), clock: clock.clock)
    func url(_ host: String) -> RequestURL {
      RequestURL(origin: Origin(scheme: .http, host: host, port: 80), path: "/")
    }
    func admit(_ host: String) throws -> (Circuit.Admission, SharedCircuit) {
      let circuit = breaker.circuit(for: url(host))
      return (try breaker.admit(to: circuit).get(), circuit)
    }
    let (pending, ofA) = try admit("a")
    clock.advance(by: .milliseconds(1))
    let (ended, ofB) = try admit("b")
    breaker.record(ended, of: ofB, error: nil)
    clock.advance(by: .milliseconds(1))
    _ = try admit("c")
    // Its circuit is still the one that is asked.
    breaker.record(pending, of: ofA, error: ConnectError(code: .unavailable, httpStatus: 503))
    XCTAssertEqual(breaker.state(for: url("a")), .open)
  }

  /// The clock is the user's, and is read under no lock.
  func testAClockThatAsksTheBreaker() throws {
    let asked = Observed<CircuitBreaker?>(nil)
    let clock = AskingClock { _ = asked.value?.state(for: Self.url) }
    let breaker = CircuitBreaker(.init(minimumCalls: 1), clock: clock)
    asked.update { $0 = breaker }
    defer { asked.update { $0 = nil } }
    let circuit = breaker.circuit(for: Self.url)
    let admission = try breaker.admit(to: circuit).get()
    breaker.record(admission, of: circuit, error: ConnectError(code: .unavailable, httpStatus: 503))
    XCTAssertThrowsError(try breaker.admit(to: circuit).get())
  }

  func testWhatIsAFailure() async throws {
    for (code, state) in [
      (Code.unavailable, CircuitBreaker.State.open), (.internalError, .open), (.notFound, .closed),
      (.canceled, .closed), (.resourceExhausted, .closed),
    ] {
      let server = ScriptedServer { _, _ in throw ConnectError(code: code) }
      let breaker = CircuitBreaker(.init(minimumCalls: 1), clock: server.executor.clock)
      _ = try await server.call(server.client({ _ in CircuitBreakerInterceptor(breaker) }))
      XCTAssertEqual(breaker.state(for: Self.url), state, "\(code)")
    }
  }

  /// What an interceptor inside refuses says nothing about the server, so it does not close a circuit.
  func testErrorsOfThisSideDoNotCount() async throws {
    let setup = Setup()
    try await setup.call(4)
    setup.server.executor.advance(by: .seconds(5))
    let refusing = Adapter { _, _ in throw ConnectError(code: .resourceExhausted, message: "no place") }
    let options = CallOptions(interceptors: [{ _ in RequestInterceptor(adapters: [refusing]) }])
    let refused = try await setup.server.call(setup.client, options: options)
    XCTAssertEqual(refused.code, .resourceExhausted)
    XCTAssertEqual(setup.state, .halfOpen)
    let trial = try await setup.call()
    XCTAssertEqual(trial.error?.message, "away", "the trial call's place did not come back")
    XCTAssertEqual(setup.state, .open)
  }

  /// Nor does what never got to the server: a call whose time passed in a queue, or that an interceptor inside has failed.
  func testWhatWasNotSentDoesNotCount() async throws {
    struct Broken: Error {}
    let server = ScriptedServer { _, context in await context.waitUntilClosed() }
    let breaker = CircuitBreaker(.init(minimumCalls: 1), clock: server.executor.clock)
    let limiter = ConcurrencyLimiter(maximumCalls: 1, clock: server.executor.clock)
    let client = server.client(
      { _ in CircuitBreakerInterceptor(breaker) },
      { _ in ConcurrencyLimitInterceptor(limiter) }
    )
    let running = client.unary(ScriptedServer.method(), .text("x")) { _ in }
    server.executor.runUntilIdle()
    let unary = try await server.call(client, options: CallOptions(timeout: .seconds(1)))
    XCTAssertEqual(unary.code, .deadlineExceeded)
    let stream = try await server.stream(client, options: CallOptions(timeout: .seconds(1)))
    XCTAssertEqual(stream.code, .deadlineExceeded)
    XCTAssertEqual(server.attempts.count, 1)
    XCTAssertEqual(breaker.state(for: Self.url), .closed)
    running.cancel()
    server.executor.runUntilIdle()
    let slow = Adapter { request, _ in
      try await server.executor.clock.sleep(for: .seconds(60))
      return request
    }
    for (adapter, code) in [(Adapter { _, _ in throw Broken() }, Code.unknown), (slow, .deadlineExceeded)] {
      let options = CallOptions(
        timeout: .seconds(1),
        interceptors: [{ _ in RequestInterceptor(adapters: [adapter]) }]
      )
      let response = try await server.call(client, options: options)
      XCTAssertEqual(response.code, code)
      XCTAssertEqual(breaker.state(for: Self.url), .closed)
    }
  }

  func testACallThatPassesItsDeadlineIsAFailure() async throws {
    let server = ScriptedServer { _, context in await context.waitUntilClosed() }
    let breaker = CircuitBreaker(.init(minimumCalls: 1), clock: server.executor.clock)
    let client = server.client(timeout: .seconds(1), { _ in CircuitBreakerInterceptor(breaker) })
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertEqual(breaker.state(for: Self.url), .open)
  }

  func testStreams() async throws {
    let server = ScriptedServer(messagesBeforeFailure: 1) { _, _ in throw ConnectError.away }
    let breaker = CircuitBreaker(.init(minimumCalls: 1), clock: server.executor.clock)
    let client = server.client({ _ in CircuitBreakerInterceptor(breaker) })
    let good = try await server.stream(client)
    XCTAssertEqual(good.messages.count, 1)
    XCTAssertEqual(breaker.state(for: Self.url), .closed, "a message arrived")
    _ = try await server.call(client)
    XCTAssertEqual(breaker.state(for: Self.url), .open)
    let refused = try await server.stream(client)
    XCTAssertTrue(refused.error?.message?.contains("circuit breaker") == true)
    XCTAssertEqual(server.attempts.count, 2)
  }

  /// Inside of retries each attempt counts, and an open circuit ends them.
  func testInsideOfRetries() async throws {
    let budget = RetryBudget(maximumTokens: 100)
    let policy = RetryPolicy(maximumAttempts: 10)
    let setup = Setup(
      .init(minimumCalls: 2),
      outside: { _ in RetryInterceptor(policy: policy, budget: budget) }
    )
    let response = try await setup.call()
    XCTAssertTrue(response.error?.message?.contains("circuit breaker") == true)
    XCTAssertEqual(setup.server.attempts.count, 2)
  }

  /// Outside of retries the call counts, once.
  func testOutsideOfRetries() async throws {
    let server = ScriptedServer { _, _ in throw ConnectError.away }
    let breaker = CircuitBreaker(.init(minimumCalls: 2), clock: server.executor.clock)
    let budget = RetryBudget(maximumTokens: 100)
    let client = server.client(
      { _ in CircuitBreakerInterceptor(breaker) },
      { _ in RetryInterceptor(budget: budget) }
    )
    _ = try await server.call(client)
    XCTAssertEqual(server.attempts.count, 4)
    XCTAssertEqual(breaker.state(for: Self.url), .closed)
    _ = try await server.call(client)
    XCTAssertEqual(breaker.state(for: Self.url), .open)
  }

  func testAThousandCallsAtOnce() async throws {
    let setup = Setup()
    let executor = setup.server.executor
    let client = setup.client
    for _ in 0..<1000 { client.unary(ScriptedServer.method(), .text("x")) { _ in } }
    executor.runUntilIdle()
    XCTAssertEqual(setup.state, .open)
    // All of them had begun before the first failed: what they bring later does not count in the new phase.
    XCTAssertEqual(setup.changes.value.count, 1)
  }
}

/// Runs user code whenever it is read.
private struct AskingClock: Clock {
  let onRead: @Sendable () -> Void
  private let base = ContinuousClock()

  init(_ onRead: @escaping @Sendable () -> Void) { self.onRead = onRead }

  var now: ContinuousClock.Instant {
    self.onRead()
    return self.base.now
  }

  var minimumResolution: Duration { self.base.minimumResolution }

  func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
    try await self.base.sleep(until: deadline, tolerance: tolerance)
  }
}
