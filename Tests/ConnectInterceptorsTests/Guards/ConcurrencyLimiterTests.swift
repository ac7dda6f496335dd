import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import XCTest

final class ConcurrencyLimiterTests: XCTestCase {
  /// A server whose calls take a second, and how many it has at once.
  private struct Setup {
    let most = Observed((now: 0, most: 0))
    let server: ScriptedServer
    let limiter: ConcurrencyLimiter
    let outcomes = Observed<[String]>([])

    init(
      maximumCalls: Int = 2,
      maximumWaiting: Int = 1000,
      maximumWait: Duration? = nil,
      fails: Bool = false
    ) {
      let most = self.most
      self.server = ScriptedServer { _, context in
        most.update {
          $0.now += 1
          $0.most = max($0.most, $0.now)
        }
        defer { most.update { $0.now -= 1 } }
        try await context.sleep(for: .seconds(1))
        if fails { throw ConnectError.away }
      }
      self.limiter = ConcurrencyLimiter(
        maximumCalls: maximumCalls,
        maximumWaiting: maximumWaiting,
        maximumWait: maximumWait,
        clock: self.server.executor.clock
      )
    }

    func client(timeout: Duration? = nil) -> ProtocolClient {
      let limiter = self.limiter
      return self.server.client(timeout: timeout, { _ in ConcurrencyLimitInterceptor(limiter) })
    }

    @discardableResult
    func start(_ client: ProtocolClient, _ name: String, timeout: Duration? = nil) -> CallHandle {
      let outcomes = self.outcomes
      let options = CallOptions(timeout: timeout)
      let call = client.unary(ScriptedServer.method(), .text(name), options: options) { response in
        outcomes.update { $0.append("\(name) \(response.code)") }
      }
      self.server.executor.runUntilIdle()
      return call
    }

    var counts: [Int] { [self.limiter.runningCount, self.limiter.waitingCount] }
  }

  func testFirstComeFirstServed() {
    let setup = Setup()
    let client = setup.client()
    for name in ["a", "b", "c", "d", "e"] { setup.start(client, name) }
    XCTAssertEqual(setup.counts, [2, 3])
    setup.server.executor.advance(by: .seconds(1))
    XCTAssertEqual(setup.counts, [2, 1])
    setup.server.executor.advance(by: .seconds(2))
    XCTAssertEqual(setup.outcomes.value, ["a ok", "b ok", "c ok", "d ok", "e ok"])
    XCTAssertEqual(setup.counts, [0, 0])
    XCTAssertEqual(setup.most.value.most, 2)
  }

  func testAFullQueueRefusesAtOnce() {
    let setup = Setup(maximumCalls: 1, maximumWaiting: 1)
    let client = setup.client()
    for name in ["a", "b", "c"] { setup.start(client, name) }
    XCTAssertEqual(setup.outcomes.value, ["c resource_exhausted"])
    setup.server.executor.advance(by: .seconds(2))
    XCTAssertEqual(setup.outcomes.value, ["c resource_exhausted", "a ok", "b ok"])
    XCTAssertEqual(setup.server.attempts.count, 2)
  }

  /// Another attempt would meet the same queue.
  func testARefusedCallIsNotRetried() {
    let setup = Setup(maximumCalls: 1, maximumWaiting: 0)
    let limiter = setup.limiter
    let budget = RetryBudget()
    let policy = RetryPolicy(codes: [.unavailable, .resourceExhausted])
    let client = setup.server.client(
      { _ in RetryInterceptor(policy: policy, budget: budget) },
      { _ in ConcurrencyLimitInterceptor(limiter) }
    )
    for name in ["a", "b"] { setup.start(client, name) }
    XCTAssertEqual(setup.outcomes.value, ["b resource_exhausted"])
    XCTAssertEqual(budget.tokens, 10)
    setup.server.executor.advance(by: .seconds(60))
    XCTAssertEqual(setup.server.attempts.count, 1)
  }

  func testCallsThatEndWhileTheyWaitLeaveTheQueue() {
    let setup = Setup(maximumCalls: 1)
    let client = setup.client()
    setup.start(client, "a")
    let cancelled = setup.start(client, "b")
    setup.start(client, "c", timeout: .milliseconds(500))
    setup.start(client, "d")
    XCTAssertEqual(setup.counts, [1, 3])
    cancelled.cancel()
    setup.server.executor.runUntilIdle()
    XCTAssertEqual(setup.counts, [1, 2])
    setup.server.executor.advance(by: .milliseconds(500))
    XCTAssertEqual(setup.counts, [1, 1])
    setup.server.executor.advance(by: .milliseconds(1500))
    XCTAssertEqual(setup.outcomes.value, ["b canceled", "c deadline_exceeded", "a ok", "d ok"])
    XCTAssertEqual(setup.counts, [0, 0])
    XCTAssertEqual(setup.server.attempts.count, 2)
  }

  func testPlacesComeBackHoweverACallEnds() {
    let setup = Setup(maximumCalls: 3, fails: true)
    let client = setup.client()
    setup.start(client, "a")
    let cancelled = setup.start(client, "b")
    setup.start(client, "c", timeout: .milliseconds(500))
    XCTAssertEqual(setup.counts, [3, 0])
    cancelled.cancel()
    setup.server.executor.advance(by: .seconds(1))
    XCTAssertEqual(setup.outcomes.value, ["b canceled", "c deadline_exceeded", "a unavailable"])
    XCTAssertEqual(setup.counts, [0, 0])
  }

  func testTheLongestWait() async throws {
    let setup = Setup(maximumCalls: 1, maximumWait: .milliseconds(600))
    let client = setup.client()
    setup.start(client, "a")
    setup.start(client, "b")
    // The task that watches goes to sleep outside of the executor's order.
    try await setup.server.executor.wait { setup.server.executor.scheduled.count == 2 }
    setup.server.executor.advance(by: .milliseconds(500))
    setup.start(client, "c")
    setup.server.executor.advance(by: .milliseconds(100))
    try await setup.server.executor.wait { setup.outcomes.value.count == 1 }
    XCTAssertEqual(setup.outcomes.value, ["b resource_exhausted"])
    XCTAssertEqual(setup.counts, [1, 1])
    try await setup.server.executor.wait { setup.server.executor.scheduled.count == 2 }
    setup.server.executor.advance(by: .milliseconds(1400))
    try await setup.server.executor.wait { setup.server.executor.scheduled.isEmpty }
    XCTAssertEqual(setup.outcomes.value, ["b resource_exhausted", "a ok", "c ok"])
    XCTAssertEqual(setup.counts, [0, 0])
    // And it watches again when there is something to watch.
    setup.start(client, "d")
    setup.start(client, "e")
    try await setup.server.executor.wait { setup.server.executor.scheduled.count == 2 }
    setup.server.executor.advance(by: .milliseconds(600))
    try await setup.server.executor.wait { setup.outcomes.value.count == 4 }
    XCTAssertEqual(setup.outcomes.value.last, "e resource_exhausted")
  }

  // MARK: Deadlines

  func testACallThatWouldComeTooLateIsRefusedAtOnce() {
    let setup = Setup()
    let client = setup.client()
    setup.start(client, "a", timeout: .seconds(2))
    XCTAssertNil(Setup().limiter.expectedWait.flatMap { $0 > .zero ? $0 : nil })
    setup.server.executor.advance(by: .seconds(1))
    for name in ["b", "c"] { setup.start(client, name) }
    XCTAssertEqual(setup.limiter.expectedWait, .milliseconds(500))
    setup.start(client, "d")
    // Two calls have to end before it, of which two run at once, for a second each.
    XCTAssertEqual(setup.limiter.expectedWait, .seconds(1))
    setup.start(client, "e", timeout: .milliseconds(1000))
    XCTAssertEqual(setup.outcomes.value, ["a ok", "e resource_exhausted"])
    setup.start(client, "f", timeout: .milliseconds(2100))
    setup.start(setup.client(timeout: .milliseconds(1200)), "g")
    XCTAssertEqual(setup.outcomes.value.last, "g resource_exhausted")
    XCTAssertEqual(setup.counts, [2, 2])
    setup.server.executor.advance(by: .seconds(2))
    XCTAssertEqual(setup.outcomes.value.suffix(4), ["b ok", "c ok", "d ok", "f ok"])
    XCTAssertEqual(setup.server.attempts.count, 5)
    XCTAssertEqual(setup.limiter.expectedWait, .zero)
  }

  func testNothingIsRefusedWhileNothingIsKnown() {
    let setup = Setup(maximumCalls: 1)
    let client = setup.client()
    setup.start(client, "a")
    XCTAssertNil(setup.limiter.expectedWait)
    setup.start(client, "b", timeout: .milliseconds(1))
    XCTAssertEqual(setup.counts, [1, 1])
  }

  func testTheExpectationFollowsTheCalls() throws {
    let setup = Setup(maximumCalls: 1)
    let client = setup.client()
    setup.start(client, "a")
    setup.server.executor.advance(by: .seconds(1))
    for name in ["b", "c", "d"] {
      let call = setup.start(client, name)
      setup.server.executor.advance(by: .milliseconds(200))
      call.cancel()
      setup.server.executor.runUntilIdle()
    }
    setup.start(client, "e")
    let expected = 1 - 0.8 * (1 - 0.875 * 0.875 * 0.875)
    let wait = try XCTUnwrap(setup.limiter.expectedWait)
    XCTAssertEqual(wait / .seconds(1), expected, accuracy: 0.000_001)
  }

  /// What a call has used up before counts.
  func testTheDeadlineOfALaterAttempt() async throws {
    let pushback = ConnectError.away(["grpc-retry-pushback-ms": ["1500"]])
    let server = ScriptedServer { number, context in
      try await context.sleep(for: .seconds(1))
      if number == 1 { throw pushback }
    }
    let limiter = ConcurrencyLimiter(maximumCalls: 1, clock: server.executor.clock)
    let limiting: InterceptorFactory = { _ in ConcurrencyLimitInterceptor(limiter) }
    let client = server.client({ _ in RetryInterceptor(budget: RetryBudget()) }, limiting)
    let other = server.client(limiting)
    // Takes the place when the first attempt has failed.
    _ = server.executor.schedule(after: .milliseconds(2000)) {
      other.unary(ScriptedServer.method(), .text("other")) { _ in }
    }
    let response = try await server.call(client, options: CallOptions(timeout: .milliseconds(3400)))
    XCTAssertEqual(response.code, .resourceExhausted)
    XCTAssertEqual(server.executor.now, .milliseconds(2500))
  }

  func testStreamsKeepTheirPlaceUntilTheirEnd() {
    let setup = Setup(maximumCalls: 1)
    let client = setup.client()
    let stream = client.serverStream(ScriptedServer.method(.serverStream), .text("x")) { _ in }
    setup.server.executor.runUntilIdle()
    XCTAssertEqual(setup.counts, [1, 0])
    setup.start(client, "a")
    XCTAssertEqual(setup.counts, [1, 1])
    stream.cancel()
    setup.server.executor.runUntilIdle()
    XCTAssertEqual(setup.counts, [1, 0])
    setup.server.executor.advance(by: .seconds(1))
    XCTAssertEqual(setup.outcomes.value, ["a ok"])
    XCTAssertEqual(setup.counts, [0, 0])
  }

  func testAStreamThatEndsWhileItWaits() async throws {
    let setup = Setup(maximumCalls: 1)
    let client = setup.client()
    setup.start(client, "a")
    let stream = client.serverStream(ScriptedServer.method(.serverStream), .text("x")) { _ in }
    setup.server.executor.runUntilIdle()
    XCTAssertEqual(setup.counts, [1, 1])
    stream.cancel()
    setup.server.executor.runUntilIdle()
    XCTAssertEqual(setup.counts, [1, 0])
  }

  /// Inside of retries a call has no place while it waits for its next attempt; outside of them it keeps it.
  func testWithRetries() async throws {
    for isInside in [true, false] {
      let server = ScriptedServer(failing: .away(["grpc-retry-pushback-ms": ["1000"]]))
      let limiter = ConcurrencyLimiter(maximumCalls: 1)
      let budget = RetryBudget()
      let limiting: InterceptorFactory = { _ in ConcurrencyLimitInterceptor(limiter) }
      let retrying: InterceptorFactory = { _ in RetryInterceptor(budget: budget) }
      let client = isInside ? server.client(retrying, limiting) : server.client(limiting, retrying)
      let code = Observed<Code?>(nil)
      client.unary(ScriptedServer.method(), .text("x")) { response in code.update { $0 = response.code } }
      server.executor.runUntilIdle()
      XCTAssertEqual(limiter.runningCount, isInside ? 0 : 1)
      server.executor.advance(by: .seconds(1))
      XCTAssertEqual(code.value, .ok)
      XCTAssertEqual(limiter.runningCount, 0)
    }
  }

  /// An interceptor in its async form gives up an attempt that waits, and makes another.
  func testAnAttemptThatIsGivenUpWhileItWaits() async throws {
    let server = ScriptedServer { _, _ in }
    let limiter = ConcurrencyLimiter(maximumCalls: 1)
    let entered = limiter
    let slow = ScriptedServer { _, context in await context.waitUntilClosed() }
    let blocker = slow.client({ _ in ConcurrencyLimitInterceptor(entered) })
    let blocking = blocker.unary(ScriptedServer.method(), .text("x")) { _ in }
    slow.executor.runUntilIdle()
    XCTAssertEqual(limiter.runningCount, 1)

    let client = server.client(
      { _ in Impatient(isReady: { limiter.waitingCount == 1 }, afterwards: { blocking.cancel() }) },
      { _ in ConcurrencyLimitInterceptor(limiter) }
    )
    let code = try await server.executor.lettingTimePass {
      await client.unary(ScriptedServer.method(), .text("x")).code
    }
    XCTAssertEqual(code, .ok)
    XCTAssertEqual([limiter.runningCount, limiter.waitingCount], [0, 0])
  }

  /// Many calls on many threads, a third of which end while they wait or run.
  func testAThousandCallsAtOnce() async throws {
    let limiter = ConcurrencyLimiter(maximumCalls: 10, maximumWaiting: 400)
    let servers = (0..<4).map { _ in
      ScriptedServer { _, context in try await context.sleep(for: .seconds(1)) }
    }
    let codes = try await withThrowingTaskGroup(of: [Code: Int].self) { group in
      for server in servers {
        let client = server.client({ _ in ConcurrencyLimitInterceptor(limiter) })
        group.addTask {
          try await server.executor.lettingTimePass {
            await withTaskGroup(of: Code.self) { calls in
              for number in 0..<250 {
                let options = CallOptions(timeout: number.isMultiple(of: 3) ? .milliseconds(number) : nil)
                calls.addTask {
                  await client.unary(ScriptedServer.method(), .text("x"), options: options).code
                }
              }
              return await calls.reduce(into: [:]) { $0[$1, default: 0] += 1 }
            }
          }
        }
      }
      return try await group.reduce(into: [Code: Int]()) { $0.merge($1, uniquingKeysWith: +) }
    }
    XCTAssertEqual(codes.values.reduce(0, +), 1000)
    XCTAssertGreaterThan(codes[.ok] ?? 0, 0)
    XCTAssertGreaterThan(codes[.deadlineExceeded] ?? 0, 0)
    XCTAssertTrue(Set(codes.keys).isSubset(of: [.ok, .deadlineExceeded, .resourceExhausted]), "\(codes)")
    for server in servers { server.executor.runUntilIdle() }
    XCTAssertEqual([limiter.runningCount, limiter.waitingCount], [0, 0])
  }
}

/// Gives up its first attempt once that is ready, and then does something before it makes another.
private struct Impatient: AsyncUnaryInterceptor {
  var isReady: @Sendable () -> Bool
  var afterwards: @Sendable () -> Void

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    let first = Task { try await next(request) }
    for _ in 0..<100_000 where !self.isReady() { await Task.yield() }
    XCTAssertTrue(self.isReady())
    first.cancel()
    _ = await first.result
    self.afterwards()
    return try await next(request)
  }
}
