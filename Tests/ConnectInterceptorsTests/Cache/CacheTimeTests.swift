import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// What is older than what somebody has just written, or knows, is not given to them.
final class CacheTimeTests: XCTestCase {
  /// A call under way when something is written says nothing to those that want to read it.
  func testReadingWhatWasJustWritten() async throws {
    for control in ["no-cache", "max-age=0", "max-age=5"] {
      let scene = CacheScene()
      scene.isOpen.update { $0 = false }
      let calls = scene.start(1)
      scene.executor.advance(by: .seconds(5))
      calls.start(scene.client, "k", .cached(headers: ["cache-control": [control]]))
      scene.executor.runUntilIdle()
      XCTAssertEqual(scene.requestCount, 2, control)
      scene.isOpen.update { $0 = true }
      let values = await calls.wait()
      XCTAssertEqual(values, ["k 1", "k 2"], control)
    }
  }

  func testCallThatIsYoungEnoughIsJoined() async throws {
    let scene = CacheScene()
    scene.isOpen.update { $0 = false }
    let calls = scene.start(1)
    scene.executor.advance(by: .seconds(5))
    calls.start(scene.client, "k", .cached(headers: ["cache-control": ["max-age=6"]]))
    scene.executor.runUntilIdle()
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, ["k 1", "k 1"])
  }

  /// What was asked for before something was forgotten is not stored after it, nor given to later calls.
  func testForgettingWhileACallIsUnderWay() async throws {
    for removesAll in [true, false] {
      let scene = CacheScene()
      scene.isOpen.update { $0 = false }
      let calls = scene.start(2)
      if removesAll {
        scene.cache.removeAll()
      } else {
        let request = HTTPRequest(
          url: RequestURL(
            origin: Origin(scheme: .https, host: "api.test", port: 443),
            path: TestMethods.lookup.path
          ),
          contentType: "application/proto",
          message: ByteBuffer(bytes: try LookupRequest.with { $0.key = "k" }.serializedBytes() as [UInt8])
        )
        scene.cache.remove(for: request)
      }
      let later = scene.start(2)
      XCTAssertEqual(scene.requestCount, 2, "\(removesAll)")
      scene.isOpen.update { $0 = true }
      let values = await calls.wait()
      XCTAssertEqual(values, ["k 1", "k 1"])
      let laterValues = await later.wait()
      XCTAssertEqual(laterValues, ["k 2", "k 2"])
      let stored = try await scene.value()
      XCTAssertEqual(stored, "k 2")
    }
  }

  func testForgettingBeforeTheOnlyCallEnds() async throws {
    let scene = CacheScene()
    scene.isOpen.update { $0 = false }
    let calls = scene.start(1)
    scene.cache.removeAll()
    scene.isOpen.update { $0 = true }
    _ = await calls.wait()
    let value = try await scene.value()
    XCTAssertEqual(value, "k 2")
  }

  /// A slow response is as old as its request.
  func testSlowResponseDoesNotReplaceANewerOne() async throws {
    let scene = CacheScene()
    scene.isOpen.update { $0 = false }
    let slow = scene.start(1)
    scene.executor.advance(by: .seconds(1))
    scene.transport.onUnary(TestMethods.lookup) { _, _ in .with { $0.value = "newer" } }
    let newer = try await scene.value("k", .networkOnly)
    XCTAssertEqual(newer, "newer")
    scene.isOpen.update { $0 = true }
    let values = await slow.wait()
    XCTAssertEqual(values, ["k 1"])
    let stored = try await scene.value()
    XCTAssertEqual(stored, "newer")
  }

  /// By how old the servers say they are, they are not compared: another cache on the way may say what it likes.
  func testLaterResponseThatIsOlderReplacesAnEarlierOne() async throws {
    let scene = CacheScene(.init(timeToLive: .seconds(60)))
    _ = try await scene.value()
    scene.executor.advance(by: .seconds(10))
    scene.headers.update { $0 = ["age": ["30"]] }
    _ = try await scene.value("k", .networkOnly)
    let hit = await scene.lookup()
    XCTAssertEqual(hit.message?.value, "k 2")
    XCTAssertEqual(hit.headers["age"], ["30"])
  }

  func testTheTimeOfTheResponseCounts() async throws {
    let scene = CacheScene(.init(timeToLive: .seconds(10)))
    scene.isOpen.update { $0 = false }
    let calls = scene.start(1)
    scene.executor.advance(by: .seconds(4))
    scene.isOpen.update { $0 = true }
    _ = await calls.wait()
    let hit = await scene.lookup()
    XCTAssertEqual(hit.headers["age"], ["4"])
    scene.executor.advance(by: .seconds(6))
    let expired = try await scene.value()
    XCTAssertEqual(expired, "k 2")
  }

  /// An older answer than its caller wants is given to nobody where nothing stale is to be given.
  func testCallerThatWantsNothingOlder() async throws {
    let cases: [(staleOnError: Duration, control: String, Code)] = [
      (.zero, "max-age=5", .unavailable), (.zero, "max-age=60", .ok),
      (.seconds(20), "max-age=5", .unavailable),
      (.seconds(30), "max-age=5", .ok), (.zero, "max-age=0", .unavailable),
    ]
    for (staleOnError, control, expected) in cases {
      let scene = CacheScene(
        .init(policy: .networkFirst, timeToLive: .seconds(60), staleOnError: staleOnError)
      )
      _ = try await scene.value()
      scene.failure.update { $0 = ConnectError(code: .unavailable) }
      scene.executor.advance(by: .seconds(30))
      let code = await scene.lookup(headers: ["cache-control": [control]]).code
      XCTAssertEqual(code, expected, "\(staleOnError) \(control)")
    }
  }

  // MARK: Attempts

  /// The others wait on while the leader makes another attempt, and none of them goes in its place.
  func testLeaderThatIsRetriedInside() async throws {
    let budget = RetryBudget(maximumTokens: 100)
    let scene = CacheScene()
    let policy = RetryPolicy(backoff: Backoff(base: .seconds(1), maximum: .seconds(1)))
    let options = CallOptions(interceptors: [{ _ in RetryInterceptor(policy: policy, budget: budget) }])
    scene.failure.update { $0 = ConnectError(code: .unavailable) }
    scene.isOpen.update { $0 = false }
    let calls = scene.start(10, options: options)
    scene.isOpen.update { $0 = true }
    try await scene.executor.wait { budget.tokens < 100 }
    scene.failure.update { $0 = nil }
    let values = try await scene.executor.lettingTimePass { await calls.wait() }
    XCTAssertEqual(values, Array(repeating: "k 2", count: 10))
    XCTAssertEqual(scene.requestCount, 2)
  }

  /// A leader that gives up after its attempts hands nothing over: what it brings is for all.
  func testLeaderWhoseRetriesFail() async throws {
    let budget = RetryBudget(maximumTokens: 100)
    let scene = CacheScene()
    let policy = RetryPolicy(maximumAttempts: 3)
    let options = CallOptions(interceptors: [{ _ in RetryInterceptor(policy: policy, budget: budget) }])
    scene.failure.update { $0 = ConnectError(code: .unavailable) }
    scene.isOpen.update { $0 = false }
    let calls = scene.start(10, options: options)
    scene.isOpen.update { $0 = true }
    let values = try await scene.executor.lettingTimePass { await calls.wait() }
    XCTAssertEqual(values, Array(repeating: "unavailable", count: 10))
    XCTAssertEqual(scene.requestCount, 3)
  }
}
