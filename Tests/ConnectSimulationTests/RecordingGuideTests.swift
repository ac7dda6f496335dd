import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectSimulation
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import Synchronization
import XCTest

/// The guide "From a production recording to a test", from its first step to its last.
final class RecordingGuideTests: XCTestCase {
  private static let configuration = Cassette.Configuration(
    messages: .of(TestMethods.lookup),
    redaction: .init(fields: ["seen.path"])
  )
  private static let request = Connect_Test_V1_LookupRequest.with { $0.key = "hat" }

  private static func config(_ policy: RetryPolicy?) -> ProtocolClientConfig {
    let budget = RetryBudget()
    return ProtocolClientConfig(
      host: "https://prices.internal",
      interceptors: policy.map { policy in [{ _ in RetryInterceptor(policy: policy, budget: budget) }] }
        ?? [],
      timeout: .seconds(10)
    )
  }

  /// What happens in production: the first call takes three seconds and fails, the second one succeeds.
  private func record() async throws -> String {
    let executor = VirtualExecutor()
    let production = InMemoryTransport(executor: executor)
    var expected = ["the backend restarts", "12.50 for hat"]
    let count = Counter()
    production.onUnary(TestMethods.lookup) { request, context in
      guard count.next() == 1 else {
        return .with {
          $0.value = "12.50 for \(request.key)"
          $0.seen.path = "secret"
        }
      }
      try await context.sleep(for: .seconds(3))
      throw ConnectError(code: .unavailable, message: "the backend restarts")
    }
    let cassette = try Cassette(configuration: Self.configuration)
    let transport = try CassetteTransport(cassette, over: production, mode: .record)
    let client = ProtocolClient(httpClient: transport, config: Self.config(nil))
    var options = CallOptions()
    options.headers = ["authorization": ["Bearer 1234-5678"]]
    for _ in 0..<2 {
      let response = try await executor.lettingTimePass { [options] in
        await client.unary(TestMethods.lookup, Self.request, options: options)
      }
      XCTAssertEqual(response.message?.value ?? response.error?.message, expected.removeFirst())
    }
    try await transport.finish()
    return cassette.text
  }

  func testTheRecordingHasNoSecrets() async throws {
    let text = try await self.record()
    XCTAssertFalse(text.contains("1234-5678"))
    XCTAssertFalse(text.contains("secret"))
    XCTAssertTrue(text.contains("the backend restarts"))
  }

  /// The test that the recording becomes.
  func testAPriceSurvivesARestartOfItsBackend() async throws {
    let cassette = try Cassette(text: try await self.record(), configuration: Self.configuration)
    let executor = VirtualExecutor()
    let transport = try CassetteTransport(cassette, executor: executor, timing: .recorded)
    let client = ProtocolClient(httpClient: transport, config: Self.config(.defaults))

    let response = try await executor.lettingTimePass {
      await client.unary(TestMethods.lookup, Self.request)
    }
    XCTAssertEqual(response.message?.value, "12.50 for hat")
    XCTAssertGreaterThan(executor.now, .seconds(3))
    try await transport.finish()
  }

  /// Without retries it fails, as production did.
  func testWithoutRetriesItFails() async throws {
    let cassette = try Cassette(text: try await self.record(), configuration: Self.configuration)
    let executor = VirtualExecutor()
    let transport = try CassetteTransport(cassette, executor: executor, timing: .recorded)
    let client = ProtocolClient(httpClient: transport, config: Self.config(nil))
    let response = try await executor.lettingTimePass { await client.unary(TestMethods.lookup, Self.request) }
    XCTAssertEqual(response.error?.message, "the backend restarts")
    do {
      try await transport.finish()
      XCTFail("one recorded call was never asked for")
    } catch is ExpectationFailure {}
  }

  /// The same answers behind a server that is overloaded.
  func testTheSameAnswersFromASlowServer() async throws {
    let cluster = SimulatedCluster(seed: 1)
    let cassette = try Cassette(text: try await self.record(), configuration: Self.configuration)
    cluster.service("prices.internal:443", servers: 1) { server in
      server.latency = .constant(.seconds(2))
      server.play(cassette)
    }
    var policy = RetryPolicy.defaults
    policy.random = cluster.chance
    let client = ProtocolClient(httpClient: cluster.httpClient(), config: Self.config(policy))
    let report = await cluster.run(for: .milliseconds(1), load: .closed(callers: 1)) { _ in
      _ = try await client.unary(TestMethods.lookup, Self.request).get()
    }
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.succeeded, 1)
    XCTAssertEqual(report.requests, 2)
  }
}

private final class Counter: Sendable {
  private let count = Mutex(0)

  func next() -> Int {
    self.count.withLock { count in
      count += 1
      return count
    }
  }
}
