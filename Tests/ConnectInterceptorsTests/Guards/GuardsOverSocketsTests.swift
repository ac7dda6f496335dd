import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import LoopbackServer
import XCTest

/// Guards against a real server.
final class GuardsOverSocketsTests: XCTestCase {
  private static let get = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoRequest>(
    path: "/flaky.Service/Get",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )

  func testCircuitBreaker() async throws {
    for setting in SocketTest.settings {
      let breaker = CircuitBreaker(.init(minimumCalls: 2))
      try await SocketTest.run(over: [setting], [{ _ in CircuitBreakerInterceptor(breaker) }]) {
        server,
        client,
        setting in
        server.failAtFirst(Self.get.path, failures: .max)
        for _ in 0..<2 {
          let response = await client.unary(Self.get, .text("x"))
          XCTAssertEqual(response.error?.httpStatus, 503, "\(setting)")
        }
        let refused = await client.unary(Self.get, .text("x"))
        XCTAssertEqual(refused.code, .unavailable, "\(setting)")
        XCTAssertTrue(
          refused.error?.message?.contains("circuit breaker of \(server.url)") == true,
          "\(setting)"
        )
        XCTAssertEqual(server.requests.count, 2, "\(setting)")
      }
    }
  }

  /// Calls for a host that the server's certificate does not name are not sent, and so do not count.
  func testCircuitBreakerAndAuthorities() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    let roots = NIOHTTPClient.Configuration.TLS(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)))
    let httpClient = NIOHTTPClient(configuration: .init(tls: roots))
    let breaker = CircuitBreaker(.init(minimumCalls: 1))
    let config = ProtocolClientConfig(
      host: server.url,
      interceptors: [{ _ in CircuitBreakerInterceptor(breaker) }],
      timeout: .seconds(60)
    )
    let client = ProtocolClient(httpClient: httpClient, config: config)
    for _ in 0..<3 {
      let options = CallOptions(authority: "other.example")
      let refused = await client.unary(TestMethods.echo, .text("x"), options: options)
      XCTAssertEqual(refused.code, .unavailable)
      XCTAssertEqual(refused.error?.isUnsent, true)
      XCTAssertEqual(refused.error?.message?.contains("the call was not sent"), true, "\(refused)")
    }
    let response = await client.unary(TestMethods.echo, .text("x"))
    XCTAssertEqual(response.code, .ok, "\(response)")
    await httpClient.shutdown()
    await server.stop()
  }

  /// A thousand calls, of which many are cancelled or pass their deadline while they wait.
  func testConcurrencyLimiter() async throws {
    for setting in SocketTest.settings {
      let limiter = ConcurrencyLimiter(maximumCalls: 8)
      try await SocketTest.run(over: [setting], [{ _ in ConcurrencyLimitInterceptor(limiter) }]) {
        server,
        client,
        setting in
        let codes = await withTaskGroup(of: Code.self) { group in
          for number in 0..<1000 {
            let request = Connect_Test_V1_EchoRequest.text("\(number)")
            if number.isMultiple(of: 5) {
              group.addTask {
                let call = Task { await client.unary(TestMethods.echo, request).code }
                await Task.yield()
                call.cancel()
                return await call.value
              }
            } else {
              let timeout: Duration? = number.isMultiple(of: 7) ? .microseconds(number) : nil
              group.addTask {
                await client.unary(TestMethods.echo, request, options: CallOptions(timeout: timeout)).code
              }
            }
          }
          return await group.reduce(into: [Code: Int]()) { $0[$1, default: 0] += 1 }
        }
        XCTAssertEqual(codes.values.reduce(0, +), 1000, "\(setting)")
        XCTAssertGreaterThanOrEqual(codes[.ok] ?? 0, 685, "\(setting): \(codes)")
        // Who would get its turn after its deadline is refused at once.
        XCTAssertTrue(
          Set(codes.keys).isSubset(of: [.ok, .canceled, .deadlineExceeded, .resourceExhausted]),
          "\(setting): \(codes)"
        )
        // What ends a call lets go of its interceptors before or right after the caller hears of it.
        for _ in 0..<1000 where limiter.runningCount + limiter.waitingCount > 0 {
          try await Task.sleep(for: .milliseconds(5))
        }
        XCTAssertEqual([limiter.runningCount, limiter.waitingCount], [0, 0], "\(setting)")
      }
    }
  }

  func testMaximumRetries() async throws {
    let budget = RetryBudget(maximumTokens: 100)
    let policy = RetryPolicy(backoff: Backoff(base: .zero))
    let interceptors: [InterceptorFactory] = [{ _ in RetryInterceptor(policy: policy, budget: budget) }]
    try await SocketTest.run(interceptors) { server, client, setting in
      server.failAtFirst(Self.get.path, failures: .max)
      let options = CallOptions(interceptors: [{ _ in MaximumRetriesInterceptor(1) }])
      let response = await client.unary(Self.get, .text("x"), options: options)
      XCTAssertEqual(response.error?.httpStatus, 503, "\(setting)")
      XCTAssertEqual(server.requests.count, 2, "\(setting)")
    }
  }

  func testHTTPStatus() async throws {
    try await SocketTest.run(over: SocketTest.settings.dropLast(), [{ _ in HTTPStatusInterceptor() }]) {
      server,
      client,
      setting in
      server.onRaw(Self.get.path) { request, responder in
        _ = try await request.body()
        try await responder.respond(status: 304, headers: ["etag": "\"1\""])
      }
      let options = CallOptions(headers: ["if-none-match": ["\"1\""]])
      let response = await client.unary(Self.get, .text("x"), options: options)
      XCTAssertEqual(response.code, .unknown, "\(setting)")
      XCTAssertEqual(response.error?.message, "HTTP status 304 Not Modified", "\(setting)")
    }
  }
}
