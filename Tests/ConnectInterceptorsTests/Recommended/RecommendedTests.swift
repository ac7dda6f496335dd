import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import CoreMetrics
import Logging
import LoopbackServer
import MetricsTestKit
import SwiftProtobuf
import XCTest

/// All that is recommended, together.
final class RecommendedTests: XCTestCase {
  private let recorder = CallLogRecorder()

  private func parts() -> ClientParts { ClientParts(logger: self.recorder.makeLogger(level: .debug)) }

  /// With a backend for metrics; in the process there is none, nor one for traces.
  private func measuredParts() -> ClientParts {
    var parts = self.parts()
    parts.metrics = CallMetrics(factory: TestMetrics())
    return parts
  }

  private static func names(_ parts: ClientParts) -> [String] {
    let config = ProtocolClientConfig(host: "http://service.test")
    return [InterceptorFactory].recommended(for: parts).map { "\(type(of: $0(config)))" }
  }

  func testTheOrder() {
    var parts = self.measuredParts()
    XCTAssertEqual(
      Self.names(parts),
      [
        "ContextInterceptor", "MetricsInterceptor", "LoggingInterceptor",
        "RetryInterceptor", "CircuitBreakerInterceptor",
      ]
    )
    parts.credentials = Credentials(for: ["service.test"]) { _ in AccessToken("t", expiresIn: .seconds(60)) }
    parts.cookies = CookieJar()
    parts.cache = ResponseCache()
    parts.acceptedStatuses = [200]
    parts.concurrencyLimiter = ConcurrencyLimiter(maximumCalls: 10)
    XCTAssertEqual(
      Self.names(parts),
      [
        "ContextInterceptor", "MetricsInterceptor", "LoggingInterceptor",
        "HTTPStatusInterceptor", "CredentialsInterceptor", "CookieInterceptor", "CacheReadInterceptor",
        "CacheWriteInterceptor", "RetryInterceptor", "CircuitBreakerInterceptor",
        "ConcurrencyLimitInterceptor",
        "CookieInterceptor",
      ]
    )
    parts.context = nil
    parts.isTraced = false
    parts.metrics = nil
    parts.log = nil
    parts.acceptedStatuses = nil
    parts.credentials = nil
    parts.cookies = nil
    parts.cache = nil
    parts.retryPolicy = nil
    parts.circuitBreaker = nil
    parts.concurrencyLimiter = nil
    XCTAssertEqual(Self.names(parts), [])
  }

  /// An expired token, a failing first attempt, then a cache hit: one line and one duration for each call.
  func testALifeInAService() async throws {
    let executor = VirtualExecutor()
    let transport = InMemoryTransport(executor: executor)
    let seen = Noted<String>()
    transport.onUnary(TestMethods.lookup) { request, context in
      let token = context.requestHeaders.first("authorization") ?? "none"
      seen.add("\(token) \(context.requestHeaders.first("grpc-previous-rpc-attempts") ?? "-")")
      guard token == "Bearer t2" else { throw ConnectError(code: .unauthenticated) }
      if seen.value.count == 2 { throw ConnectError(code: .unavailable) }
      return .with { $0.value = "found" }
    }
    let tokens = Noted<String>()
    var parts = self.parts()
    let backend = TestMetrics()
    parts.metrics = CallMetrics(
      factory: backend,
      options: CallMetrics.Options(includesServer: false),
      clock: executor.clock
    )
    parts.credentials = Credentials(
      for: ["service.test"],
      // In real time: the provider runs in the pool, and virtual time would pass its time limit meanwhile.
      configuration: .init(allowsCleartext: true)
    ) { _ in
      tokens.add("t")
      return AccessToken("t\(tokens.value.count)", expiresIn: .seconds(3600))
    }
    parts.cache = ResponseCache(clock: executor.clock)
    parts.concurrencyLimiter = ConcurrencyLimiter(maximumCalls: 1, clock: executor.clock)
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(host: "http://service.test", interceptors: .recommended(for: parts))
    )
    for _ in 0..<2 {
      let response = try await executor.lettingTimePass {
        await client.unary(TestMethods.lookup, .with { $0.key = "k" })
      }
      XCTAssertEqual(response.message?.value, "found")
    }
    XCTAssertEqual(seen.value.count, 3)
    XCTAssertEqual(seen.value.map { $0.prefix(9) }, ["Bearer t1", "Bearer t2", "Bearer t2"])
    XCTAssertEqual(tokens.value.count, 2)
    XCTAssertEqual(self.recorder.texts, ["call completed", "call completed"])
    XCTAssertEqual(self.recorder.lines[0].metadata["attempts"], "3")
    XCTAssertNil(self.recorder.lines[1].metadata["attempts"])
    XCTAssertFalse("\(self.recorder.lines)".contains("Bearer"))
    XCTAssertEqual(backend.timers.count, 1)
    XCTAssertEqual(backend.timers.first?.values.count, 2)
  }

  /// A header of one's own for the request's id makes no response another one.
  func testTheRequestIDIsNoPartOfTheCachesKeys() async throws {
    let executor = VirtualExecutor()
    let transport = InMemoryTransport(executor: executor)
    let ids = Noted<String>()
    transport.onUnary(TestMethods.lookup) { _, context in
      ids.add(context.requestHeaders.first("request-id") ?? "none")
      return .with { $0.value = "found" }
    }
    for policy in [CachePolicy.cacheFirst, .networkFirst] {
      var parts = self.parts()
      parts.context?.requestIDHeader = "Request-ID"
      parts.cache = ResponseCache(configuration: .init(policy: policy), clock: executor.clock)
      let client = ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(host: "http://service.test", interceptors: .recommended(for: parts))
      )
      for _ in 0..<2 { _ = try await client.unary(TestMethods.lookup, .with { $0.key = "k" }).get() }
    }
    XCTAssertEqual(ids.value.count, 1 + 2)
    XCTAssertEqual(Set(ids.value).count, 3)
  }

  func testRealServer() async throws {
    let server = try await LoopbackServer.start()
    let httpClient = NIOHTTPClient()
    let tokens = Noted<String>()
    var parts = self.parts()
    // All lines are of one second, however slow the machine is.
    parts.log = CallLog(
      logger: self.recorder.makeLogger(level: .debug),
      options: CallLog.Options(sampling: LogSampling(first: 100, thereafter: 100)),
      clock: VirtualExecutor().clock
    )
    parts.credentials = Credentials(for: ["127.0.0.1"], configuration: .init(allowsCleartext: true)) { _ in
      tokens.add("t")
      return AccessToken("t\(tokens.value.count)", expiresIn: .seconds(3600))
    }
    parts.cache = ResponseCache()
    let limiter = ConcurrencyLimiter(maximumCalls: 50)
    parts.concurrencyLimiter = limiter
    parts.circuitBreaker = CircuitBreaker(.init(scope: .method, minimumCalls: 5))
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: server.url,
        interceptors: .recommended(for: parts),
        contextPropagators: [ServiceContextPropagator()]
      )
    )
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<1000 {
        group.addTask { _ = try await client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest()).get() }
      }
      try await group.waitForAll()
    }
    let requests = server.journal.snapshot.requests
    XCTAssertEqual(requests.count, 1000)
    XCTAssertEqual(Set(requests.map { $0.headers["x-request-id"] }).count, 1000)
    XCTAssertEqual(Set(requests.map { $0.headers.first("authorization") }), ["Bearer t1"])
    XCTAssertEqual(tokens.value.count, 1)
    // The first hundred, and each hundredth behind them.
    XCTAssertEqual(self.recorder.lines.count, 109)

    // A hundred of the same are one.
    let values = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<100 {
        group.addTask { try await client.unary(TestMethods.lookup, .with { $0.key = "k" }).get().value }
      }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    XCTAssertEqual(values.count, 1)
    XCTAssertEqual(server.requests.count, 1001)

    // A method that fails and fails is left in peace.
    let failing = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
      path: "/flaky.Service/Fail",
      streamType: .unary
    )
    server.failAtFirst(failing.path, failures: .max)
    var errors: [ConnectError?] = []
    for _ in 0..<8 { errors.append(await client.unary(failing, .init()).error) }
    XCTAssertEqual(errors.map(\.?.httpStatus), [503, 503, 503, 503, 503, nil, nil, nil])
    XCTAssertEqual(errors.compactMap(\.?.code), Array(repeating: .unavailable, count: 8))
    XCTAssertEqual(server.requests.count, 1006)
    let good = await client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest()).code
    XCTAssertEqual(good, .ok)
    XCTAssertEqual(limiter.runningCount, 0)
    await httpClient.shutdown()
    await server.stop()
  }
}
