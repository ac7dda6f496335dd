import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// What is to come from the cache alone never goes to the network.
final class CacheOnlyTests: XCTestCase {
  private func values(
    _ client: ProtocolClient,
    _ method: MethodSpec<LookupRequest, LookupResponse> = TestMethods.lookup,
    options: CallOptions = CallOptions()
  ) async -> [String] {
    var values: [String] = []
    for await response in client.cacheAndNetwork(method, .with { $0.key = "k" }, options: options) {
      values.append(response.message?.value ?? "\(response.code)")
    }
    return values
  }

  /// One that may have side effects has them once.
  func testCacheAndNetworkOfAMethodWithSideEffects() async {
    for level in [IdempotencyLevel.unknown, .idempotent] {
      let scene = CacheScene()
      let method = MethodSpec<LookupRequest, LookupResponse>(
        path: TestMethods.lookup.path,
        streamType: .unary,
        idempotencyLevel: level
      )
      let values = await self.values(scene.client, method)
      XCTAssertEqual(values, ["k 1"])
      XCTAssertEqual(scene.requestCount, 1)
    }
  }

  func testCacheAndNetworkOfACallThatIsNotForTheCache() async throws {
    for headers in [["cache-control": ["no-store"]], ["if-none-match": ["\"7\""]]] as [Headers] {
      let scene = CacheScene()
      _ = try await scene.value()
      let values = await self.values(scene.client, options: CallOptions(headers: headers))
      XCTAssertEqual(values, ["k 2"])
      XCTAssertEqual(scene.requestCount, 2)
    }
  }

  func testCacheAndNetworkWithoutACache() async {
    let scene = CacheScene()
    let client = ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(host: "https://api.test")
    )
    let values = await self.values(client)
    XCTAssertEqual(values, ["k 1"])
    XCTAssertEqual(scene.requestCount, 1)
  }

  func testCacheOnlyOfACallThatIsNotForTheCache() async throws {
    let scene = CacheScene()
    _ = try await scene.value()
    for headers in [["cache-control": ["no-store"]], ["if-none-match": ["\"7\""]]] as [Headers] {
      let code = await scene.lookup("k", .cacheOnly, headers: headers).code
      XCTAssertEqual(code, .failedPrecondition)
    }
    XCTAssertEqual(scene.requestCount, 1)
  }

  func testCacheOnlyOfAMethodWithSideEffects() async throws {
    let scene = CacheScene(.init(policy: .cacheOnly))
    let count = Observed(0)
    scene.transport.onUnary(TestMethods.echo) { _, _ in
      count.update { $0 += 1 }
      return .init()
    }
    let code = await scene.client.unary(TestMethods.echo, .init(), options: .cached(.cacheOnly)).code
    XCTAssertEqual(code, .failedPrecondition)
    XCTAssertEqual(count.value, 0)
    // The cache's own policy is for the calls that it concerns.
    _ = try await scene.client.unary(TestMethods.echo, .init()).get()
    XCTAssertEqual(count.value, 1)
  }
}
