import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// Who may have whose response: keys, variants, and calls that become one.
final class CacheSharingTests: XCTestCase {
  // MARK: Users

  func testEveryHeaderTellsUsersApart() async throws {
    for name in ["authorization", "cookie", "x-user", "accept-language"] {
      let scene = CacheScene()
      let values = [
        try await scene.value(headers: [name: ["ada"]]), try await scene.value(headers: [name: ["bob"]]),
        try await scene.value(), try await scene.value(headers: [name: ["ada"]]),
        try await scene.value(headers: [name: ["ada", "bob"]]),
      ]
      XCTAssertEqual(values, ["k 1", "k 2", "k 3", "k 1", "k 4"], name)
    }
  }

  func testHeadersOfTracingAndTheirOrderDoNotCount() async throws {
    let scene = CacheScene()
    let values = [
      try await scene.value(headers: ["x-a": ["1"], "traceparent": ["1"], "x-b": ["2"]]),
      try await scene.value(headers: ["x-b": ["2"], "X-Request-ID": ["2"], "x-a": ["1"]]),
    ]
    XCTAssertEqual(values, ["k 1", "k 1"])
  }

  func testChosenHeaders() async throws {
    let scene = CacheScene(.init(keyHeaders: .only(["X-Tenant"])))
    let values = [
      try await scene.value(headers: ["x-tenant": ["a"], "x-other": ["1"]]),
      try await scene.value(headers: ["x-tenant": ["a"], "x-other": ["2"]]),
      try await scene.value(headers: ["x-tenant": ["b"]]),
    ]
    XCTAssertEqual(values, ["k 1", "k 1", "k 2"])
  }

  func testPartitionStandsInPlaceOfTheToken() async throws {
    let scene = CacheScene()
    let values = [
      try await scene.value(headers: ["authorization": ["token 1"]], partition: "ada"),
      try await scene.value(headers: ["authorization": ["token 2"]], partition: "ada"),
      try await scene.value(headers: ["authorization": ["token 2"]], partition: "bob"),
      try await scene.value(headers: ["authorization": ["token 2"]]),
    ]
    XCTAssertEqual(values, ["k 1", "k 1", "k 2", "k 3"])
  }

  func testKeysShowNoHeaders() {
    let driver = InterceptorDriver { _ in CacheReadInterceptor(ResponseCache()) }
    let request = driver.makeRequest(headers: ["authorization": ["s3cret"]], message: ByteBuffer())
    let key = ResponseCache().key(for: request)
    XCTAssertEqual(key.headers.map(\.value), ["s3cret"])
    var text = "\(key) \(String(reflecting: key))"
    dump(key, to: &text)
    XCTAssertFalse(text.contains("s3cret"), text)
  }

  /// An interceptor that is listed behind the one that reads says who the user is.
  func testCredentialsBetweenReadingAndWriting() async throws {
    let user = Observed("ada")
    let addUser: InterceptorFactory = { _ in AddedHeader("authorization") { user.value } }
    for (place, outside, between) in [("between", [], [addUser]), ("around", [addUser], [])] {
      let scene = CacheScene(outside: outside, between: between)
      var values: [String] = []
      for name in ["ada", "bob", "ada"] {
        user.update { $0 = name }
        values.append(try await scene.value())
      }
      XCTAssertEqual(values, ["k 1", "k 2", "k 1"], place)
      // Several at once.
      scene.cache.removeAll()
      scene.isOpen.update { $0 = false }
      let calls = scene.start(2)
      user.update { $0 = "bob" }
      for _ in 0..<2 { calls.start(scene.client, "k", CallOptions()) }
      scene.executor.runUntilIdle()
      scene.isOpen.update { $0 = true }
      let concurrent = await calls.wait()
      XCTAssertEqual(concurrent, ["k 3", "k 3", "k 4", "k 4"], place)
    }
  }

  /// An error about one caller's token is not for others that wait with tokens of their own.
  func testErrorsAboutACallerAreNotShared() async throws {
    for (code, requests) in [(Code.unauthenticated, 2), (.permissionDenied, 2), (.notFound, 1)] {
      let scene = CacheScene()
      scene.failure.update { $0 = ConnectError(code: code) }
      scene.isOpen.update { $0 = false }
      let calls = scene.start(
        1,
        options: .cached(nil, headers: ["authorization": ["old"]], partition: "team")
      )
      calls.start(scene.client, "k", .cached(nil, headers: ["authorization": ["new"]], partition: "team"))
      scene.executor.runUntilIdle()
      scene.isOpen.update { $0 = true }
      _ = await calls.wait()
      XCTAssertEqual(scene.requestCount, requests, "\(code)")
    }
  }

  func testOurCredentialsInsideOfTheCacheShareNoFlight() async throws {
    let executor = VirtualExecutor()
    let transport = InMemoryTransport(executor: executor)
    let isOpen = Observed(false)
    let arrived = Observed(0)
    transport.onUnary(TestMethods.lookup) { _, context in
      arrived.update { $0 += 1 }
      _ = await isOpen.wait(within: .seconds(60)) { $0 ? true : nil }
      return .with { $0.value = context.requestHeaders.first("authorization") ?? "" }
    }
    // In the wrong order, and no interceptor that writes.
    let cache = ResponseCache(clock: executor.clock)
    let calls = LookupCalls()
    for name in ["ada", "bob"] {
      let credentials = Credentials(for: ["api.test"], token: AccessToken(name)) { _ in AccessToken(name) }
      let client = ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(
          host: "https://api.test",
          interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CredentialsInterceptor(credentials) }]
        )
      )
      calls.start(client, "k", CallOptions())
    }
    executor.runUntilIdle()
    XCTAssertEqual(arrived.value, 2)
    isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, ["Bearer ada", "Bearer bob"])
  }

  // MARK: Vary

  func testVary() async throws {
    let scene = CacheScene(.init(keyHeaders: .only([])))
    scene.headers.update { $0 = ["vary": ["Accept-Encoding, X-Lang", "x-size"]] }
    let requests: [(Headers, String)] = [
      (["x-lang": ["en"]], "k 1"), (["x-lang": ["de"]], "k 2"), ([:], "k 3"), (["x-lang": ["en"]], "k 1"),
      (["x-lang": ["de"]], "k 2"), (["x-lang": ["de"], "x-other": ["1"]], "k 2"), ([:], "k 3"),
      (["x-lang": ["de"], "x-size": ["1"]], "k 4"), (["x-size": ["1"], "x-lang": ["de"]], "k 4"),
    ]
    for (headers, expected) in requests {
      let value = try await scene.value(headers: headers)
      XCTAssertEqual(value, expected, "\(headers)")
    }
  }

  func testVaryThatChanges() async throws {
    let scene = CacheScene(.init(timeToLive: .seconds(10), keyHeaders: .only([])))
    scene.headers.update { $0 = ["vary": ["x-a"]] }
    _ = try await scene.value(headers: ["x-a": ["1"], "x-b": ["1"]])
    scene.executor.advance(by: .seconds(10))
    scene.headers.update { $0 = ["vary": ["x-b"]] }
    var values = [try await scene.value(headers: ["x-a": ["1"], "x-b": ["1"]])]
    values.append(try await scene.value(headers: ["x-a": ["2"], "x-b": ["1"]]))
    values.append(try await scene.value(headers: ["x-a": ["1"], "x-b": ["2"]]))
    XCTAssertEqual(values, ["k 2", "k 2", "k 3"])
  }

  func testCallsUnderWayThatVaryAreNotShared() async throws {
    let scene = CacheScene(.init(keyHeaders: .only([])))
    scene.headers.update { $0 = ["vary": ["x-lang"]] }
    scene.isOpen.update { $0 = false }
    let calls = scene.start(1, options: .cached(headers: ["x-lang": ["en"]]))
    for lang in ["de", "en"] { calls.start(scene.client, "k", .cached(headers: ["x-lang": [lang]])) }
    scene.executor.runUntilIdle()
    XCTAssertEqual(scene.requestCount, 1)
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, ["k 1", "k 2", "k 1"])
  }

  // MARK: Calls under way

  func testIdenticalCallsAreOne() async throws {
    let scene = CacheScene()
    scene.isOpen.update { $0 = false }
    let calls = scene.start(1000)
    let others = scene.start(10, "other")
    XCTAssertEqual(scene.requestCount, 2)
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, Array(repeating: "k 1", count: 1000))
    let otherValues = await others.wait()
    XCTAssertEqual(Set(otherValues), ["other 2"])
    let statuses = calls.outcomes.values.map { CacheStatus($0.headers) }
    XCTAssertEqual(statuses.filter { $0 == .collapsed }.count, 999)
    XCTAssertEqual(scene.requestCount, 2)
  }

  func testNetworkOnlyFliesAlone() async throws {
    let scene = CacheScene()
    scene.isOpen.update { $0 = false }
    let calls = scene.start(3, options: .cached(.networkOnly))
    XCTAssertEqual(scene.requestCount, 3)
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, ["k 1", "k 2", "k 3"])
  }

  func testCancelledLeaderDoesNotFailTheOthers() async throws {
    let scene = CacheScene()
    scene.isOpen.update { $0 = false }
    let calls = scene.start(10)
    for leader in 0..<3 {
      // Whoever leads now is unknown; cancelled are the first, and then two that may wait or lead.
      calls.cancel(leader)
      scene.executor.runUntilIdle()
    }
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values.filter { $0 == "canceled" }.count, 3)
    XCTAssertEqual(values.filter { $0.hasPrefix("k ") }.count, 7)
    XCTAssertEqual(Set(values.filter { $0.hasPrefix("k ") }).count, 1)
    XCTAssertLessThanOrEqual(scene.requestCount, 4)
    XCTAssertGreaterThanOrEqual(scene.requestCount, 2)
  }

  func testDeadlineOfTheLeaderDoesNotFailTheOthers() async throws {
    let scene = CacheScene()
    scene.isOpen.update { $0 = false }
    let calls = scene.start(1, options: .cached(timeout: .seconds(1)))
    for _ in 0..<4 { calls.start(scene.client, "k", CallOptions()) }
    scene.executor.runUntilIdle()
    scene.executor.advance(by: .seconds(1))
    XCTAssertEqual(scene.requestCount, 2)
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, ["deadline_exceeded", "k 2", "k 2", "k 2", "k 2"])
  }

  func testWaitingCallKeepsItsDeadlineAndCancellation() async throws {
    let scene = CacheScene()
    scene.isOpen.update { $0 = false }
    let calls = scene.start(2)
    calls.start(scene.client, "k", .cached(timeout: .seconds(1)))
    scene.executor.runUntilIdle()
    calls.cancel(1)
    scene.executor.advance(by: .seconds(1))
    XCTAssertEqual(calls.values, ["canceled", "deadline_exceeded"])
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, ["k 1", "canceled", "deadline_exceeded"])
    XCTAssertEqual(scene.requestCount, 1)
  }

  func testErrorOfTheServerIsOneOfAll() async throws {
    let scene = CacheScene()
    scene.failure.update { $0 = ConnectError(code: .unavailable, message: "maintenance") }
    scene.isOpen.update { $0 = false }
    let calls = scene.start(100)
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, Array(repeating: "unavailable", count: 100))
    XCTAssertEqual(scene.requestCount, 1)
    XCTAssertEqual(
      calls.outcomes.values.compactMap(\.error?.message),
      Array(repeating: "maintenance", count: 100)
    )
  }

  func testWhatMustNotBeStoredIsNotShared() async throws {
    let scene = CacheScene()
    scene.headers.update { $0 = ["cache-control": ["no-store"]] }
    scene.isOpen.update { $0 = false }
    let calls = scene.start(5)
    XCTAssertEqual(scene.requestCount, 1)
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(Set(values).count, 5)
  }

  /// A retry of the leader around the cache takes it out of the lead, and in again.
  func testLeaderThatIsRetriedByAnInterceptorOutside() async throws {
    let scene = CacheScene(outside: [ScriptedInterceptor.factory(.retry(1), level: .byte)])
    scene.failure.update { $0 = ConnectError(code: .unavailable) }
    scene.isOpen.update { $0 = false }
    let calls = scene.start(20)
    scene.isOpen.update { $0 = true }
    let values = await calls.wait()
    XCTAssertEqual(values, Array(repeating: "unavailable", count: 20))
    XCTAssertGreaterThanOrEqual(scene.requestCount, 2)
    scene.failure.update { $0 = nil }
    let value = try await scene.value()
    XCTAssertTrue(value.hasPrefix("k "))
  }

  // MARK: At random

  /// Many users, keys, and variants at the same time; some calls are cancelled, some responses are not stored. Nobody
  /// ever sees a response that was made for another request.
  func testNobodySeesWhatWasMadeForAnother() async throws {
    let transport = InMemoryTransport()
    let requests = Observed(0)
    transport.onUnary(TestMethods.lookup) { request, context in
      let number = requests.update { count in
        count += 1
        return count
      }
      if number.isMultiple(of: 7) { context.responseHeaders["cache-control"] = ["no-store"] }
      if number.isMultiple(of: 5) { context.responseHeaders["cache-control"] = ["private, max-age=0"] }
      context.responseHeaders["vary"] = ["x-lang"]
      context.responseHeaders["etag"] = ["\"\(number)\""]
      if number.isMultiple(of: 11) { throw ConnectError(code: .unavailable) }
      if number.isMultiple(of: 3) { try await context.sleep(for: .milliseconds(1)) }
      let user = context.requestHeaders.first("authorization") ?? "none"
      let lang = context.requestHeaders.first("x-lang") ?? "none"
      return .with { $0.value = "\(user) \(lang) \(request.key)" }
    }
    let storage = MemoryCacheStorage(maximumByteCount: 20_000)
    let cache = ResponseCache(
      configuration: .init(staleOnError: .seconds(1), keyHeaders: .only(["authorization"])),
      storage: storage
    )
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }],
        unaryGET: .alwaysEnabled
      )
    )
    let count = 5000
    let wrong = await withTaskGroup(of: String?.self) { group in
      for _ in 0..<count {
        group.addTask {
          let (user, lang) = ("u\(Int.random(in: 0..<5))", "l\(Int.random(in: 0..<3))")
          let key = "k\(Int.random(in: 0..<10))"
          let policy: CachePolicy? = [nil, .networkFirst, .cacheFirst].randomElement() ?? nil
          let options = CallOptions.cached(policy, headers: ["authorization": [user], "x-lang": [lang]])
          let call = Task { await client.unary(TestMethods.lookup, .with { $0.key = key }, options: options) }
          if Int.random(in: 0..<10) == 0 { call.cancel() }
          let response = await call.value
          switch response.result {
          case .success(let message):
            return message.value == "\(user) \(lang) \(key)"
              ? nil : "\(user) \(lang) \(key): \(message.value)"
          case .failure(let error):
            return error.code == .canceled || error.code == .unavailable ? nil : "\(error)"
          }
        }
      }
      return await group.compactMap(\.self).reduce(into: []) { $0.append($1) }
    }
    XCTAssertEqual(wrong, [])
    XCTAssertLessThan(requests.value, count, "nothing was shared")
    XCTAssertLessThanOrEqual(storage.byteCount, 20_000)
  }
}

/// Adds a header to requests.
private final class AddedHeader: Interceptor {
  private let name: String
  private let value: @Sendable () -> String

  init(_ name: String, _ value: @escaping @Sendable () -> String) {
    self.name = name
    self.value = value
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        var request = request
        request.headers[self.name] = [self.value()]
        proceed(.success(request))
      }
    )
  }
}
