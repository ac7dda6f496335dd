import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// What users' rules say about typed responses, together with HTTP's rules.
final class MessageRulesTests: XCTestCase {
  // MARK: Stale

  func testIsStale() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let scene = CacheScene.ruled(networkProtocol: networkProtocol) { response, age in
        response.message?.value.hasPrefix("a") == true && age >= .seconds(10)
      }
      _ = try await (scene.value("a"), scene.value("b"))
      scene.executor.advance(by: .seconds(9))
      let hits = try await (scene.value("a"), scene.value("b"))
      XCTAssertEqual("\(hits)", #"("a 1", "b 2")"#)
      scene.executor.advance(by: .seconds(1))
      let stale = try await (scene.value("a"), scene.value("b"))
      XCTAssertEqual("\(stale)", #"("a 3", "b 2")"#)
      // What has taken its place is fresh.
      let fresh = await scene.lookup("a")
      XCTAssertEqual(fresh.message?.value, "a 3")
      XCTAssertEqual(CacheStatus(fresh.headers), .hit)
      // HTTP's rules hold as well.
      scene.executor.advance(by: .seconds(50))
      let expired = try await scene.value("b")
      XCTAssertEqual(expired, "b 4", "\(networkProtocol)")
    }
  }

  func testTheResponseThatRulesSee() async throws {
    let seen = Observed<[String]>([])
    let scene = CacheScene.ruled(
      isStale: { response, age in
        seen.update {
          $0.append("stale? \(response.message?.value ?? "") \(response.headers["x-head"]) \(age)")
        }
        return false
      },
      shouldStore: { response, age in
        seen.update {
          $0.append("store? \(response.message?.value ?? "") \(response.trailers["x-tail"]) \(age)")
        }
        return true
      }
    )
    scene.transport.onUnary(TestMethods.lookup) { _, context in
      context.responseHeaders["x-head"] = ["1"]
      context.responseHeaders["age"] = ["5"]
      context.responseTrailers["x-tail"] = ["2"]
      return .with { $0.value = "v" }
    }
    _ = try await scene.value()
    XCTAssertTrue(seen.value.contains(#"store? v ["2"] 5.0 seconds"#), "\(seen.value)")
    seen.update { $0 = [] }
    scene.executor.advance(by: .seconds(3))
    _ = try await scene.value()
    XCTAssertEqual(seen.value, [#"stale? v ["1"] 8.0 seconds"#])
  }

  /// The closure is not asked where HTTP says no.
  func testHTTPDecidesFirst() async throws {
    let asked = Observed(0)
    let scene = CacheScene.ruled(
      isStale: { _, _ in
        asked.update { $0 += 1 }
        return false
      },
      shouldStore: { _, _ in
        asked.update { $0 += 1 }
        return true
      }
    )
    scene.headers.update { $0 = ["cache-control": ["no-store"]] }
    let values = [try await scene.value(), try await scene.value()]
    XCTAssertEqual(values, ["k 1", "k 2"])
    XCTAssertEqual(asked.value, 0)
  }

  func testCacheOnlyAndCacheAndNetwork() async throws {
    let isStale = Observed(false)
    let scene = CacheScene.ruled { _, _ in isStale.value }
    _ = try await scene.value()
    func both() async -> [String] {
      let request = LookupRequest.with { $0.key = "k" }
      var values: [String] = []
      for await response in scene.client.cacheAndNetwork(TestMethods.lookup, request) {
        values.append(response.message?.value ?? "\(response.code)")
      }
      return values
    }
    let fresh = await both()
    XCTAssertEqual(fresh, ["k 1", "k 2"])
    let hit = try await scene.value("k", .cacheOnly)
    XCTAssertEqual(hit, "k 2")
    isStale.update { $0 = true }
    let stale = await both()
    XCTAssertEqual(stale, ["k 3"])
    let miss = await scene.lookup("k", .cacheOnly)
    XCTAssertEqual(miss.code, .failedPrecondition)
    XCTAssertEqual(scene.requestCount, 3)
  }

  /// What is stale by a user's rule stands in only where HTTP and the configuration let stale responses do so.
  func testStaleOnError() async throws {
    let cases: [(staleOnError: Duration, control: String, isStale: Bool, CachePolicy, Code)] = [
      (.zero, "max-age=60", true, .cacheFirst, .unavailable),
      (.seconds(100), "max-age=60", true, .cacheFirst, .ok),
      (.seconds(100), "max-age=60, must-revalidate", true, .cacheFirst, .unavailable),
      (.seconds(100), "max-age=60, stale-if-error=0", true, .cacheFirst, .unavailable),
      (.zero, "max-age=60", true, .networkFirst, .unavailable),
      (.zero, "max-age=60", false, .networkFirst, .ok),
      (.seconds(100), "max-age=60", true, .networkFirst, .ok),
      // Expired by HTTP's rules, too.
      (.seconds(100), "max-age=10", true, .cacheFirst, .ok),
      (.seconds(15), "max-age=10", true, .cacheFirst, .unavailable),
    ]
    for (staleOnError, control, isStale, policy, expected) in cases {
      let scene = CacheScene.ruled(.init(policy: policy, staleOnError: staleOnError)) { _, age in
        isStale && age > .zero
      }
      scene.headers.update { $0 = ["cache-control": [control]] }
      _ = try await scene.value()
      scene.failure.update { $0 = ConnectError(code: .unavailable) }
      scene.executor.advance(by: .seconds(30))
      let response = await scene.lookup()
      XCTAssertEqual(response.code, expected, "\(staleOnError) \(control) \(policy)")
      if expected == .ok { XCTAssertEqual(CacheStatus(response.headers), .stale) }
    }
  }

  /// Confirmed by the server, it is as good as new; and the rules are asked about it again.
  func testNotModified() async throws {
    let refuses = Observed(false)
    let scene = CacheScene.ruled(
      isStale: { _, age in age >= .seconds(5) },
      shouldStore: { response, _ in !(refuses.value && response.headers["x-count"] == ["3"]) }
    )
    let count = Observed(0)
    scene.transport.onRaw(TestMethods.lookup.path) { exchange in
      count.update { $0 += 1 }
      let headers: Headers = [
        "content-type": ["application/proto"], "etag": ["\"v1\""], "cache-control": ["max-age=60"],
        "x-count": ["\(count.value)"],
      ]
      guard exchange.head.headers["if-none-match"] != ["\"v1\""] else {
        return try await exchange.respond(status: 304, headers: headers, body: ByteBuffer())
      }
      let bytes: [UInt8] = try LookupResponse.with { $0.value = "v" }.serializedBytes()
      try await exchange.respond(headers: headers, body: ByteBuffer(bytes: bytes))
    }
    func status() async -> CacheStatus? { CacheStatus(await scene.lookup().headers) }
    var statuses = [await status()]
    scene.executor.advance(by: .seconds(4))
    statuses.append(await status())
    scene.executor.advance(by: .seconds(1))
    statuses.append(await status())
    scene.executor.advance(by: .seconds(4))
    statuses.append(await status())
    XCTAssertEqual(statuses, [nil, .hit, .revalidated, .hit])
    // What is refused when it is confirmed goes.
    refuses.update { $0 = true }
    scene.executor.advance(by: .seconds(1))
    statuses = [await status(), await status()]
    XCTAssertEqual(statuses, [.revalidated, nil])
    XCTAssertEqual(count.value, 4)
  }

  // MARK: Storing

  func testShouldStore() async throws {
    let scene = CacheScene.ruled(shouldStore: { response, _ in response.message?.value != "k 1" })
    let values = [
      try await scene.value(), try await scene.value(), try await scene.value(),
    ]
    XCTAssertEqual(values, ["k 1", "k 2", "k 2"])
  }

  /// What the server says last counts: an older response does not come back in place of one that is not stored.
  func testWhatIsRefusedTakesTheOlderOneWithIt() async throws {
    let storage = MemoryCacheStorage()
    let scene = CacheScene.ruled(
      storage: storage,
      shouldStore: { response, _ in response.message?.value != "k 2" }
    )
    _ = try await (scene.value("k"), scene.value("k", .networkOnly))
    XCTAssertEqual(storage.count, 0)
    let value = try await scene.value()
    XCTAssertEqual(value, "k 3")
    XCTAssertEqual(storage.count, 1)
  }

  func testVariantsGoOneByOne() async throws {
    let scene = CacheScene.ruled(
      .init(keyHeaders: .all(except: ["x-language"])),
      shouldStore: { response, _ in response.message?.value != "k 3" }
    )
    scene.headers.update { $0 = ["vary": ["x-language"]] }
    func value(_ language: String, _ policy: CachePolicy? = nil) async throws -> String {
      try await scene.value("k", policy, headers: ["x-language": [language]])
    }
    _ = try await (value("de"), value("fr"))
    // The third is refused: that of its own language goes.
    _ = try await value("fr", .networkOnly)
    let values = try await [value("de"), value("fr")]
    XCTAssertEqual(values, ["k 1", "k 4"])
  }

  func testAResponseThatDoesNotDecode() async throws {
    let storage = MemoryCacheStorage()
    let asked = Observed(0)
    let scene = CacheScene.ruled(
      storage: storage,
      isStale: { _, _ in
        asked.update { $0 += 1 }
        return false
      },
      shouldStore: { _, _ in
        asked.update { $0 += 1 }
        return true
      }
    )
    scene.transport.onRaw(TestMethods.lookup.path) { exchange in
      try await exchange.respond(
        headers: ["content-type": ["application/proto"]],
        body: ByteBuffer(bytes: [7, 7])
      )
    }
    for _ in 0..<2 {
      let response = await scene.lookup()
      XCTAssertEqual(response.code, .internalError)
    }
    XCTAssertEqual(storage.count, 0)
    XCTAssertEqual(asked.value, 0)
  }

  // MARK: Calls in flight

  func testWhatIsNotToBeGivenIsNotShared() async throws {
    let cases: [(isStale: Bool, shouldStore: Bool, requests: Int)] = [
      (false, true, 1), (true, true, 3), (false, false, 3), (true, false, 3),
    ]
    for (isStale, shouldStore, requests) in cases {
      let scene = CacheScene.ruled(isStale: { _, _ in isStale }, shouldStore: { _, _ in shouldStore })
      scene.isOpen.update { $0 = false }
      let calls = scene.start(3)
      XCTAssertEqual(scene.requestCount, 1)
      scene.isOpen.update { $0 = true }
      let values = await calls.wait()
      XCTAssertEqual(Set(values).count, requests, "\(values)")
      XCTAssertEqual(scene.requestCount, requests)
    }
  }

  /// A server that is slow gets no more calls for it: the time in flight is no age.
  func testSlowServer() async throws {
    let scene = CacheScene.ruled(isStale: { _, age in age > .seconds(5) })
    scene.isOpen.update { $0 = false }
    let calls = scene.start(5)
    scene.executor.advance(by: .seconds(30))
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, Array(repeating: "k 1", count: 5))
    // From the cache it is 30 s old.
    let later = try await scene.value()
    XCTAssertEqual(later, "k 2")
  }
}
