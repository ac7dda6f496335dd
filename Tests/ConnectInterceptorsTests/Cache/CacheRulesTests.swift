import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// What servers and callers say to a cache: how long a response is fresh, who may have it, whether it has changed.
final class CacheRulesTests: XCTestCase {
  // MARK: Cache-Control

  func testCacheControlOfResponses() async throws {
    // How long a response is fresh: the greatest number of seconds at which it is still given.
    let cases: [(Headers, fresh: Int, expired: Int)] = [
      ([:], 59, 60),
      (["cache-control": ["max-age=5"]], 4, 5),
      (["cache-control": ["public, MAX-AGE=\"5\""]], 4, 5),
      (["cache-control": ["max-age=5", "max-age=50"]], 4, 5),
      (["cache-control": ["max-age=99999999999999999999"]], 86399, 86400),
      (["cache-control": ["max-age=5"], "age": ["2"]], 2, 3),
      (["cache-control": ["foo=\"a, no-store\", max-age=5"]], 4, 5),
      (["cache-control": ["max-age=0"]], -1, 0),
      (["cache-control": ["max-age=soon"]], -1, 0),
      (["cache-control": ["no-store"]], -1, 0),
      (["cache-control": ["max-age=5, No-Cache"]], -1, 0),
      (["cache-control": ["no-cache=\"set-cookie\""]], -1, 0),
      (["cache-control": ["private, max-age=5"]], -1, 0),
      (["vary": ["*"]], -1, 0),
    ]
    for (headers, fresh, expired) in cases {
      for seconds in [fresh, expired] where seconds >= 0 {
        let scene = CacheScene()
        scene.headers.update { $0 = headers }
        _ = try await scene.value()
        scene.executor.advance(by: .seconds(seconds))
        let value = try await scene.value()
        XCTAssertEqual(value, seconds == fresh ? "k 1" : "k 2", "\(headers) after \(seconds) s")
      }
    }
  }

  func testPrivateResponsesNeedAKeyThatTellsUsersApart() async throws {
    let scene = CacheScene()
    scene.headers.update { $0 = ["cache-control": ["private, max-age=60"]] }
    for (headers, partition) in [(["authorization": ["a"]], nil), ([:], "user 1")] as [(Headers, String?)] {
      let first = try await scene.value(headers: headers, partition: partition)
      let second = try await scene.value(headers: headers, partition: partition)
      XCTAssertEqual(first, second)
    }
    // It may be the cookie of a balancer, which other users have, too.
    let first = try await scene.value(headers: ["cookie": ["server=a"]])
    let second = try await scene.value(headers: ["cookie": ["server=a"]])
    XCTAssertNotEqual(first, second)
  }

  func testResponseThatMustNotBeStoredReplacesAnOlderOne() async throws {
    let scene = CacheScene()
    _ = try await scene.value()
    scene.headers.update { $0 = ["cache-control": ["no-store"]] }
    _ = try await scene.value("k", .networkOnly)
    let value = try await scene.value()
    XCTAssertEqual(value, "k 3")
  }

  func testCacheControlOfRequests() async throws {
    let scene = CacheScene(.init(staleOnError: .seconds(100)))
    _ = try await scene.value()
    scene.executor.advance(by: .seconds(10))
    let noStore: Headers = ["cache-control": ["no-store"]]
    let bypassing = try await scene.value(headers: noStore)
    XCTAssertEqual(bypassing, "k 2")
    let unchanged = try await scene.value()
    XCTAssertEqual(unchanged, "k 1")
    let young = try await scene.value(headers: ["cache-control": ["max-age=9"]])
    XCTAssertEqual(young, "k 3")
    let anew = try await scene.value(headers: ["cache-control": ["no-cache"]])
    XCTAssertEqual(anew, "k 4")
    let stored = try await scene.value()
    XCTAssertEqual(stored, "k 4")
    scene.failure.update { $0 = ConnectError(code: .unavailable) }
    let failed = await scene.lookup(headers: ["cache-control": ["no-cache"]])
    XCTAssertEqual(failed.code, .unavailable)
  }

  func testTimeToLiveOfZeroStoresOnlyWhatTheServerAllows() async throws {
    let scene = CacheScene(.init(timeToLive: .zero))
    _ = try await scene.value()
    scene.headers.update { $0 = ["cache-control": ["max-age=5"]] }
    let second = try await scene.value()
    XCTAssertEqual(second, "k 2")
    let third = try await scene.value()
    XCTAssertEqual(third, "k 2")
  }

  // MARK: Revalidation

  func testNotModified() async throws {
    let scene = CacheScene()
    let count = Observed(0)
    scene.transport.onRaw(TestMethods.lookup.path) { exchange in
      count.update { $0 += 1 }
      let isSame = exchange.head.headers["if-none-match"] == ["\"v1\""]
      let headers: Headers = [
        "content-type": ["application/proto"], "etag": ["\"v1\""], "cache-control": ["max-age=10"],
        "x-count": ["\(count.value)"],
      ]
      guard !isSame else {
        return try await exchange.respond(status: 304, headers: headers, body: ByteBuffer())
      }
      let bytes: [UInt8] = try LookupResponse.with { $0.value = "v1" }.serializedBytes()
      try await exchange.respond(headers: headers, body: ByteBuffer(bytes: bytes))
    }
    _ = try await scene.value()
    for round in 2...4 {
      scene.executor.advance(by: .seconds(10))
      let revalidated = await scene.lookup()
      XCTAssertEqual(revalidated.message?.value, "v1")
      XCTAssertEqual(CacheStatus(revalidated.headers), .revalidated)
      XCTAssertEqual(revalidated.headers["x-count"], ["\(round)"])
      scene.executor.advance(by: .seconds(9))
      let hit = await scene.lookup()
      XCTAssertEqual(hit.message?.value, "v1")
      XCTAssertEqual(CacheStatus(hit.headers), .hit)
      XCTAssertEqual(hit.headers["age"], ["9"])
      XCTAssertEqual(count.value, round)
    }
    // A caller that asks by itself sees the server's answer.
    let own = await scene.lookup(headers: ["if-none-match": ["\"v1\""]])
    XCTAssertEqual(own.error?.httpStatus, 304)
    // Over networkFirst, and with a caller that wants to have it checked.
    let first = await scene.lookup("k", .networkFirst)
    XCTAssertEqual(CacheStatus(first.headers), .revalidated)
    let checked = await scene.lookup(headers: ["cache-control": ["no-cache"]])
    XCTAssertEqual(CacheStatus(checked.headers), .revalidated)
  }

  func testPOSTDoesNotAsk() async throws {
    let scene = CacheScene(unaryGET: .disabled)
    scene.headers.update { $0 = ["etag": ["\"v1\""], "cache-control": ["max-age=10"]] }
    _ = try await scene.value()
    scene.executor.advance(by: .seconds(10))
    _ = try await scene.value()
    XCTAssertEqual(scene.requests.value.map { $0.headers.contains("if-none-match") }, [false, false])
  }
}
