import Connect
import ConnectInterceptors
import ConnectNIO
import LoopbackServer
import XCTest

/// The examples of the articles on retries and guards, against a real server.
final class RetryExampleTests: XCTestCase {
  private static let get = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoRequest>(
    path: "/flaky.Service/Get",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )

  private func run(
    _ makeConfig: (_ host: String) -> ProtocolClientConfig,
    _ body: (LoopbackServer, ProtocolClient) async throws -> Void
  ) async throws {
    let server = try await LoopbackServer.start()
    let httpClient = NIOHTTPClient()
    try await body(server, ProtocolClient(httpClient: httpClient, config: makeConfig(server.url)))
    await httpClient.shutdown()
    await server.stop()
  }

  func testRetries() async throws {
    try await self.run { host in
      let budget = RetryBudget()
      let config = ProtocolClientConfig(
        host: host,
        interceptors: [{ _ in RetryInterceptor(policy: .defaults, budget: budget) }]
      )
      return config
    } _: { server, client in
      server.failAtFirst(Self.get.path, failures: 2, headers: ["grpc-retry-pushback-ms": "1"])
      let response = await client.unary(Self.get, .text("x"))
      XCTAssertEqual(response.message?.payload.text, "x")
    }
  }

  func testAdaptersAndRetriers() async throws {
    try await self.run { host in
      let version = Adapter { request, _ in
        var request = request
        request.headers["x-client-version"] = ["7"]
        return request
      }
      let conflicts = Retrier { attempt in
        guard attempt.error.code == .aborted, attempt.number < 3 else { return .doNotRetry }
        return .retryWithDelay(.milliseconds(50))
      }
      let config = ProtocolClientConfig(
        host: host,
        interceptors: [
          { _ in RequestInterceptor(adapters: [version], retriers: [conflicts, ConnectionLostRetrier()]) }
        ]
      )
      return config
    } _: { server, client in
      server.onRaw(Self.get.path) { request, responder in
        let body = try await request.body()
        guard request.attempt > 0 else {
          return try await responder.respond(
            status: 409,
            headers: ["content-type": "application/json"],
            text: #"{"code":"aborted"}"#
          )
        }
        try await responder.respond(headers: ["content-type": "application/proto"], body: body)
      }
      let response = await client.unary(Self.get, .text("x"))
      XCTAssertEqual(response.message?.payload.text, "x")
      XCTAssertEqual(server.requests.map { $0.headers.first("x-client-version") }, ["7", "7"])
    }
  }

  func testGuards() async throws {
    try await self.run { host in
      let budget = RetryBudget()
      let breaker = CircuitBreaker()
      let limiter = ConcurrencyLimiter(maximumCalls: 100, maximumWaiting: 1000, maximumWait: .seconds(1))
      let config = ProtocolClientConfig(
        host: host,
        interceptors: [
          { _ in RetryInterceptor(policy: .defaults, budget: budget) },
          { _ in CircuitBreakerInterceptor(breaker) },
          { _ in ConcurrencyLimitInterceptor(limiter) },
        ]
      )
      return config
    } _: { server, client in
      server.failAtFirst(Self.get.path, failures: 1)
      let response = await client.unary(Self.get, .text("x"))
      XCTAssertEqual(response.message?.payload.text, "x")
      XCTAssertEqual(server.requests.count, 2)
    }
  }
}
