import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import Synchronization
import XCTest

/// A service config's retry policy takes the place of the interceptor's own.
final class RetryRulesTests: XCTestCase {
  private static let aborted = ConnectError(code: .aborted, message: "aborted")

  private func rules(
    _ attempts: Int = 3,
    backoff: Duration = .seconds(1),
    maximumBackoff: Duration = .milliseconds(1_500),
    throttle: RetryBudget? = nil
  ) -> RetryRules {
    RetryRules(
      maximumAttempts: attempts,
      initialBackoff: backoff,
      maximumBackoff: maximumBackoff,
      backoffMultiplier: 2,
      codes: [.aborted],
      throttle: throttle
    )
  }

  private func client(
    _ server: ScriptedServer,
    _ rules: RetryRules?,
    retries: Int = 10,
    budget: RetryBudget = RetryBudget(maximumTokens: 1_000),
    outside interceptors: [InterceptorFactory] = []
  ) -> ProtocolClient {
    ProtocolClient(
      httpClient: RuledTransport(server.transport, MethodRules(retry: rules)),
      config: ProtocolClientConfig(
        host: "http://scripted.test",
        interceptors: interceptors + [{ _ in RetryInterceptor(policy: .defaults, budget: budget) }],
        retries: .init(maximumRetries: retries)
      )
    )
  }

  /// Also for a method that is not marked as idempotent.
  func testAttemptsCodesAndBackoff() async throws {
    var longestWait = Duration.zero
    for _ in 0..<20 {
      let server = ScriptedServer { number, _ in
        throw ConnectError(code: .aborted, message: "attempt \(number)")
      }
      let response = try await server.call(self.client(server, self.rules()), idempotencyLevel: .unknown)
      XCTAssertEqual(response.error?.message, "attempt 3")
      XCTAssertEqual(
        server.attempts.map { $0.headers["grpc-previous-rpc-attempts"] },
        [[], ["1"], ["2"]]
      )
      let times = server.attempts.map(\.time)
      for (wait, longest) in zip(zip(times, times.dropFirst()).map { $1 - $0 }, [1_000, 1_500]) {
        XCTAssertTrue(wait >= .zero && wait <= .milliseconds(longest), "\(times)")
        longestWait = max(longestWait, wait)
      }
    }
    XCTAssertGreaterThan(longestWait, .milliseconds(200), "longer than the interceptor's own")
  }

  func testCodesOfTheInterceptorDoNotCount() async throws {
    let server = ScriptedServer(failing: .away)
    let response = try await server.call(self.client(server, self.rules()))
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(server.attempts.count, 1)
    let other = ScriptedServer(failing: .away)
    let ownPolicy = try await other.call(self.client(other, nil))
    XCTAssertEqual(ownPolicy.code, .ok, "without rules the interceptor has its own policy")
  }

  func testTheClientsCapHolds() async throws {
    for (attempts, cap, expected) in [(5, 2, 3), (5, 10, 5), (2, 10, 2)] {
      let server = ScriptedServer { _, _ in throw Self.aborted }
      let response = try await server.call(self.client(server, self.rules(attempts), retries: cap))
      XCTAssertEqual(response.code, .aborted)
      XCTAssertEqual(server.attempts.count, expected)
    }
  }

  func testBudgetAndThrottleBothAllow() async throws {
    for (tokens, throttleTokens, attempts) in [
      (100.0, 100.0, 3), (2, 100, 1), (100, 2, 1), (4, 100, 2), (100, 4, 2),
    ] {
      let server = ScriptedServer { number, _ in
        if number <= 3 { throw Self.aborted }
      }
      let budget = RetryBudget(maximumTokens: tokens)
      // In the place of the channel's, which is such a budget, too.
      let throttle = RetryBudget(maximumTokens: throttleTokens)
      let client = self.client(server, self.rules(throttle: throttle), budget: budget)
      let response = try await server.call(client)
      XCTAssertEqual(response.code, .aborted)
      XCTAssertEqual(server.attempts.count, attempts)
      XCTAssertEqual(budget.tokens, max(tokens - Double(attempts), 0))
      XCTAssertEqual(throttle.tokens, max(throttleTokens - Double(attempts), 0))
      if attempts == 3 {
        let success = try await server.call(client)
        XCTAssertEqual(success.code, .ok)
        XCTAssertEqual(throttle.tokens, 97.1, accuracy: 1e-9)
      }
    }
  }

  func testPushback() async throws {
    let never = ScriptedServer(
      failing: ConnectError(code: .aborted, metadata: ["grpc-retry-pushback-ms": ["-1"]])
    )
    let refused = try await never.call(self.client(never, self.rules()))
    XCTAssertEqual(refused.code, .aborted)
    XCTAssertEqual(never.attempts.count, 1)
    let later = ScriptedServer(
      failing: ConnectError(code: .aborted, metadata: ["grpc-retry-pushback-ms": ["7000"]])
    )
    let response = try await later.call(self.client(later, self.rules()))
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(later.attempts.map(\.time), [.zero, .seconds(7)])
  }

  func testStreams() async throws {
    let server = ScriptedServer(failing: Self.aborted, Self.aborted)
    let throttle = RetryBudget(maximumTokens: 100)
    let stream = try await server.stream(self.client(server, self.rules(throttle: throttle)))
    XCTAssertNil(stream.error)
    XCTAssertEqual(stream.messages.map(\.payload.text), ["x"])
    XCTAssertEqual(server.attempts.count, 3)
    XCTAssertEqual(throttle.tokens, 98.1, accuracy: 1e-9)
  }

  /// A caller may wait for headers before it sends: a service's rules alone do not hold them back.
  func testHeadersOfMethodsThatAreNotIdempotentAreNotHeld() async throws {
    let server = ScriptedServer(sendsHeadersFirst: true) { _, _ in throw Self.aborted }
    let client = self.client(server, self.rules())
    for (level, attempts) in [(IdempotencyLevel.unknown, 1), (.idempotent, 3)] {
      let before = server.attempts.count
      let stream = try await server.executor.lettingTimePass {
        try await client.serverStream(ScriptedServer.method(.serverStream, level), .text("x")).results
          .collected()
      }
      XCTAssertEqual(stream.error?.code, .aborted)
      XCTAssertEqual(server.attempts.count - before, attempts, "\(level)")
    }
  }

  /// Calls that hedge by the service's rules are not retried on top, not even by the interceptor's own policy.
  func testNoRetriesBesidesHedging() async throws {
    let server = ScriptedServer(failing: .away, .away)
    let response = try await server.call(self.client(server, .noRetries))
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(server.attempts.count, 1)
  }

  /// A message that is too large is so in each attempt, and says nothing about the server.
  func testMessagesOverALimitAreNotRetried() async throws {
    let rules = RetryRules(
      maximumAttempts: 4,
      initialBackoff: .seconds(1),
      maximumBackoff: .seconds(1),
      backoffMultiplier: 1,
      codes: [.resourceExhausted]
    )
    for isRequest in [true, false] {
      let server = ScriptedServer { _, _ in }
      let budget = RetryBudget(maximumTokens: 100)
      let client = ProtocolClient(
        httpClient: RuledTransport(
          server.transport,
          MethodRules(
            maximumRequestMessageSize: isRequest ? 4 : nil,
            maximumResponseMessageSize: isRequest ? nil : 4,
            retry: rules
          )
        ),
        config: ProtocolClientConfig(
          host: "http://scripted.test",
          interceptors: [{ _ in RetryInterceptor(policy: .defaults, budget: budget) }]
        )
      )
      let response = try await server.call(client, "much more than four bytes")
      XCTAssertEqual(response.code, .resourceExhausted)
      XCTAssertEqual(server.attempts.count, isRequest ? 0 : 1)
      XCTAssertEqual(budget.tokens, 100)
    }
  }

  /// Headers commit a call: it is not made again because of the service's rules alone when the connection breaks then.
  func testALostConnectionBehindTheHeaders() async throws {
    let rules = RetryRules(
      maximumAttempts: 3,
      initialBackoff: .seconds(1),
      maximumBackoff: .seconds(1),
      backoffMultiplier: 1,
      codes: [.unavailable]
    )
    for (hasHead, level, attempts) in [
      (true, IdempotencyLevel.unknown, 1), (true, .idempotent, 3), (false, .unknown, 3),
    ] {
      let executor = VirtualExecutor()
      let transport = InMemoryTransport(executor: executor)
      let count = Mutex(0)
      transport.onRaw("/lost.Service/Call") { exchange in
        count.withLock { $0 += 1 }
        if hasHead {
          try await exchange.sendHead(status: 200, headers: ["content-type": ["application/proto"]])
        }
        transport.disconnect()
        await exchange.waitUntilClosed()
      }
      let client = ProtocolClient(
        httpClient: RuledTransport(transport, MethodRules(retry: rules)),
        config: ProtocolClientConfig(
          host: "http://lost.test",
          interceptors: [
            { _ in RetryInterceptor(policy: .defaults, budget: RetryBudget(maximumTokens: 1_000)) }
          ],
          waitForReady: true
        )
      )
      let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
        path: "/lost.Service/Call",
        streamType: .unary,
        idempotencyLevel: level
      )
      let response = try await executor.lettingTimePass { await client.unary(method, .text("x")) }
      XCTAssertEqual(response.code, .unavailable)
      XCTAssertEqual(count.withLock { $0 }, attempts, "\(hasHead), \(level)")
    }
  }

  /// A request that an interceptor has created belongs to the same call.
  func testRequestsThatWereCreatedOutsideKeepTheRules() async throws {
    let server = ScriptedServer(failing: Self.aborted)
    let client = self.client(
      server,
      self.rules(),
      outside: [
        { _ in
          RequestInterceptor(
            adapters: [
              Adapter { request, _ in
                HTTPRequest(url: request.url, contentType: request.contentType, message: request.message)
              }
            ],
            retriers: []
          )
        }
      ]
    )
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(server.attempts.count, 2)
  }

  /// The rules of a call are none of the calls that it makes.
  func testCallsOfACallHaveTheirOwnRules() async throws {
    let server = ScriptedServer(failing: Self.aborted, Self.aborted)
    let plain = server.client({ _ in RetryInterceptor(budget: RetryBudget(maximumTokens: 1_000)) })
    let client = self.client(
      server,
      self.rules(),
      outside: [{ _ in CallingInterceptor(client: plain) }]
    )
    _ = try await server.call(client)
    // One of the inner call, which is not made again, and two of the outer one.
    XCTAssertEqual(server.attempts.map(\.messages), [["inner"], ["x"], ["x"]])
  }

  /// Makes a call of its own first.
  private struct CallingInterceptor: AsyncUnaryInterceptor {
    let client: ProtocolClient

    func interceptUnary<Input, Output>(
      _ request: HTTPRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: UnaryNext<Input, Output>
    ) async throws -> ResponseMessage<Output> {
      _ = await self.client.unary(ScriptedServer.method(), .text("inner"))
      return try await next(request)
    }
  }
}
