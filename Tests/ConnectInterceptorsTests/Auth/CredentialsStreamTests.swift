import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// Credentials of streams, in each protocol.
final class CredentialsStreamTests: XCTestCase {
  private static let protocols: [NetworkProtocol] = [.connect, .grpc, .grpcWeb]

  func testServerStreamIsStartedAgain() async throws {
    for networkProtocol in Self.protocols {
      let provider = TokenProvider()
      let scene = TokenScene(provider, token: AccessToken("revoked"), networkProtocol: networkProtocol)
      scene.accepted.update { $0 = ["Bearer token 1"] }
      let stream = try await scene.client.serverStream(TestMethods.count, .with { $0.from = 7 }).results
        .collected()
      XCTAssertEqual(try stream.requireMessages().map(\.number), [7], "\(networkProtocol)")
      XCTAssertEqual(scene.seen.value, ["Bearer revoked", "Bearer token 1"], "\(networkProtocol)")
      XCTAssertEqual(provider.reasons, [.refused], "\(networkProtocol)")
    }
  }

  func testStreamOfRequestsIsSentAgain() async throws {
    for networkProtocol in Self.protocols {
      let provider = TokenProvider()
      let scene = TokenScene(provider, token: AccessToken("revoked"), networkProtocol: networkProtocol)
      scene.accepted.update { $0 = ["Bearer token 1"] }
      let stream = scene.client.bidirectionalStream(TestMethods.converse)
      for word in ["a", "b"] { try await stream.send(.with { $0.payload.text = word }) }
      stream.finish()
      let collected = try await stream.results.collected()
      XCTAssertEqual(try collected.requireMessages().map(\.payload.text), ["a", "b"], "\(networkProtocol)")
      XCTAssertEqual(provider.count, 1, "\(networkProtocol)")
    }
  }

  func testOnlyOneMoreAttempt() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    scene.accepted.update { $0 = [] }
    let stream = try await scene.client.serverStream(TestMethods.count, .init()).results.collected()
    XCTAssertEqual(stream.error?.code, .unauthenticated)
    XCTAssertEqual(scene.seen.value, ["Bearer token 1", "Bearer token 2"])
  }

  func testRefusalAfterAMessagePassesOn() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    scene.transport.onServerStream(TestMethods.count) { _, responses, _ in
      try await responses.send(.with { $0.number = 1 })
      throw ConnectError(code: .unauthenticated, message: "your session ended")
    }
    let stream = try await scene.client.serverStream(TestMethods.count, .init()).results.collected()
    XCTAssertEqual(stream.messages.map(\.number), [1])
    XCTAssertEqual(stream.error?.message, "your session ended")
    // The next call has another token.
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 2"])
  }

  func testRefusalPassesOnWhereNoOtherAttemptIsPossible() async throws {
    for networkProtocol in Self.protocols {
      let provider = TokenProvider()
      let scene = TokenScene(
        provider,
        networkProtocol: networkProtocol,
        retries: .init(maximumRetries: 0)
      )
      scene.accepted.update { $0 = [] }
      let stream = try await scene.client.serverStream(TestMethods.count, .init()).results.collected()
      XCTAssertEqual(stream.error?.code, .unauthenticated, "\(networkProtocol)")
      let response = await scene.echo()
      XCTAssertEqual(response.code, .unauthenticated, "\(networkProtocol)")
      XCTAssertEqual(scene.seen.value, ["Bearer token 1", "Bearer token 2"], "\(networkProtocol)")
    }
  }

  /// Headers that come long before the first message, as those of a subscription do, come soon.
  func testHeadersAreHeldBackForAMomentOnly() async throws {
    let scene = TokenScene(TokenProvider(), token: AccessToken("t"))
    scene.transport.onServerStream(TestMethods.count) { _, responses, context in
      try await context.sendHeaders()
      try await context.sleep(for: .seconds(100))
      try await responses.send(.with { $0.number = 1 })
    }
    let results = Observed<[StreamResult<Connect_Test_V1_CountResponse>]>([])
    scene.client.serverStream(TestMethods.count, .init()) { result in results.update { $0.append(result) } }
    try await scene.executor.wait { scene.executor.scheduled == [.milliseconds(50), .seconds(100)] }
    XCTAssertEqual(results.value.count, 0)
    scene.executor.advance(by: .milliseconds(50))
    try await scene.executor.wait { results.value.count == 1 }
    guard case .headers = results.value[0] else { return XCTFail("\(results.value)") }
    scene.executor.advance(by: .seconds(100))
    try await scene.executor.wait { results.value.count == 3 }
  }

  func testHeadersPassOnce() async throws {
    let executor = VirtualExecutor()
    let credentials = Credentials(for: ["interceptor.test"], token: AccessToken("t"), clock: executor.clock) {
      _ in
      AccessToken("u")
    }
    let driver = InterceptorDriver(executor: executor) { _ in CredentialsInterceptor(credentials) }
    _ = try await driver.stream.request(driver.makeRequest(message: ())).outcome
    // By time.
    let late = driver.stream.result(.headers([:]))
    XCTAssertTrue(late.verbs.isEmpty)
    _ = try await late.outcome
    XCTAssertEqual(executor.now, .milliseconds(50))
    _ = try await driver.stream.result(.message(ByteBuffer())).outcome
    _ = try await late.outcome
    // By what comes behind.
    let early = driver.stream.result(.headers([:]))
    XCTAssertTrue(early.verbs.isEmpty)
    _ = try await driver.stream.result(.message(ByteBuffer())).outcome
    XCTAssertEqual(early.verbs.count, 1)
    executor.advance(by: .seconds(1))
    _ = try await early.outcome
  }

  func testHeadersAreNotHeldBackWithoutADelay() async throws {
    let scene = TokenScene(
      TokenProvider(),
      token: AccessToken("t"),
      configuration: .init(streamHeaderDelay: .zero)
    )
    scene.transport.onServerStream(TestMethods.count) { _, _, context in
      try await context.sendHeaders()
      try await context.sleep(for: .seconds(100))
    }
    let results = Observed<[StreamResult<Connect_Test_V1_CountResponse>]>([])
    let handle = scene.client.serverStream(TestMethods.count, .init()) { result in
      results.update { $0.append(result) }
    }
    try await scene.executor.wait { results.value.count == 1 }
    handle.cancel()
    try await scene.executor.wait { results.value.count == 2 }
  }

  func testWaitingStreamKeepsItsDeadline() async throws {
    let provider = TokenProvider(isOpen: false)
    let scene = TokenScene(provider)
    let ends = Observed<[Code]>([])
    scene.client.serverStream(TestMethods.count, .init(), options: CallOptions(timeout: .seconds(3))) {
      result in
      if case .complete(let code, _, _) = result { ends.update { $0.append(code) } }
    }
    scene.executor.advance(by: .seconds(3))
    XCTAssertEqual(ends.value, [.deadlineExceeded])
    provider.open()
    _ = try await scene.echo().get()
    XCTAssertEqual(ends.value, [.deadlineExceeded])
    XCTAssertEqual(provider.count, 1)
  }
}
