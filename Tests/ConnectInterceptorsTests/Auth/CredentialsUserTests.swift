import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

@testable import ConnectInterceptors

/// What becomes of tokens and calls when the user changes.
final class CredentialsUserTests: XCTestCase {
  func testUpdateReplacesTheToken() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider, token: AccessToken("old"))
    _ = try await scene.echo().get()
    scene.credentials.update(AccessToken("new"))
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer old", "Bearer new"])
    XCTAssertEqual(provider.count, 0)
  }

  func testInvalidateFetchesAnother() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider, token: AccessToken("old"))
    _ = try await scene.echo().get()
    scene.credentials.invalidate()
    XCTAssertEqual(provider.count, 0)
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer old", "Bearer token 1"])
    XCTAssertEqual(provider.reasons, [.invalidated])
    XCTAssertEqual(provider.previous, [nil])
  }

  /// Calls of the former user do not go on with the token of the next one, and what a refresh under way brings is not
  /// shown to anybody.
  func testInvalidateWhileCallsWait() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider)
    let former = scene.startEchoes(3)
    try await scene.executor.wait { provider.count == 1 }
    scene.credentials.invalidate()
    let outcomes = await former.wait(for: 3)
    XCTAssertEqual(outcomes.map(\.code), [.unauthenticated, .unauthenticated, .unauthenticated])
    XCTAssertEqual(outcomes[0].error?.message?.contains("invalidated"), true)
    let next = scene.startEchoes(1)
    try await scene.executor.wait { provider.count == 2 }
    provider.open()
    let codes = await next.wait(for: 1).map(\.code)
    XCTAssertEqual(codes, [.ok])
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 2", "Bearer token 2"])
    XCTAssertEqual(provider.count, 2)
  }

  func testUpdateWhileCallsWait() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider)
    let calls = scene.startEchoes(3)
    try await scene.executor.wait { provider.count == 1 }
    scene.credentials.update(AccessToken("new"))
    let codes = await calls.wait(for: 3).map(\.code)
    XCTAssertEqual(codes, [.ok, .ok, .ok])
    provider.open()
    try await scene.executor.wait { scene.executor.scheduled.isEmpty }
    _ = try await scene.echo().get()
    XCTAssertEqual(Set(scene.seen.value), ["Bearer new"])
  }

  /// A call whose token is refused after the user has changed ends with that: it is the former user's.
  func testRefusedCallOfTheFormerUserIsNotRepeated() async throws {
    for invalidates in [true, false] {
      let provider = TokenProvider()
      let scene = TokenScene(provider, token: AccessToken("old"))
      let isOpen = Observed(false)
      let arrived = Observed(0)
      scene.transport.onUnary(TestMethods.lookup) { _, context in
        arrived.update { $0 += 1 }
        guard context.requestHeaders.first("authorization") == "Bearer old" else { return .init() }
        _ = await isOpen.wait(within: .seconds(60)) { $0 ? true : nil }
        throw ConnectError(code: .unauthenticated)
      }
      async let late = scene.client.unary(TestMethods.lookup, .init()).code
      try await scene.executor.wait { arrived.value == 1 }
      if invalidates { scene.credentials.invalidate() }
      scene.credentials.update(AccessToken("new"))
      isOpen.update { $0 = true }
      let code = await late
      // After an update alone it is the same user's.
      XCTAssertEqual(code, invalidates ? .unauthenticated : .ok)
      XCTAssertEqual(arrived.value, invalidates ? 1 : 2)
      XCTAssertEqual(provider.count, 0)
    }
  }

  /// A call of the former user that another interceptor makes again, after any error, does not go on as the next
  /// user's.
  func testRetriedCallOfTheFormerUserShowsNoOtherToken() async throws {
    for (invalidates, updates) in [(true, true), (true, false), (false, true)] {
      for isStream in [false, true] {
        let provider = TokenProvider()
        let scene = TokenScene(provider, token: AccessToken("old"))
        let serve: @Sendable (ServerContext) throws -> Void = { context in
          let value = context.requestHeaders.first("authorization")
          scene.seen.update { $0.append(value) }
          guard value == "Bearer old" else { return }
          if invalidates { scene.credentials.invalidate() }
          if updates { scene.credentials.update(AccessToken("new")) }
          throw ConnectError(code: .unavailable)
        }
        scene.transport.onUnary(TestMethods.echo) { _, context in
          try serve(context)
          return .init()
        }
        scene.transport.onServerStream(TestMethods.count) { _, responses, context in
          try serve(context)
          try await responses.send(.init())
        }
        let client = self.retryingClient(of: scene)
        let error: ConnectError?
        if isStream {
          error = try await client.serverStream(TestMethods.count, .init()).results.collected().error
        } else {
          error = await client.unary(TestMethods.echo, .init()).error
        }
        let what = "invalidates: \(invalidates), updates: \(updates), stream: \(isStream)"
        if invalidates {
          XCTAssertEqual(scene.seen.value, ["Bearer old"], what)
          XCTAssertEqual(error?.code, .unauthenticated, what)
          XCTAssertEqual(error?.message?.contains("another user"), true, what)
        } else {
          // After an update alone it is the same user's.
          XCTAssertEqual(scene.seen.value, ["Bearer old", "Bearer new"], what)
          XCTAssertNil(error, what)
        }
        XCTAssertEqual(provider.count, 0, what)
      }
    }
  }

  /// Nor does it wait for the token of the next user.
  func testRetriedCallOfTheFormerUserDoesNotJoinARefresh() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider, token: AccessToken("old"))
    let isOpen = Observed(false)
    let arrived = Observed(0)
    scene.transport.onUnary(TestMethods.lookup) { _, _ in
      arrived.update { $0 += 1 }
      _ = await isOpen.wait(within: .seconds(60)) { $0 ? true : nil }
      throw ConnectError(code: .unavailable)
    }
    let client = self.retryingClient(of: scene)
    async let former = client.unary(TestMethods.lookup, .init()).error
    try await scene.executor.wait { arrived.value == 1 }
    scene.credentials.invalidate()
    let next = scene.startEchoes(1)
    try await scene.executor.wait { provider.count == 1 }
    isOpen.update { $0 = true }
    let error = await former
    XCTAssertEqual(error?.code, .unauthenticated)
    XCTAssertEqual(error?.message?.contains("another user"), true)
    provider.open()
    let codes = await next.wait(for: 1).map(\.code)
    XCTAssertEqual(codes, [.ok])
    XCTAssertEqual(scene.seen.value, ["Bearer token 1"])
    XCTAssertEqual(arrived.value, 1)
    XCTAssertEqual(provider.count, 1)
  }

  /// The user changes between the refusal of a token and the attempt that was to show another.
  func testChangeOfTheUserBehindARefusal() {
    var state = CredentialsState(.defaults, token: AccessToken("a"), now: .zero)
    let first = state.take(now: .zero, shown: 0)?.lease.generation
    XCTAssertEqual(first, 1)
    let mayRetry = state.refuse(1, now: .zero)
    XCTAssertTrue(mayRetry)
    _ = state.invalidate()
    _ = state.update(AccessToken("b"), now: .zero)
    let lease = state.take(now: .zero, shown: 1)?.lease
    XCTAssertNil(lease)
    guard case .fail(let error) = state.take(now: .zero, for: "/method", shown: 1, waiter: { _ in }) else {
      return XCTFail("the former user's call gets a token, or waits for one")
    }
    XCTAssertEqual(error.code, .unauthenticated)
    let next = state.take(now: .zero, shown: 0)?.lease.generation
    XCTAssertEqual(next, 2)
  }

  private func retryingClient(of scene: TokenScene) -> ProtocolClient {
    let credentials = scene.credentials
    let budget = RetryBudget()
    let policy = RetryPolicy(backoff: Backoff(base: .zero), methods: { _ in true })
    return ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [
          { _ in CredentialsInterceptor(credentials) },
          { _ in RetryInterceptor(policy: policy, budget: budget) },
        ]
      )
    )
  }
}
