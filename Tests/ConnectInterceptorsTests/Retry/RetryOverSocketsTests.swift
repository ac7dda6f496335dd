import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import LoopbackServer
import Synchronization
import XCTest

/// Retries against a real server.
final class RetryOverSocketsTests: XCTestCase {
  private typealias Request = Connect_Test_V1_EchoRequest

  private static let get = MethodSpec<Request, Request>(
    path: "/flaky.Service/Get",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )
  private static let list = MethodSpec<Request, Request>(
    path: "/flaky.Service/List",
    streamType: .serverStream,
    idempotencyLevel: .noSideEffects
  )
  private static let quick = Backoff(base: .milliseconds(1))

  func testUnaryCallsAndStreams() async throws {
    let budget = RetryBudget(maximumTokens: 100)
    let policy = RetryPolicy(backoff: Self.quick)
    try await SocketTest.run([{ _ in RetryInterceptor(policy: policy, budget: budget) }]) {
      server,
      client,
      setting in
      server.failAtFirst(Self.get.path, failures: 2, headers: ["retry-after": "0"])
      server.failAtFirst(Self.list.path, failures: 3)
      let response = await client.unary(Self.get, .text("x"))
      XCTAssertEqual(response.message?.payload.text, "x", "\(setting): \(response)")
      let stream = try await client.serverStream(Self.list, .text("y")).results.collected()
      XCTAssertEqual(try stream.requireMessages().map(\.payload.text), ["y"], "\(setting)")
      XCTAssertEqual(
        server.requests.map { $0.headers.first("grpc-previous-rpc-attempts") },
        [nil, "1", "2", nil, "1", "2", "3"],
        "\(setting)"
      )
    }
  }

  /// Drops everything, or fails everything.
  private struct Refusing: LoadBalancer, Picker {
    let result: PickResult
    let picks: Picks

    func pick(_ call: borrowing PickContext) -> PickResult {
      self.picks.count.add(1, ordering: .relaxed)
      return self.result
    }

    mutating func update(
      _ endpoints: [BalancedEndpoint],
      in context: inout BalancerContext
    ) -> BalancerDecision {
      BalancerDecision(state: .ready, picker: self)
    }
  }

  private final class Picks: Sendable {
    let count = Atomic(0)
  }

  /// What a balancing policy drops is picked once. What it fails is tried again.
  func testDroppedCalls() async throws {
    for (result, count) in [(PickResult.drop(category: "lottery"), 1), (.fail("none"), 3)] {
      let picks = Picks()
      var configuration = NIOHTTPClient.Configuration.defaults
      configuration.channel.resolver = StaticResolver([Endpoint("127.0.0.1:1")].compactMap { $0 })
      configuration.channel.balancing = BalancingPolicy(name: "refusing") {
        Refusing(result: result, picks: picks)
      }
      let httpClient = NIOHTTPClient(configuration: configuration)
      let policy = RetryPolicy(maximumAttempts: 3, backoff: Self.quick)
      let budget = RetryBudget(maximumTokens: 100)
      let client = ProtocolClient(
        httpClient: httpClient,
        config: ProtocolClientConfig(
          host: "http://fleet.test",
          interceptors: [{ _ in RetryInterceptor(policy: policy, budget: budget) }]
        )
      )
      let response = await client.unary(Self.get, .text("x"))
      XCTAssertEqual(response.code, .unavailable)
      XCTAssertEqual(picks.count.load(ordering: .relaxed), count, "\(response)")
      await httpClient.shutdown()
    }
  }

  func testTheServerSaysNo() async throws {
    let budget = RetryBudget(maximumTokens: 100)
    try await SocketTest.run([{ _ in RetryInterceptor(budget: budget) }]) { server, client, setting in
      server.failAtFirst(Self.get.path, failures: 1, headers: ["grpc-retry-pushback-ms": "-1"])
      let response = await client.unary(Self.get, .text("x"))
      XCTAssertEqual(response.code, .unavailable, "\(setting)")
      XCTAssertEqual(response.error?.httpStatus, 503, "\(setting)")
      XCTAssertEqual(server.requests.count, 1, "\(setting)")
    }
  }

  func testALostConnection() async throws {
    let budget = RetryBudget(maximumTokens: 100)
    let policy = RetryPolicy(backoff: Self.quick)
    try await SocketTest.run([{ _ in RetryInterceptor(policy: policy, budget: budget) }]) {
      server,
      client,
      setting in
      server.onRaw(Self.get.path) { request, responder in
        _ = try await request.body()
        await responder.closeConnection()
      }
      let response = await client.unary(Self.get, .text("x"))
      XCTAssertEqual(response.code, .unavailable, "\(setting)")
      XCTAssertEqual(server.requests.count, 4, "\(setting)")
    }
  }

  func testAdaptersAndRetriers() async throws {
    let adapter = Adapter { request, _ in
      await Task.yield()
      var request = request
      request.headers["x-client-version"] = ["7"]
      return request
    }
    let retrier = Retrier { attempt in
      await Task.yield()
      return attempt.error.httpStatus == 503 && attempt.number < 3 ? .retry : .doNotRetry
    }
    try await SocketTest.run([{ _ in RequestInterceptor(adapters: [adapter], retriers: [retrier]) }]) {
      server,
      client,
      setting in
      server.failAtFirst(Self.get.path, failures: 2)
      server.failAtFirst(Self.list.path, failures: 1)
      let response = await client.unary(Self.get, .text("x"))
      XCTAssertEqual(response.message?.payload.text, "x", "\(setting): \(response)")
      let stream = try await client.serverStream(Self.list, .text("y")).results.collected()
      XCTAssertEqual(try stream.requireMessages().map(\.payload.text), ["y"], "\(setting)")
      let versions = server.requests.map { $0.headers.first("x-client-version") }
      XCTAssertEqual(versions, Array(repeating: "7", count: 5), "\(setting)")
    }
  }

  /// A thousand calls whose adapters suspend and whose first attempts fail.
  func testAThousandCallsAtOnce() async throws {
    let budget = RetryBudget(maximumTokens: 10_000)
    let adapter = Adapter { request, _ in
      await Task.yield()
      return request
    }
    let interceptors: [InterceptorFactory] = [
      { _ in RetryInterceptor(policy: RetryPolicy(backoff: Self.quick), budget: budget) },
      { _ in RequestInterceptor(adapters: [adapter]) },
    ]
    try await SocketTest.run(over: [SocketTest.settings[1]], interceptors) { server, client, _ in
      server.onRaw(Self.get.path) { request, responder in
        let body = try await request.body()
        guard request.record.headers.first("grpc-previous-rpc-attempts") != nil else {
          return try await responder.respond(status: 503, text: "later")
        }
        try await responder.respond(headers: ["content-type": "application/proto"], body: body)
      }
      let codes = await withTaskGroup(of: Code.self) { group in
        for number in 0..<1000 {
          group.addTask { await client.unary(Self.get, .text("\(number)")).code }
        }
        return await group.reduce(into: [Code: Int]()) { $0[$1, default: 0] += 1 }
      }
      XCTAssertEqual(codes, [.ok: 1000])
      XCTAssertEqual(server.requests.count, 2000)
      XCTAssertEqual(budget.tokens, 9100, accuracy: 0.01)
    }
  }
}
