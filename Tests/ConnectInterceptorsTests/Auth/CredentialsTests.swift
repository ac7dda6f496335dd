import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// When tokens are fetched, who waits for that, and what becomes of those who wait.
final class CredentialsTests: XCTestCase {
  private struct TokenEndpointIsDown: Error {}

  func testFirstCallFetchesAndLaterOnesDoNot() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    for _ in 0..<3 { _ = try await scene.echo().get() }
    XCTAssertEqual(scene.seen.value, ["Bearer token 1", "Bearer token 1", "Bearer token 1"])
    XCTAssertEqual(provider.reasons, [.missing])
    XCTAssertEqual(provider.previous, [nil])
  }

  func testHeaderAndScheme() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider, configuration: .init(header: "X-API-Key", scheme: nil))
    let received = Observed<[String]>([])
    scene.transport.onUnary(TestMethods.echo) { _, context in
      received.update { $0 += context.requestHeaders["x-api-key"] }
      return .init()
    }
    _ = try await scene.echo().get()
    XCTAssertEqual(received.value, ["token 1"])
  }

  // MARK: One refresh

  func testThousandCallsMeetAnExpiredToken() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider, token: AccessToken("old", expiresIn: .seconds(10)))
    scene.executor.advance(by: .seconds(10))
    let calls = scene.startEchoes(1000)
    XCTAssertEqual(calls.outcomes.value.count, 0)
    provider.open()
    let outcomes = await calls.wait(for: 1000)
    XCTAssertEqual(outcomes.count, 1000)
    XCTAssertEqual(outcomes.map { $0.message?.payload.small }, (0..<1000).map { Int32($0) })
    XCTAssertEqual(provider.reasons, [.expired])
    XCTAssertEqual(provider.previous, ["old"])
    XCTAssertEqual(Set(scene.seen.value), ["Bearer token 1"])
  }

  func testThousandCallsMeetARevokedToken() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider, token: AccessToken("revoked"))
    scene.accepted.update { $0 = ["Bearer token 1"] }
    let calls = scene.startEchoes(1000)
    provider.open()
    let outcomes = await calls.wait(for: 1000)
    XCTAssertEqual(outcomes.filter { $0.code == .ok }.count, 1000)
    XCTAssertEqual(provider.reasons, [.refused])
    XCTAssertEqual(scene.seen.value.filter { $0 == "Bearer token 1" }.count, 1000)
  }

  func testCallsFromManyThreadsMakeOneRefresh() async throws {
    let provider = TokenProvider()
    let credentials = Credentials(for: ["api.test"]) { try await provider.fetch($0) }
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { request, _ in .with { $0.payload = request.payload } }
    let codes = await withTaskGroup(of: Code.self) { group in
      for index in 0..<1000 {
        // A client each, so that their hooks run wherever they want.
        let client = ProtocolClient(
          httpClient: index.isMultiple(of: 10) ? InMemoryTransport() : transport,
          config: ProtocolClientConfig(
            host: "https://api.test",
            interceptors: [{ _ in CredentialsInterceptor(credentials) }]
          )
        )
        group.addTask { await client.unary(TestMethods.echo, .init()).code }
      }
      return await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
    XCTAssertEqual(codes, [.ok: 900, .unimplemented: 100])
    XCTAssertEqual(provider.count, 1)
  }

  func testRefusalOfAnOldTokenDoesNotTouchTheNewOne() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider, token: AccessToken("old"))
    scene.accepted.update { $0 = ["Bearer token 1"] }
    let isOpen = Observed(false)
    let arrived = Observed(0)
    scene.transport.onUnary(TestMethods.lookup) { _, context in
      arrived.update { $0 += 1 }
      if context.requestHeaders.first("authorization") == "Bearer old" {
        _ = await isOpen.wait(within: .seconds(60)) { $0 ? true : nil }
        throw ConnectError(code: .unauthenticated)
      }
      return .with { $0.value = context.requestHeaders.first("authorization") ?? "" }
    }
    async let late = scene.client.unary(TestMethods.lookup, .init())
    try await scene.executor.wait { arrived.value == 1 }
    _ = try await scene.echo().get()
    XCTAssertEqual(provider.count, 1)
    isOpen.update { $0 = true }
    let value = try await late.get().value
    XCTAssertEqual(value, "Bearer token 1")
    XCTAssertEqual(provider.count, 1)
  }

  // MARK: Failures

  func testFailedRefreshFailsEachCallOnceWithItsError() async throws {
    let provider = TokenProvider(isOpen: false) { _ in
      ConnectError(
        code: .permissionDenied,
        message: "your account is closed",
        metadata: ["x-why": ["unpaid"]]
      )
    }
    let scene = TokenScene(provider)
    let calls = scene.startEchoes(1000)
    provider.open()
    let outcomes = await calls.wait(for: 1000)
    XCTAssertEqual(outcomes.count, 1000)
    for outcome in outcomes {
      XCTAssertEqual(outcome.error?.code, .permissionDenied)
      XCTAssertEqual(outcome.error?.message, "your account is closed")
      XCTAssertEqual(outcome.error?.metadata, ["x-why": ["unpaid"]])
    }
    XCTAssertEqual(provider.count, 1)
    XCTAssertEqual(scene.seen.value, [])
  }

  func testOtherErrorsOfTheProviderAreUnauthenticated() async throws {
    for failure in [TokenEndpointIsDown() as any Error, CancellationError()] {
      let scene = TokenScene(TokenProvider { _ in failure })
      let error = await scene.echo().error
      XCTAssertEqual(error?.code, .unauthenticated)
      XCTAssertEqual(error?.exception.map { "\(type(of: $0))" }, "\(type(of: failure))")
    }
  }

  func testNextCallAfterAFailureTriesAgain() async throws {
    let provider = TokenProvider { $0 == 1 ? TokenEndpointIsDown() : nil }
    let scene = TokenScene(provider)
    let first = await scene.echo()
    XCTAssertEqual(first.code, .unauthenticated)
    _ = try await scene.echo().get()
    XCTAssertEqual(provider.count, 2)
  }

  func testCancelledCallDoesNotCancelTheRefresh() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider)
    let calls = scene.startEchoes(3)
    calls.cancel(0)
    scene.executor.runUntilIdle()
    XCTAssertEqual(calls.outcomes.value[0]?.map(\.code), [.canceled])
    provider.open()
    _ = await calls.wait(for: 3)
    XCTAssertEqual(calls.outcomes.value.mapValues { $0.map(\.code) }, [0: [.canceled], 1: [.ok], 2: [.ok]])
    XCTAssertEqual(provider.count, 1)
    XCTAssertEqual(provider.cancelled, 0)
  }

  func testCancelledTaskDoesNotCancelTheRefresh() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider)
    let task = Task { await scene.echo() }
    try await scene.executor.wait { provider.count == 1 }
    task.cancel()
    let code = await task.value.code
    XCTAssertEqual(code, .canceled)
    provider.open()
    _ = try await scene.echo().get()
    XCTAssertEqual(provider.cancelled, 0)
    XCTAssertEqual(provider.count, 1)
  }

  func testWaitingCallKeepsItsDeadline() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider)
    let hasty = scene.startEchoes(1, options: CallOptions(timeout: .seconds(2)))
    let patient = scene.startEchoes(1)
    scene.executor.advance(by: .seconds(2))
    XCTAssertEqual(hasty.outcomes.value[0]?.map(\.code), [.deadlineExceeded])
    XCTAssertEqual(patient.outcomes.value.count, 0)
    provider.open()
    let outcomes = await patient.wait(for: 1)
    XCTAssertEqual(outcomes.map(\.code), [.ok])
    XCTAssertEqual(provider.count, 1)
  }

  func testRefreshHasATimeout() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider)
    let calls = scene.startEchoes(2)
    try await scene.executor.wait { scene.executor.scheduled == [.seconds(30)] }
    scene.executor.advance(by: .seconds(30))
    let outcomes = await calls.wait(for: 2)
    XCTAssertEqual(outcomes.map(\.code), [.deadlineExceeded, .deadlineExceeded])
    // What it brings too late counts for nothing; the next call fetches anew.
    provider.open()
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 2"])
  }

  // MARK: Ahead of expiry

  func testRefreshesAheadOfExpiryWithoutWaiting() async throws {
    let provider = TokenProvider(isOpen: false, lifetime: .seconds(600))
    let scene = TokenScene(provider, token: AccessToken("old", expiresIn: .seconds(600)))
    scene.executor.advance(by: .seconds(539))
    _ = try await scene.echo().get()
    XCTAssertEqual(provider.count, 0)
    scene.executor.advance(by: .seconds(1))
    for _ in 0..<3 { _ = try await scene.echo().get() }
    try await scene.executor.wait { provider.count == 1 }
    XCTAssertEqual(provider.reasons, [.expiresSoon])
    provider.open()
    try await scene.executor.wait { !scene.credentials.isRefreshing }
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, Array(repeating: "Bearer old", count: 4) + ["Bearer token 1"])
  }

  func testTokenThatLivesShorterThanTheMarginIsNotFetchedWithEveryCall() async throws {
    let provider = TokenProvider(lifetime: .seconds(20))
    let scene = TokenScene(provider)
    for _ in 0..<5 { _ = try await scene.echo().get() }
    scene.executor.advance(by: .seconds(9))
    _ = try await scene.echo().get()
    XCTAssertEqual(provider.count, 1)
    scene.executor.advance(by: .seconds(1))
    _ = try await scene.echo().get()
    try await scene.executor.wait { provider.count == 2 }
  }

  func testFailedRefreshAheadLeavesTheTokenInUse() async throws {
    let provider = TokenProvider(lifetime: .seconds(100)) { $0 == 2 ? TokenEndpointIsDown() : nil }
    let scene = TokenScene(provider, configuration: .init(refreshAhead: .seconds(40)))
    _ = try await scene.echo().get()
    scene.executor.advance(by: .seconds(60))
    _ = try await scene.echo().get()
    try await scene.executor.wait { provider.count == 2 && !scene.credentials.isRefreshing }
    // Half of the 40 seconds that are left pass until the next.
    scene.executor.advance(by: .seconds(19))
    _ = try await scene.echo().get()
    XCTAssertEqual(provider.count, 2)
    scene.executor.advance(by: .seconds(1))
    _ = try await scene.echo().get()
    try await scene.executor.wait { provider.count == 3 && !scene.credentials.isRefreshing }
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value.last, "Bearer token 3")
  }

  // MARK: Storms

  func testServerThatRefusesEveryTokenCausesNoStorm() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    scene.accepted.update { $0 = [] }
    for _ in 0..<20 {
      let response = await scene.echo()
      XCTAssertEqual(response.code, .unauthenticated)
      XCTAssertEqual(response.error?.message, "who are you?")
    }
    XCTAssertEqual(provider.count, 5)
    XCTAssertEqual(scene.seen.value.count, 24, "20 calls, 4 of which made another attempt")
    scene.executor.advance(by: .seconds(30))
    _ = await scene.echo()
    XCTAssertEqual(provider.count, 6)
  }

  func testCallsWithoutATokenFailFastWhenTheWindowIsFull() async throws {
    let provider = TokenProvider { _ in TokenEndpointIsDown() }
    let scene = TokenScene(
      provider,
      configuration: .init(window: .init(interval: .seconds(10), maximumRefreshes: 2))
    )
    for _ in 0..<5 {
      let code = await scene.echo().code
      XCTAssertEqual(code, .unauthenticated)
    }
    XCTAssertEqual(provider.count, 2)
    let error = await scene.echo().error
    XCTAssertEqual(error?.message?.contains("refreshed 2 times within"), true, "\(String(describing: error))")
    scene.executor.advance(by: .seconds(10))
    _ = await scene.echo()
    XCTAssertEqual(provider.count, 3)
  }

  // MARK: Through the same client

  func testRefreshThroughTheSameClient() async throws {
    let transport = InMemoryTransport()
    let seen = Observed<[String?]>([])
    transport.onUnary(TestMethods.lookup) { _, context in
      seen.update { $0.append(context.requestHeaders.first("authorization")) }
      return .with { $0.value = "from login" }
    }
    transport.onUnary(TestMethods.echo) { _, context in
      seen.update { $0.append(context.requestHeaders.first("authorization")) }
      return .init()
    }
    let reference = Observed<ProtocolClient?>(nil)
    let credentials = Credentials(for: ["api.test"]) { _ in
      guard let client = reference.value else { throw TokenEndpointIsDown() }
      let response = try await client.unary(TestMethods.lookup, .init()).get()
      return AccessToken(response.value)
    }
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [{ _ in CredentialsInterceptor(credentials) }]
      )
    )
    reference.update { $0 = client }
    _ = try await client.unary(TestMethods.echo, .init(), options: CallOptions(timeout: .seconds(60))).get()
    XCTAssertEqual(seen.value, [nil, "Bearer from login"])
    reference.update { $0 = nil }
  }

  /// Only those that are fetched are left out of a provider's calls.
  func testRefreshWithOtherCredentials() async throws {
    let transport = InMemoryTransport()
    let seen = Observed<[String?]>([])
    transport.onUnary(TestMethods.lookup) { request, context in
      seen.update { $0.append(context.requestHeaders.first("authorization")) }
      return .with { $0.value = "\(request.key) token" }
    }
    let account = Credentials(for: ["api.test"]) { _ in AccessToken("account") }
    let reference = Observed<ProtocolClient?>(nil)
    let session = Credentials(for: ["api.test"], configuration: .init(header: "x-session", scheme: nil)) {
      _ in
      guard let client = reference.value else { throw TokenEndpointIsDown() }
      return AccessToken(try await client.unary(TestMethods.lookup, .with { $0.key = "session" }).get().value)
    }
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [{ _ in CredentialsInterceptor(session) }, { _ in CredentialsInterceptor(account) }]
      )
    )
    reference.update { $0 = client }
    let sessions = Observed<[String?]>([])
    transport.onUnary(TestMethods.echo) { _, context in
      sessions.update { $0.append(context.requestHeaders.first("x-session")) }
      return .init()
    }
    _ = try await client.unary(TestMethods.echo, .init(), options: CallOptions(timeout: .seconds(60))).get()
    XCTAssertEqual(seen.value, ["Bearer account"])
    XCTAssertEqual(sessions.value, ["session token"])
    reference.update { $0 = nil }
  }
}
