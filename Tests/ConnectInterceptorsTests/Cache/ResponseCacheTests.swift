import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// The policies, what is stored, and what is given in place of a network that failed.
final class ResponseCacheTests: XCTestCase {
  // MARK: Policies

  func testCacheFirst() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let scene = CacheScene(networkProtocol: networkProtocol)
      let values = [try await scene.value("a"), try await scene.value("a"), try await scene.value("b")]
      XCTAssertEqual(values, ["a 1", "a 1", "b 2"], "\(networkProtocol)")
      scene.executor.advance(by: .seconds(59))
      let hit = await scene.lookup("a")
      XCTAssertEqual(hit.message?.value, "a 1")
      XCTAssertEqual(hit.headers["age"], ["59"])
      XCTAssertEqual(CacheStatus(hit.headers), .hit)
      scene.executor.advance(by: .seconds(1))
      let miss = await scene.lookup("a")
      XCTAssertEqual(miss.message?.value, "a 3")
      XCTAssertNil(CacheStatus(miss.headers))
    }
  }

  func testNetworkFirst() async throws {
    let scene = CacheScene(.init(policy: .networkFirst))
    var values = [try await scene.value(), try await scene.value()]
    scene.failure.update { $0 = ConnectError(code: .unavailable) }
    let fallback = await scene.lookup()
    XCTAssertEqual(CacheStatus(fallback.headers), .stale)
    values.append(try fallback.get().value)
    XCTAssertEqual(values, ["k 1", "k 2", "k 2"])
    // What the server itself says is not hidden.
    scene.failure.update { $0 = ConnectError(code: .notFound) }
    let gone = await scene.lookup()
    XCTAssertEqual(gone.code, .notFound)
    scene.failure.update { $0 = ConnectError(code: .unavailable) }
    scene.executor.advance(by: .seconds(60))
    let expired = await scene.lookup()
    XCTAssertEqual(expired.code, .unavailable)
  }

  func testCacheOnly() async throws {
    let scene = CacheScene()
    let miss = await scene.lookup("k", .cacheOnly)
    XCTAssertEqual(miss.code, .failedPrecondition)
    XCTAssertEqual(scene.requestCount, 0)
    _ = try await scene.value()
    let hit = try await scene.value("k", .cacheOnly)
    XCTAssertEqual(hit, "k 1")
    scene.executor.advance(by: .seconds(60))
    let expired = await scene.lookup("k", .cacheOnly)
    XCTAssertEqual(expired.code, .failedPrecondition)
    XCTAssertEqual(scene.requestCount, 1)
  }

  func testNetworkOnly() async throws {
    let scene = CacheScene()
    _ = try await scene.value()
    let second = try await scene.value("k", .networkOnly)
    XCTAssertEqual(second, "k 2")
    let stored = try await scene.value()
    XCTAssertEqual(stored, "k 2")
    scene.failure.update { $0 = ConnectError(code: .unavailable) }
    let failed = await scene.lookup("k", .networkOnly)
    XCTAssertEqual(failed.code, .unavailable)
  }

  func testCacheAndNetwork() async throws {
    let scene = CacheScene()
    func values() async -> [String] {
      let request = LookupRequest.with { $0.key = "k" }
      var values: [String] = []
      for await response in scene.client.cacheAndNetwork(TestMethods.lookup, request) {
        values.append(response.message?.value ?? "\(response.code)")
      }
      return values
    }
    let first = await values()
    XCTAssertEqual(first, ["k 1"])
    let second = await values()
    XCTAssertEqual(second, ["k 1", "k 2"])
    scene.failure.update { $0 = ConnectError(code: .unavailable) }
    let third = await values()
    XCTAssertEqual(third, ["k 2", "unavailable"])
  }

  func testCacheAndNetworkIsCancelledWithItsConsumer() async throws {
    let scene = CacheScene()
    _ = try await scene.value()
    let (arrived, closed) = (Observed(false), Observed(false))
    scene.transport.onUnary(TestMethods.lookup) { _, context in
      arrived.update { $0 = true }
      await context.waitUntilClosed()
      closed.update { $0 = true }
      return .init()
    }
    for await response in scene.client.cacheAndNetwork(TestMethods.lookup, .with { $0.key = "k" }) {
      XCTAssertEqual(response.message?.value, "k 1")
      try await scene.executor.wait { arrived.value }
      break
    }
    try await scene.executor.wait { closed.value }
  }

  func testOtherMethodsAreNotTouched() async throws {
    let scene = CacheScene()
    let count = Observed(0)
    scene.transport.onUnary(TestMethods.echo) { request, _ in
      count.update { $0 += 1 }
      return .with { $0.payload = request.payload }
    }
    for _ in 0..<3 { _ = try await scene.client.unary(TestMethods.echo, .init()).get() }
    XCTAssertEqual(count.value, 3)
  }

  func testErrorsAreNotStored() async throws {
    let scene = CacheScene()
    scene.failure.update { $0 = ConnectError(code: .notFound) }
    let failed = await scene.lookup()
    XCTAssertEqual(failed.code, .notFound)
    scene.failure.update { $0 = nil }
    let value = try await scene.value()
    XCTAssertEqual(value, "k 2")
  }

  func testTrailersAndHeadersComeBack() async throws {
    let scene = CacheScene()
    scene.transport.onUnary(TestMethods.lookup) { _, context in
      context.responseHeaders["x-head"] = ["1", "2"]
      context.responseTrailers["x-tail"] = ["3"]
      return .init()
    }
    _ = try await scene.value()
    let hit = await scene.lookup()
    XCTAssertEqual(CacheStatus(hit.headers), .hit)
    XCTAssertEqual(hit.headers["x-head"], ["1", "2"])
    XCTAssertEqual(hit.trailers["x-tail"], ["3"])
  }

  func testRemoving() async throws {
    let scene = CacheScene()
    _ = try await (scene.value("a"), scene.value("b"))
    scene.cache.removeAll()
    let values = try await (scene.value("a"), scene.value("b"))
    XCTAssertEqual(values.0, "a 3")
    XCTAssertEqual(values.1, "b 4")
  }

  /// A response that does not decode must not be given again.
  func testUndecodableResponseIsForgotten() async throws {
    let scene = CacheScene()
    let count = Observed(0)
    scene.transport.onRaw(TestMethods.lookup.path) { exchange in
      let isBroken = count.update { count in
        count += 1
        return count == 1
      }
      let bytes: [UInt8] =
        isBroken ? [7, 7] : try LookupResponse.with { $0.value = "whole" }.serializedBytes()
      try await exchange.respond(
        headers: ["content-type": ["application/proto"]],
        body: ByteBuffer(bytes: bytes)
      )
    }
    let broken = await scene.lookup()
    XCTAssertEqual(broken.code, .internalError)
    let value = try await scene.value()
    XCTAssertEqual(value, "whole")
  }

  /// What others make of a good response, or of the call, is no reason to forget it.
  func testAGoodResponseOfACallThatFailsIsKept() async throws {
    struct Failing: Interceptor {
      let isFailing: Observed<Bool>
      func callFunction(_ method: MethodInfo) -> CallFunction {
        CallFunction(
          outcomeFunction: { outcome in if isFailing.value { outcome.error = ConnectError(code: .aborted) } }
        )
      }
    }
    let isFailing = Observed(false)
    let scene = CacheScene(between: [{ _ in Failing(isFailing: isFailing) }])
    let first = try await scene.value()
    isFailing.update { $0 = true }
    let failed = await scene.lookup()
    XCTAssertEqual(failed.code, .aborted)
    isFailing.update { $0 = false }
    let kept = try await scene.value()
    XCTAssertEqual([first, kept], ["k 1", "k 1"])
  }

  // MARK: Stale

  func testStaleOnError() async throws {
    let scene = CacheScene(.init(timeToLive: .seconds(10), staleOnError: .seconds(100)))
    _ = try await scene.value()
    scene.failure.update { $0 = ConnectError(code: .unavailable) }
    scene.executor.advance(by: .seconds(109))
    let stale = await scene.lookup()
    XCTAssertEqual(stale.message?.value, "k 1")
    XCTAssertEqual(CacheStatus(stale.headers), .stale)
    XCTAssertEqual(stale.headers["age"], ["109"])
    scene.executor.advance(by: .seconds(1))
    let tooOld = await scene.lookup()
    XCTAssertEqual(tooOld.code, .unavailable)
    scene.failure.update { $0 = nil }
    let fresh = await scene.lookup()
    XCTAssertEqual(fresh.message?.value, "k 4")
    XCTAssertNil(CacheStatus(fresh.headers))
  }

  func testWhatServersSayOfStaleResponses() async throws {
    let cases: [(String, Code)] = [
      ("max-age=10", .ok), ("max-age=10, stale-if-error=1000", .ok),
      ("max-age=10, stale-if-error=5", .unavailable),
      ("max-age=10, must-revalidate", .unavailable), ("no-cache", .unavailable), ("no-store", .unavailable),
    ]
    for (control, expected) in cases {
      let scene = CacheScene(.init(staleOnError: .seconds(100)))
      scene.headers.update { $0 = ["cache-control": [control], "etag": ["\"1\""]] }
      _ = try await scene.value()
      scene.failure.update { $0 = ConnectError(code: .unavailable) }
      scene.executor.advance(by: .seconds(20))
      let code = await scene.lookup().code
      XCTAssertEqual(code, expected, control)
    }
  }

  /// The end of the caller's own patience is not the network's failure.
  func testDeadlineOfTheCallGivesNothingStale() async throws {
    let scene = CacheScene(.init(timeToLive: .seconds(10), staleOnError: .seconds(100)))
    _ = try await scene.value()
    scene.executor.advance(by: .seconds(20))
    scene.isOpen.update { $0 = false }
    let calls = scene.start(1, options: .cached(timeout: .seconds(3)))
    scene.executor.advance(by: .seconds(3))
    XCTAssertEqual(calls.values, ["deadline_exceeded"])
    scene.isOpen.update { $0 = true }
  }

  // MARK: Replaced steps

  /// A user's own interceptor in the place of the one that stores: it keeps only what it likes.
  func testOwnWriter() async throws {
    let executor = VirtualExecutor()
    let transport = InMemoryTransport(executor: executor)
    let cache = ResponseCache(clock: executor.clock)
    let count = Observed(0)
    transport.onUnary(TestMethods.lookup) { request, _ in
      count.update { $0 += 1 }
      return .with { $0.value = request.key }
    }
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in SmallResponseWriter(cache) }]
      )
    )
    for key in ["small", "small", "too large to be kept", "too large to be kept"] {
      _ = try await client.unary(TestMethods.lookup, .with { $0.key = key }).get()
    }
    XCTAssertEqual(count.value, 3)
  }
}

/// Stores responses of at most ten bytes.
private final class SmallResponseWriter: Interceptor {
  private let cache: ResponseCache
  private var passed: (request: HTTPRequest<ByteBuffer>, mark: CacheMark)?

  init(_ cache: ResponseCache) { self.cache = cache }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.passed = (request, self.cache.mark(request))
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        if let (request, mark) = self.passed, response.message.readableBytes <= 10 {
          self.cache.store(response, for: request, seenAs: mark)
        }
        proceed(response)
      }
    )
    .placed(.innermost)
  }
}
