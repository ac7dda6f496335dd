import Connect
import ConnectInterceptors
import ConnectTesting
import Foundation
import Logging
import LoopbackServer
import SwiftProtobuf
import XCTest

/// Credentials with a store: logins that survive a restart.
final class CredentialStoreTests: XCTestCase {
  private static let start = Duration.seconds(1_700_000_000)

  func testLoginSurvivesARestart() async throws {
    let folder = try TemporaryFolder()
    let before = TokenProvider(lifetime: .seconds(1000))
    let first = TokenScene(before, store: FileCredentialStore(path: folder.file))
    _ = try await first.echo().get()
    try await first.credentials.flushStore()
    XCTAssertEqual(before.reasons, [.missing])

    let after = TokenProvider()
    let second = TokenScene(after, store: FileCredentialStore(path: folder.file))
    for _ in 0..<3 { _ = try await second.echo().get() }
    XCTAssertEqual(second.seen.value, ["Bearer token 1", "Bearer token 1", "Bearer token 1"])
    XCTAssertEqual(after.count, 0)
  }

  func testSchemeAndHeadersSurvive() async throws {
    let folder = try TemporaryFolder()
    let token = AccessToken("t", headers: ["x-tenant": ["acme"]], scheme: "DPoP")
    let first = TokenScene(TokenProvider(), store: FileCredentialStore(path: folder.file))
    first.credentials.update(token)
    try await first.credentials.flushStore()
    let second = TokenScene(TokenProvider(), store: FileCredentialStore(path: folder.file))
    let tenant = Observed<[String]>([])
    second.transport.onUnary(TestMethods.echo) { _, context in
      tenant.update { $0 = context.requestHeaders["x-tenant"] + context.requestHeaders["authorization"] }
      return .init()
    }
    _ = try await second.echo().get()
    XCTAssertEqual(tenant.value, ["acme", "DPoP t"])
  }

  // MARK: Expiry

  func testStoredTokenExpiresByWallClock() async throws {
    let stored = StoredToken(TokenProvider.token(9), expiry: Self.start + .seconds(100))
    let provider = TokenProvider()
    let executor = VirtualExecutor()
    executor.advance(by: .seconds(10))
    let scene = TokenScene(
      provider,
      executor: executor,
      store: MemoryCredentialStore(stored),
      configuration: .init(refreshAhead: .zero)
    )
    _ = try await scene.echo().get()
    executor.advance(by: .seconds(89))
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 9", "Bearer token 9"])
    executor.advance(by: .seconds(2))
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value.last, "Bearer token 1")
    XCTAssertEqual(provider.reasons, [.expired])
    XCTAssertEqual(provider.refreshTokens, ["refresh 9"])
  }

  func testExpiredTokenIsWhatTheProviderStartsFrom() async throws {
    let stored = StoredToken(TokenProvider.token(9), expiry: Self.start - .seconds(1))
    let store = MemoryCredentialStore(stored)
    let provider = TokenProvider(lifetime: .seconds(50)) { number in
      number == 1 ? ConnectError(code: .unavailable, message: "no network yet") : nil
    }
    let scene = TokenScene(provider, store: store)
    let failed = await scene.echo()
    XCTAssertEqual(failed.code, .unavailable)
    XCTAssertEqual(store.load(), stored)
    // The failure does not lose the refresh token.
    _ = try await scene.echo().get()
    XCTAssertEqual(provider.reasons, [.expired, .expired])
    XCTAssertEqual(provider.refreshTokens, ["refresh 9", "refresh 9"])
    try await scene.credentials.flushStore()
    XCTAssertEqual(
      store.load(),
      StoredToken(TokenProvider.token(2), expiry: Self.start + .seconds(50), login: stored.login)
    )
  }

  func testExtremeExpiries() async throws {
    for expiry in [Duration.seconds(Int64.max), .seconds(Int64.min), .zero, .seconds(-1)] {
      let provider = TokenProvider(lifetime: .seconds(Int64.max))
      let stored = StoredToken(TokenProvider.token(9), expiry: expiry)
      let scene = TokenScene(provider, store: MemoryCredentialStore(try StoredToken(encoded: stored.encoded)))
      _ = try await scene.echo().get()
      XCTAssertEqual(scene.seen.value, [expiry > .seconds(1) ? "Bearer token 9" : "Bearer token 1"])
      try await scene.credentials.flushStore()
    }
  }

  // MARK: Broken stores

  func testBrokenFileFailsCallsAndIsNoLogout() async throws {
    let folder = try TemporaryFolder()
    try folder.write(#"{"version": 1, "acc"#)
    let provider = TokenProvider()
    let scene = TokenScene(provider, store: FileCredentialStore(path: folder.file))
    // More often than tokens may be fetched.
    for _ in 0..<10 {
      let error = await scene.echo().error
      XCTAssertEqual(error?.code, .dataLoss)
      XCTAssertEqual(error?.message?.contains(folder.file), true, error?.message ?? "")
    }
    XCTAssertEqual(provider.count, 0)
    XCTAssertEqual(scene.seen.value, [])
    XCTAssertEqual(try String(contentsOfFile: folder.file, encoding: .utf8), #"{"version": 1, "acc"#)
    // A login repairs it.
    scene.credentials.update(AccessToken("new"))
    try await scene.credentials.flushStore()
    _ = try await scene.echo().get()
    let stored = try await FileCredentialStore(path: folder.file).load()
    XCTAssertEqual(stored?.token.value, "new")
  }

  func testErrorOfAnotherStoreIsTheCause() async throws {
    let store = ScriptedStore()
    store.loadTrouble.update { $0 = .error(ScriptedStore.Failure()) }
    let scene = TokenScene(TokenProvider(), store: store)
    let outcomes = await scene.startEchoes(100).wait(for: 100)
    XCTAssertEqual(outcomes.count, 100)
    XCTAssertEqual(Set(outcomes.map(\.code)), [.unauthenticated])
    XCTAssertTrue(outcomes[0].error?.exception is ScriptedStore.Failure)
    store.loadTrouble.update { $0 = nil }
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 1"])
  }

  func testFailedSaveIsAWarning() async throws {
    let log = CallLogRecorder()
    let store = ScriptedStore(StoredToken(TokenProvider.token(9), expiry: Self.start - .seconds(1)))
    store.saveTrouble.update { $0 = .error(ConnectError(code: .unavailable, message: "disk full")) }
    let provider = TokenProvider(lifetime: .seconds(100))
    let scene = TokenScene(provider, store: store, logger: log.makeLogger())
    _ = try await scene.echo().get()
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 1", "Bearer token 1"])
    do {
      try await scene.credentials.flushStore()
      XCTFail("no error")
    } catch {
      XCTAssertEqual((error as? ConnectError)?.code, .unavailable)
    }
    XCTAssertEqual(log.texts, ["the credentials were not saved in the store: disk full"])
    XCTAssertEqual(log.lines.map(\.level), [.warning])
    // The store still has what was read: that is no news, and its refresh token is used up.
    store.saveTrouble.update { $0 = nil }
    scene.executor.advance(by: .seconds(101))
    _ = try await scene.echo().get()
    XCTAssertEqual(provider.refreshTokens, ["refresh 9", "refresh 1"])
    try await scene.credentials.flushStore()
    XCTAssertEqual(store.held.value?.token.value, "token 2")
  }

  func testHangingLoad() async throws {
    let store = ScriptedStore()
    store.loadTrouble.update { $0 = .hangs }
    let provider = TokenProvider()
    let scene = TokenScene(provider, store: store)
    let patient = scene.startEchoes(100)
    let hasty = scene.startEchoes(1, options: CallOptions(timeout: .seconds(5)))
    try await scene.executor.wait { store.loads.value == 1 }
    scene.executor.advance(by: .seconds(5))
    let hastyCodes = await hasty.wait(for: 1).map(\.code)
    XCTAssertEqual(hastyCodes, [.deadlineExceeded])
    XCTAssertEqual(patient.outcomes.value.count, 0)
    patient.cancel(0)
    scene.executor.advance(by: .seconds(26))
    let outcomes = await patient.wait(for: 100)
    XCTAssertEqual(outcomes.filter { $0.code == .canceled }.count, 1)
    XCTAssertEqual(outcomes.filter { $0.code == .deadlineExceeded }.count, 99)
    XCTAssertEqual(store.loads.value, 1)
    XCTAssertEqual(provider.count, 0)
    // A late answer of the store helps nobody, and harms nobody.
    store.loadTrouble.update { $0 = nil }
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 1"])
  }

  func testHangingSaveHoldsNoCallUp() async throws {
    let store = ScriptedStore()
    store.saveTrouble.update { $0 = .hangs }
    let provider = TokenProvider(lifetime: .seconds(10))
    let scene = TokenScene(provider, store: store)
    for number in 1...3 {
      _ = try await scene.echo().get()
      XCTAssertEqual(scene.seen.value.last, "Bearer token \(number)")
      scene.executor.advance(by: .seconds(10))
    }
    let flush = Task { try await scene.credentials.flushStore() }
    flush.cancel()
    let cancelled = await flush.result
    XCTAssertThrowsError(try cancelled.get()) { XCTAssertTrue($0 is CancellationError) }
    store.saveTrouble.update { $0 = nil }
    try await scene.credentials.flushStore()
    XCTAssertEqual(store.held.value?.token.value, "token 3")
    XCTAssertEqual(store.saves.value, 2)
  }

  // MARK: Changes of the user

  func testInvalidateClears() async throws {
    let folder = try TemporaryFolder()
    let scene = TokenScene(TokenProvider(), store: FileCredentialStore(path: folder.file))
    _ = try await scene.echo().get()
    try await scene.credentials.flushStore()
    XCTAssertEqual(folder.names, ["credentials.json"])
    scene.credentials.invalidate()
    try await scene.credentials.flushStore()
    XCTAssertEqual(folder.names, [])
    let provider = TokenProvider()
    let next = TokenScene(provider, store: FileCredentialStore(path: folder.file))
    _ = try await next.echo().get()
    XCTAssertEqual(provider.previous, [nil])
  }

  func testLogoutThatFailsIsNotUndone() async throws {
    let log = CallLogRecorder()
    let store = ScriptedStore(StoredToken(AccessToken("former"), expiry: nil))
    let provider = TokenProvider()
    let scene = TokenScene(provider, store: store, logger: log.makeLogger())
    _ = try await scene.echo().get()
    store.clearTrouble.update { $0 = .error(ConnectError(code: .unknown, message: "read-only")) }
    store.saveTrouble.update { $0 = .error(ConnectError(code: .unknown, message: "read-only")) }
    scene.credentials.invalidate()
    _ = try? await scene.credentials.flushStore()
    for number in 1...3 {
      _ = try await scene.echo().get()
      XCTAssertEqual(scene.seen.value.last, "Bearer token \(number)")
      scene.credentials.invalidate()
    }
    XCTAssertEqual(store.held.value?.token.value, "former")
    XCTAssertEqual(provider.previous, [nil, nil, nil])
    XCTAssertEqual(log.texts.first, "the credentials were not removed from the store: read-only")
  }

  /// What a refresh brings for the former user is not stored either.
  func testInvalidateDuringARefresh() async throws {
    let folder = try TemporaryFolder()
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider, store: FileCredentialStore(path: folder.file))
    let calls = scene.startEchoes(3)
    try await scene.executor.wait { provider.count == 1 }
    scene.credentials.invalidate()
    let codes = await calls.wait(for: 3).map(\.code)
    XCTAssertEqual(codes, [.unauthenticated, .unauthenticated, .unauthenticated])
    // The refresh has given the lock back, though its provider goes on.
    try await scene.credentials.flushStore()
    provider.open()
    try await scene.executor.wait { scene.executor.scheduled.isEmpty }
    try await scene.credentials.flushStore()
    XCTAssertEqual(folder.names, [])
  }

  func testLatestOfManyChangesIsStored() async throws {
    for isFile in [false, true] {
      let folder = try TemporaryFolder()
      let store: any CredentialStore = isFile ? FileCredentialStore(path: folder.file) : ScriptedStore()
      let scene = TokenScene(TokenProvider(), store: store)
      for number in 0..<1000 {
        scene.credentials.invalidate()
        scene.credentials.update(AccessToken("user \(number)"))
      }
      try await scene.credentials.flushStore()
      let stored = try await store.load()
      XCTAssertEqual(stored?.token.value, "user 999")
      scene.credentials.update(AccessToken("last"))
      scene.credentials.invalidate()
      try await scene.credentials.flushStore()
      let cleared = try await store.load()
      XCTAssertNil(cleared)
    }
  }

  func testWithoutAStoreFlushReturnsAtOnce() async throws {
    let scene = TokenScene(TokenProvider())
    scene.credentials.update(AccessToken("t"))
    try await scene.credentials.flushStore()
  }
}
