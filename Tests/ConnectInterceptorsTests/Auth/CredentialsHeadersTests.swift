import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// Credentials in several headers, signatures, and which errors mean that they are refused.
final class CredentialsHeadersTests: XCTestCase {
  /// A server that answers with what some headers say, and refuses as a test says.
  private struct Scene {
    let executor = VirtualExecutor()
    let transport: InMemoryTransport
    let seen = Observed<[Headers]>([])
    let refusal = Observed<@Sendable (Int) -> ConnectError?>({ _ in nil })
    let log = CallLogRecorder()

    init() {
      self.transport = InMemoryTransport(executor: self.executor)
      let check: @Sendable (ServerContext) throws -> Void = { [seen, refusal] context in
        let count = seen.update { seen in
          seen.append(context.requestHeaders)
          return seen.count
        }
        if let error = refusal.value(count) { throw error }
      }
      self.transport.onUnary(TestMethods.echo) { request, context in
        try check(context)
        return .with { $0.payload = request.payload }
      }
      self.transport.onServerStream(TestMethods.count) { _, responses, context in
        try check(context)
        try await responses.send(.init())
      }
    }

    func client(_ interceptors: InterceptorFactory...) -> ProtocolClient {
      let log = CallLog(logger: self.log.makeLogger(), options: .init(logsHeaders: true))
      return ProtocolClient(
        httpClient: self.transport,
        config: ProtocolClientConfig(
          host: "https://api.test",
          interceptors: interceptors + [{ LoggingInterceptor(log, config: $0) }]
        )
      )
    }

    func values(_ name: String) -> [[String]] { self.seen.value.map { $0[name] } }
  }

  func testSeveralHeaders() async throws {
    let scene = Scene()
    let count = Observed(0)
    let credentials = Credentials(for: ["api.test"]) { _ in
      let number = count.update { count in
        count += 1
        return count
      }
      return AccessToken("t\(number)", headers: ["X-Tenant": ["acme", "zorg"], "x-proof": ["p\(number)"]])
    }
    scene.refusal.update { $0 = { $0 == 2 ? ConnectError(code: .unauthenticated) : nil } }
    let client = scene.client({ _ in CredentialsInterceptor(credentials) })
    for _ in 0..<2 { _ = try await client.unary(TestMethods.echo, .init()).get() }
    XCTAssertEqual(scene.values("authorization"), [["Bearer t1"], ["Bearer t1"], ["Bearer t2"]])
    XCTAssertEqual(scene.values("x-tenant"), Array(repeating: ["acme", "zorg"], count: 3))
    XCTAssertEqual(scene.values("x-proof"), [["p1"], ["p1"], ["p2"]])
    let logged = scene.log.lines.compactMap { $0.metadata["rpc.request.metadata.x-proof"] }
    XCTAssertEqual(Set(logged), ["<redacted>"])
  }

  func testHeadersAlone() async throws {
    let scene = Scene()
    let token = AccessToken(headers: ["x-id": ["me"], "x-secret": ["s"]])
    let credentials = Credentials(for: ["api.test"], token: token) { _ in throw ConnectError(code: .aborted) }
    XCTAssertFalse("\(token)".contains("me") || String(reflecting: token).contains("x-secret"))
    let client = scene.client({ _ in CredentialsInterceptor(credentials) })
    _ = try await client.unary(TestMethods.echo, .init()).get()
    // Credentials of the call's own.
    _ = try await client.unary(
      TestMethods.echo,
      .init(),
      options: CallOptions(headers: ["x-secret": ["other"]])
    ).get()
    XCTAssertEqual(scene.values("authorization"), [[], []])
    XCTAssertEqual(scene.values("x-id"), [["me"], []])
    XCTAssertEqual(scene.values("x-secret"), [["s"], ["other"]])
  }

  /// Each attempt has its own signature, over the bytes that a unary call sends.
  func testSigner() async throws {
    let scene = Scene()
    let credentials = Credentials(
      for: ["api.test"],
      signer: { request, token in
        await Task.yield()
        let size = request.message.map { "\($0.readableBytes)" } ?? "none"
        return ["x-signature": ["\(token.value) \(request.url.path) \(size)"], "x-key": ["k"]]
      },
      provider: { $0.previous == nil ? AccessToken("a") : AccessToken("b") }
    )
    scene.refusal.update {
      $0 = { number in
        switch number {
        case 1: ConnectError(code: .unavailable)
        case 2: ConnectError(code: .unauthenticated)
        default: nil
        }
      }
    }
    let budget = RetryBudget()
    let policy = RetryPolicy(backoff: Backoff(base: .zero), methods: { _ in true })
    let client = scene.client(
      { _ in CredentialsInterceptor(credentials) },
      { _ in RetryInterceptor(policy: policy, budget: budget) }
    )
    _ = try await client.unary(TestMethods.echo, .text("xyz")).get()
    let path = TestMethods.echo.info.path
    XCTAssertEqual(scene.values("x-signature"), [["a \(path) 7"], ["a \(path) 7"], ["b \(path) 7"]])
    XCTAssertEqual(scene.values("x-key"), [["k"], ["k"], ["k"]])
    XCTAssertEqual(scene.values("authorization"), [[], [], []])
    _ = try await client.serverStream(TestMethods.count, .init()).results.collected().requireMessages()
    XCTAssertEqual(scene.values("x-signature").last, ["b \(TestMethods.count.info.path) none"])
  }

  func testSignerThatFails() async throws {
    struct NoKey: Error {}
    let scene = Scene()
    let credentials = Credentials(
      for: ["api.test"],
      token: AccessToken("a"),
      signer: { _, _ in throw NoKey() },
      provider: { _ in AccessToken("b") }
    )
    let error = await scene.client({ _ in CredentialsInterceptor(credentials) })
      .unary(TestMethods.echo, .init()).error
    XCTAssertEqual(error?.code, .unauthenticated)
    XCTAssertTrue(error?.exception is NoKey)
    XCTAssertEqual(scene.seen.value.count, 0)
  }

  /// The task of a signature ends with the call.
  func testSignerOfACancelledCall() async throws {
    let scene = Scene()
    let events = Observed<[String]>([])
    let credentials = Credentials(
      for: ["api.test"],
      token: AccessToken("a"),
      signer: { _, _ in
        events.update { $0.append("begun") }
        do {
          try await Task.sleep(for: .seconds(600))
        } catch {
          events.update { $0.append("cancelled") }
          throw error
        }
        return [:]
      },
      provider: { _ in AccessToken("b") }
    )
    let client = scene.client({ _ in CredentialsInterceptor(credentials) })
    let handle = client.unary(TestMethods.echo, .init()) { _ in }
    let hasBegun = await events.wait(within: .seconds(60)) { $0 == ["begun"] ? true : nil }
    XCTAssertEqual(hasBegun, true)
    handle.cancel()
    let hasEnded = await events.wait(within: .seconds(60)) { $0 == ["begun", "cancelled"] ? true : nil }
    XCTAssertEqual(hasEnded, true)
  }

  func testWhatCountsAsRefusal() async throws {
    for isStream in [false, true] {
      for (code, text, attempts) in [
        (Code.permissionDenied, "token expired", 2), (.permissionDenied, "not yours", 1),
        (.unauthenticated, "who are you?", 1),
      ] {
        let scene = Scene()
        let configuration = Credentials.Configuration(isRefusal: {
          $0.code == .permissionDenied && $0.message == "token expired"
        })
        let credentials = Credentials(for: ["api.test"], configuration: configuration) { _ in AccessToken("t")
        }
        scene.refusal.update { $0 = { $0 == 1 ? ConnectError(code: code, message: text) : nil } }
        let client = scene.client({ _ in CredentialsInterceptor(credentials) })
        if isStream {
          _ = try await client.serverStream(TestMethods.count, .init()).results.collected()
        } else {
          _ = await client.unary(TestMethods.echo, .init())
        }
        XCTAssertEqual(scene.seen.value.count, attempts, "\(code) \(text)")
      }
    }
  }
}
