import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import XCTest

/// Which unary calls are made again, how often, and what the server is told.
final class RetryInterceptorTests: XCTestCase {
  private static func retrying(
    _ policy: RetryPolicy = .defaults,
    _ budget: RetryBudget = RetryBudget(maximumTokens: 1000)
  ) -> InterceptorFactory {
    { _ in RetryInterceptor(policy: policy, budget: budget) }
  }

  func testRetriesAndSaysSoInEachProtocol() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let server = ScriptedServer(failing: .away, .away)
      let response = try await server.call(server.client(over: networkProtocol, Self.retrying()))
      XCTAssertEqual(response.message?.payload.text, "x", "\(networkProtocol): \(response)")
      XCTAssertEqual(
        server.attempts.map { $0.headers["grpc-previous-rpc-attempts"] },
        [[], ["1"], ["2"]],
        "\(networkProtocol)"
      )
    }
  }

  func testWaitsAsTheBackoffSays() async throws {
    let server = ScriptedServer(failing: .away, .away, .away)
    let policy = RetryPolicy(backoff: Backoff(base: .seconds(1), multiplier: 2, maximum: .seconds(2)))
    let response = try await server.call(server.client(Self.retrying(policy)))
    XCTAssertEqual(response.code, .ok)
    let times = server.attempts.map(\.time)
    for (wait, longest) in zip(zip(times, times.dropFirst()).map { $1 - $0 }, [1, 2, 2]) {
      XCTAssertTrue(wait >= .zero && wait <= .seconds(longest), "\(times)")
    }
  }

  func testOnlyMethodsThatMayBeRepeated() async throws {
    for (level, attempts) in [(IdempotencyLevel.unknown, 1), (.idempotent, 2), (.noSideEffects, 2)] {
      let server = ScriptedServer(failing: .away)
      let response = try await server.call(server.client(Self.retrying()), idempotencyLevel: level)
      XCTAssertEqual(response.code, attempts == 1 ? .unavailable : .ok)
      XCTAssertEqual(server.attempts.count, attempts, "\(level)")
    }
    let server = ScriptedServer(failing: .away)
    let client = server.client(Self.retrying(RetryPolicy(methods: { $0.name == "unary" })))
    let response = try await server.call(client, idempotencyLevel: .unknown)
    XCTAssertEqual(response.code, .ok)
  }

  func testOnlyCodesOfThePolicy() async throws {
    let refused = ConnectError(code: .failedPrecondition, message: "no")
    let server = ScriptedServer(failing: refused, refused)
    let response = try await server.call(server.client(Self.retrying()))
    XCTAssertEqual(response.code, .failedPrecondition)
    XCTAssertEqual(server.attempts.count, 1)
    let again = try await server.call(
      server.client(Self.retrying(RetryPolicy(codes: [.failedPrecondition])))
    )
    XCTAssertEqual(again.code, .ok)
  }

  func testTheLastErrorIsReportedWhenAttemptsAreUsedUp() async throws {
    for (maximum, cap, expected) in [(4, 10, 4), (1, 10, 1), (10, 2, 3)] {
      let server = ScriptedServer { number, _ in
        throw ConnectError(code: .unavailable, message: "attempt \(number)")
      }
      let client = server.client(retries: cap, Self.retrying(RetryPolicy(maximumAttempts: maximum)))
      let response = try await server.call(client)
      XCTAssertEqual(response.error?.message, "attempt \(expected)")
      XCTAssertEqual(server.attempts.count, expected)
    }
  }

  func testNeverPastTheDeadline() async throws {
    let server = ScriptedServer(failing: .away(["grpc-retry-pushback-ms": ["5000"]]))
    let budget = RetryBudget()
    let response = try await server.call(
      server.client(timeout: .seconds(5), Self.retrying(.defaults, budget))
    )
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(budget.tokens, 9, "one attempt has failed")
    XCTAssertEqual(server.attempts.count, 1)
    XCTAssertEqual(server.executor.now, .zero, "it waited in vain")
    XCTAssertEqual(server.executor.scheduled, [])
  }

  func testTheDeadlineEndsAnAttemptAndTheBudgetHearsOfIt() async throws {
    let server = ScriptedServer { number, context in
      if number == 1 { throw ConnectError.away }
      await context.waitUntilClosed()
    }
    let budget = RetryBudget(maximumTokens: 100)
    let policy = RetryPolicy(backoff: Backoff(base: .zero), codes: [.unavailable, .deadlineExceeded])
    let response = try await server.call(server.client(timeout: .seconds(1), Self.retrying(policy, budget)))
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertEqual(server.attempts.count, 2)
    XCTAssertEqual(server.executor.now, .seconds(1))
    XCTAssertEqual(budget.tokens, 98)
  }

  func testCancelledWhileItWaits() async throws {
    let server = ScriptedServer(failing: .away(["grpc-retry-pushback-ms": ["1000"]]))
    let client = server.client(Self.retrying())
    let outcome = Observed<Code?>(nil)
    let call = client.unary(ScriptedServer.method(), .text("x")) { response in
      outcome.update { $0 = response.code }
    }
    server.executor.runUntilIdle()
    XCTAssertEqual(server.executor.scheduled, [.seconds(1)])
    call.cancel()
    server.executor.runUntilIdle()
    XCTAssertEqual(outcome.value, .canceled)
    XCTAssertEqual(server.executor.scheduled, [])
    XCTAssertEqual(server.attempts.count, 1)
  }

  func testInterceptorsOutsideSeeOneAttemptAndThoseInsideEach() async throws {
    let server = ScriptedServer(failing: .away)
    let probe = InterceptorProbe()
    let client = server.client(
      probe.factory("outside", levels: [.byte]),
      Self.retrying(),
      probe.factory("inside", levels: [.byte])
    )
    _ = try await server.call(client)
    XCTAssertEqual(
      probe.events.filter { $0.hook == .response }.map { "\($0.interceptor)" },
      ["inside", "inside", "outside"]
    )
  }

  func testAThousandCallsAtOnce() async throws {
    let server = ScriptedServer { _, context in
      if context.requestHeaders.first("grpc-previous-rpc-attempts") == nil { throw ConnectError.away }
    }
    let budget = RetryBudget(maximumTokens: 10_000)
    let client = server.client(Self.retrying(.defaults, budget))
    let codes = try await server.executor.lettingTimePass {
      await withTaskGroup(of: Code.self) { group in
        for number in 0..<1000 {
          group.addTask { await client.unary(ScriptedServer.method(), .text("\(number)")).code }
        }
        return await group.reduce(into: [Code: Int]()) { $0[$1, default: 0] += 1 }
      }
    }
    XCTAssertEqual(codes, [.ok: 1000])
    XCTAssertEqual(server.attempts.count, 2000)
    XCTAssertEqual(budget.tokens, 9100, accuracy: 0.01)
  }
}
