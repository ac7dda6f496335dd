import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

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
}
