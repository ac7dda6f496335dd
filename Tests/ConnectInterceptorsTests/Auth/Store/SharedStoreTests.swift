import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// Credentials of several processes with one store. Each is an object with a store of its own, as locks and files do not tell
/// these from processes.
final class SharedStoreTests: XCTestCase {
  private static let start = Duration.seconds(1_700_000_000)

  /// A refused token is replaced by what another process has stored, and nothing is fetched.
  func testTokenOfAnotherProcessIsUsed() async throws {
    let folder = try TemporaryFolder()
    let here = TokenProvider()
    let scene = TokenScene(here, store: FileCredentialStore(path: folder.file))
    _ = try await scene.echo().get()
    try await scene.credentials.flushStore()

    let there = FileCredentialStore(path: folder.file)
    let stored = try await there.load()
    let login = try XCTUnwrap(stored?.login)
    try await there.save(StoredToken(AccessToken("newer"), expiry: nil, login: login))
    scene.accepted.update { $0 = ["Bearer newer"] }
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 1", "Bearer token 1", "Bearer newer"])
    XCTAssertEqual(here.count, 1)
    // If that is refused, too, there is no news.
    scene.accepted.update { $0 = ["Bearer token 2"] }
    _ = try await scene.echo().get()
    XCTAssertEqual(here.reasons, [.missing, .refused])
    XCTAssertEqual(here.previous, [nil, "newer"])
  }

  /// A server that gives out each refresh token for one use, and logs the user out if it comes twice.
  func testRefreshTokenIsUsedOnce() async throws {
    let folder = try TemporaryFolder()
    let used = Observed<[String]>([])
    try await FileCredentialStore(path: folder.file).save(
      StoredToken(AccessToken("old", refreshToken: "refresh 0"), expiry: Self.start - .seconds(1))
    )
    let clients = (0..<8).map { _ in
      let credentials = Credentials(
        for: ["api.test"],
        store: FileCredentialStore(path: folder.file, lockTimeout: .seconds(60)),
        wallClock: WallClock { Self.start }
      ) { refresh in
        let token = refresh.previous?.refreshToken ?? "none"
        let number = used.update { used in
          used.append(token)
          return used.count
        }
        // Time for the others to come.
        try await Task.sleep(for: .milliseconds(50))
        return AccessToken("new \(number)", refreshToken: "refresh \(number)", expiresIn: .seconds(3600))
      }
      let transport = InMemoryTransport()
      transport.onUnary(TestMethods.echo) { _, context in
        .with { $0.payload.text = context.requestHeaders.first("authorization") ?? "" }
      }
      return ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(
          host: "https://api.test",
          interceptors: [{ _ in CredentialsInterceptor(credentials) }]
        )
      )
    }
    let texts = try await withThrowingTaskGroup(of: String.self) { group in
      for client in clients {
        for _ in 0..<10 {
          group.addTask { try await client.unary(TestMethods.echo, .init()).get().payload.text }
        }
      }
      return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
    XCTAssertEqual(texts, ["Bearer new 1": 80])
    XCTAssertEqual(used.value, ["refresh 0"])
  }

  /// Another process has logged out: the next token belongs to another login, and calls of the former user end.
  func testLogoutOfAnotherProcess() async throws {
    let store = ScriptedStore()
    let provider = TokenProvider()
    let scene = TokenScene(provider, store: store)
    _ = try await scene.echo().get()
    try await scene.credentials.flushStore()
    store.held.update { $0 = nil }
    scene.accepted.update { $0 = ["Bearer token 2"] }
    let refused = await scene.echo()
    XCTAssertEqual(refused.code, .unauthenticated)
    XCTAssertEqual(refused.error?.message?.contains("another user"), true, refused.error?.message ?? "")
    XCTAssertEqual(provider.reasons, [.missing, .invalidated])
    XCTAssertEqual(provider.previous, [nil, nil])
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 1", "Bearer token 1", "Bearer token 2"])
  }

  /// Another process has another user: a call that has shown the former user's token does not go on as the other.
  func testLoginOfAnotherUserElsewhere() async throws {
    for isExpired in [false, true] {
      let store = ScriptedStore()
      let provider = TokenProvider()
      let scene = TokenScene(provider, store: store)
      _ = try await scene.echo().get()
      try await scene.credentials.flushStore()
      let other = StoredToken(
        AccessToken("other", refreshToken: "other's"),
        expiry: isExpired ? Self.start - .seconds(1) : nil
      )
      store.held.update { $0 = other }
      let next = isExpired ? "Bearer token 2" : "Bearer other"
      scene.accepted.update { $0 = [next] }
      let refused = await scene.echo()
      XCTAssertEqual(refused.code, .unauthenticated)
      XCTAssertEqual(refused.error?.message?.contains("another user"), true, refused.error?.message ?? "")
      _ = try await scene.echo().get()
      XCTAssertEqual(scene.seen.value, ["Bearer token 1", "Bearer token 1", next])
      XCTAssertEqual(provider.refreshTokens, isExpired ? [nil, "other's"] : [nil])
    }
  }

  /// While calls still use their token, the first of them looks for another one.
  func testTokenThatExpiresSoonIsReplacedByTheOneOfAnotherProcess() async throws {
    let store = ScriptedStore(
      StoredToken(TokenProvider.token(9), expiry: Self.start + .seconds(100), login: "me")
    )
    let provider = TokenProvider()
    let scene = TokenScene(provider, store: store)
    _ = try await scene.echo().get()
    store.held.update {
      $0 = StoredToken(TokenProvider.token(10), expiry: Self.start + .seconds(1000), login: "me")
    }
    scene.executor.advance(by: .seconds(60))
    _ = try await scene.echo().get()
    try await scene.executor.wait { !scene.credentials.isRefreshing }
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 9", "Bearer token 9", "Bearer token 10"])
    XCTAssertEqual(provider.count, 0)
  }
}
