import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

@testable import ConnectInterceptors

/// Providers that call through the client whose calls wait for them, in tasks that inherit nothing.
final class CredentialsStallTests: XCTestCase {
  private struct Scene {
    let executor = VirtualExecutor()
    let client: ProtocolClient
    let refreshes = Observed(0)
    let logins = Observed<[String?]>([])

    /// - Parameters:
    ///   - usesOptions: Whether the provider makes its call with the refresh's options.
    ///   - configuration: Of the credentials.
    init(usesOptions: Bool = false, configuration: Credentials.Configuration = .defaults) {
      let transport = InMemoryTransport(executor: self.executor)
      transport.onUnary(TestMethods.lookup) { [logins] _, context in
        logins.update { $0.append(context.requestHeaders.first("authorization")) }
        return .with { $0.value = "t" }
      }
      transport.onUnary(TestMethods.echo) { _, context in
        .with { $0.payload.text = context.requestHeaders.first("authorization") ?? "nobody" }
      }
      let clients = Observed<ProtocolClient?>(nil)
      let credentials = Credentials(
        for: ["api.test"],
        configuration: configuration,
        clock: self.executor.clock
      ) { [refreshes] refresh in
        refreshes.update { $0 += 1 }
        guard let client = clients.value else { throw ConnectError(code: .aborted) }
        let options = usesOptions ? refresh.options : CallOptions()
        let response = await Task.detached {
          await client.unary(TestMethods.lookup, .init(), options: options)
        }
        .value
        return AccessToken(try response.get().value)
      }
      let client = ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(
          host: "https://api.test",
          interceptors: [{ _ in CredentialsInterceptor(credentials) }]
        )
      )
      clients.update { $0 = client }
      self.client = client
    }

    func echo() async throws -> ResponseMessage<Connect_Test_V1_EchoResponse> {
      try await self.executor.lettingTimePass { [client] in await client.unary(TestMethods.echo, .init()) }
    }
  }

  func testWithTheOptionsOfTheRefresh() async throws {
    let scene = Scene(usesOptions: true)
    let message = try await scene.client.unary(TestMethods.echo, .init()).get()
    XCTAssertEqual(message.payload.text, "Bearer t")
    XCTAssertEqual(scene.logins.value, [nil])
    XCTAssertEqual(scene.executor.now, .zero)
  }

  func testWithAMethodThatNeedsNoCredentials() async throws {
    let login = TestMethods.lookup.info.path
    let scene = Scene(configuration: .init(methods: { $0.path != login }))
    let message = try await scene.client.unary(TestMethods.echo, .init()).get()
    XCTAssertEqual(message.payload.text, "Bearer t")
    XCTAssertEqual(scene.logins.value, [nil])
    XCTAssertEqual(scene.executor.now, .zero)
  }

  /// Without either, it is found out before the refresh has timed out, and the error says what to do.
  func testWithNeither() async throws {
    let scene = Scene()
    let task = Task { await scene.client.unary(TestMethods.echo, .init()) }
    try await scene.executor.wait { scene.executor.scheduled == [.seconds(10), .seconds(30)] }
    scene.executor.advance(by: .seconds(10))
    let error = await task.value.error
    XCTAssertEqual(error?.code, .unauthenticated)
    XCTAssertEqual(error?.message?.contains("options"), true, "\(error as Any)")
    XCTAssertEqual(scene.executor.now, .seconds(10))
    XCTAssertEqual(scene.logins.value, [])
    try await scene.executor.wait { scene.executor.scheduled.isEmpty }
  }

  /// Calls of a method that has waited for a refresh before are not the provider's, however long it takes.
  func testOrdinaryCallsWaitOn() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider)
    scene.transport.onUnary(TestMethods.lookup) { _, _ in .init() }
    let lookups = Observed<[Code]>([])
    let look: @Sendable () -> Void = {
      scene.client.unary(TestMethods.lookup, .init()) { response in
        lookups.update { $0.append(response.code) }
      }
    }
    // The first time it is not known of them.
    let first = scene.startEchoes(2)
    look()
    try await scene.executor.wait { scene.executor.scheduled == [.seconds(10), .seconds(30)] }
    scene.executor.advance(by: .seconds(9))
    provider.open()
    let codes = await first.wait(for: 2).map(\.code)
    XCTAssertEqual(codes, [.ok, .ok])
    _ = await lookups.wait(within: .seconds(60)) { $0 == [.ok] ? true : nil }
    XCTAssertEqual(lookups.value, [.ok])
    try await scene.executor.wait { scene.executor.scheduled.isEmpty }
  }

  func testLateCallsOfAStalledRefreshFailAtOnce() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider)
    let calls = scene.startEchoes(2)
    try await scene.executor.wait { scene.executor.scheduled == [.seconds(30)] }
    scene.executor.advance(by: .seconds(20))
    let error = await scene.client.unary(TestMethods.lookup, .init()).error
    XCTAssertEqual(error?.code, .unauthenticated)
    provider.open()
    let codes = await calls.wait(for: 2).map(\.code)
    XCTAssertEqual(codes, [.ok, .ok])
  }

  /// What comes late from an earlier refresh leaves the timer of a later one alone.
  func testTimerOfTheNewestRefresh() {
    func makeTask() -> Task<Void, Never> { Task { _ = try? await Task.sleep(for: .seconds(600)) } }
    let timer = StallTimer()
    let second = makeTask()
    timer.set(second, for: 2)
    timer.cancel(upTo: 1)
    let first = makeTask()
    timer.set(first, for: 1)
    XCTAssertTrue(first.isCancelled)
    XCTAssertFalse(second.isCancelled)
    let third = makeTask()
    timer.set(third, for: 3)
    XCTAssertTrue(second.isCancelled)
    XCTAssertFalse(third.isCancelled)
    timer.cancel(upTo: 3)
    XCTAssertTrue(third.isCancelled)
  }

  func testOutcomesSayOfWhichRefreshTheyAre() {
    var state = CredentialsState(.defaults, token: nil, now: .zero)
    let firstAnswer = state.take(now: .zero, for: "/a", shown: 0, waiter: { _ in })
    guard case .wait(_, .some(let first)) = firstAnswer else { return XCTFail("no refresh") }
    let invalidation = state.invalidate().refresh
    XCTAssertEqual(invalidation, first.id)
    let secondAnswer = state.take(now: .zero, for: "/a", shown: 0, waiter: { _ in })
    guard case .wait(_, .some(let second)) = secondAnswer else { return XCTFail("no refresh") }
    let end = state.finish(second.id, .success(AccessToken("b")), now: .zero)?.refresh
    XCTAssertEqual(end, second.id)
    XCTAssertGreaterThan(second.id, first.id)
  }
}
