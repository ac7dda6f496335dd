import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

@testable import ConnectInterceptors

/// What belongs to one attempt of a call, and what to a call that is over.
final class CredentialsAttemptTests: XCTestCase {
  private final class Tracked: Sendable {}

  private enum TrackedKey: CallContextKey {
    static let defaultValue: Tracked? = nil
  }

  /// A call that ends while it waits for a token is let go of with its request, however long the refresh still takes.
  func testCallThatEndsWhileItWaitsIsLetGoOf() async throws {
    for cancels in [false, true] {
      let provider = TokenProvider(isOpen: false)
      let scene = TokenScene(provider)
      weak var request: Tracked?
      let code = Observed<Code?>(nil)
      do {
        let tracked = Tracked()
        request = tracked
        var options = CallOptions(timeout: cancels ? nil : .seconds(1))
        options.context[TrackedKey.self] = tracked
        let call = scene.client.unary(TestMethods.echo, .init(), options: options) { response in
          code.update { $0 = response.code }
        }
        scene.executor.runUntilIdle()
        XCTAssertNotNil(request)
        if cancels { call.cancel() }
      }
      scene.executor.advance(by: .seconds(1))
      XCTAssertEqual(code.value, cancels ? .canceled : .deadlineExceeded)
      XCTAssertNil(request, "the refresh holds the call")
      // And nobody else is disturbed.
      let other = scene.startEchoes(1)
      provider.open()
      let outcomes = await other.wait(for: 1)
      XCTAssertEqual(outcomes.map(\.code), [.ok])
      XCTAssertEqual(provider.count, 1)
    }
  }

  /// A host that was shown no token refuses none.
  func testRefusalOfAnotherHostKeepsTheToken() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    let attempts = Observed(0)
    scene.transport.onUnary(TestMethods.echo) { _, context in
      scene.seen.update { $0.append(context.requestHeaders.first("authorization")) }
      switch attempts.update({
        $0 += 1; return $0
      }) {
      case 1: throw ConnectError(code: .unavailable)
      case 2: throw ConnectError(code: .unauthenticated)
      default: return .init()
      }
    }
    let elsewhere = Adapter { request, _ in
      var request = request
      if attempts.value > 0 { request.url.origin = Origin(scheme: .https, host: "elsewhere.test", port: 443) }
      return request
    }
    let once = Retrier { $0.error.code == .unavailable ? .retry : .doNotRetry }
    let credentials = scene.credentials
    let client = ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [
          { _ in RequestInterceptor(adapters: [elsewhere], retriers: [once]) },
          { _ in CredentialsInterceptor(credentials) },
        ]
      )
    )
    let response = await client.unary(TestMethods.echo, .init())
    XCTAssertEqual(response.code, .unauthenticated)
    XCTAssertEqual(scene.seen.value, ["Bearer token 1", nil])
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value.last, "Bearer token 1")
    XCTAssertEqual(provider.count, 1)
  }

  /// An interceptor inside sends the request again as it was, with the token in it, which then is refused.
  func testRequestThatComesBackWithTheToken() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    scene.accepted.update { $0 = ["Bearer token 2"] }
    let credentials = scene.credentials
    let client = ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [{ _ in CredentialsInterceptor(credentials) }, { _ in SentAgain() }]
      )
    )
    _ = try await client.unary(TestMethods.echo, .init()).get()
    XCTAssertEqual(scene.seen.value, ["Bearer token 1", "Bearer token 1", "Bearer token 2"])
    XCTAssertEqual(provider.count, 2)
  }

  private func client(of scene: TokenScene, sendingAgainTo origin: Origin, times: Int = 1) -> ProtocolClient {
    let credentials = scene.credentials
    return ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [
          { _ in CredentialsInterceptor(credentials) },
          { _ in SentAgain(to: origin, times: times) },
        ]
      )
    )
  }

  /// An interceptor inside sends the request with the token in it elsewhere, where the token is not for.
  func testRequestThatComesBackForAnotherHost() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    scene.accepted.update { $0 = [] }
    let elsewhere = Origin(scheme: .https, host: "elsewhere.test", port: 443)
    let response = await self.client(of: scene, sendingAgainTo: elsewhere, times: 2)
      .unary(TestMethods.echo, .init(), options: CallOptions(headers: ["x-other": ["1"]]))
    XCTAssertEqual(response.code, .unauthenticated)
    XCTAssertEqual(scene.seen.value, ["Bearer token 1", nil, nil])
    // And that host has refused no token.
    scene.accepted.update { $0 = nil }
    _ = try await scene.echo().get()
    XCTAssertEqual(scene.seen.value.last, "Bearer token 1")
    XCTAssertEqual(provider.count, 1)
  }

  func testRequestThatComesBackWithoutTLS() async throws {
    let provider = TokenProvider()
    let scene = TokenScene(provider)
    scene.accepted.update { $0 = [] }
    let cleartext = Origin(scheme: .http, host: "api.test", port: 80)
    let error = await self.client(of: scene, sendingAgainTo: cleartext).unary(TestMethods.echo, .init()).error
    XCTAssertEqual(error?.code, .unauthenticated)
    XCTAssertEqual(error?.message?.contains("without TLS"), true, "\(error as Any)")
    XCTAssertEqual(scene.seen.value, ["Bearer token 1"])
  }

  /// A token that adds no headers is shown by no request that comes back.
  func testNoHeadersShowNothing() {
    let shown = ShownCredentials()
    let first = shown.begin(["x-other": ["1"]])
    XCTAssertTrue(first.shown.isEmpty)
    shown.show([:], of: 1, in: first.attempt)
    XCTAssertEqual(shown.generation, 1)
    let second = shown.begin(["x-other": ["1"]])
    XCTAssertTrue(second.shown.isEmpty)
    XCTAssertEqual(shown.generation, 0)
    XCTAssertEqual(shown.firstGeneration, 1)
  }
}

/// Makes other attempts with the very request of the first, perhaps to another server, if that has failed.
private final class SentAgain: Interceptor {
  private let origin: Origin?
  private var request: HTTPRequest<ByteBuffer>?
  private var remaining: Int

  init(to origin: Origin? = nil, times: Int = 1) {
    self.origin = origin
    self.remaining = times
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        if self.request == nil { self.request = request }
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        guard response.error != nil, self.remaining > 0, var request = self.request else {
          return proceed(response)
        }
        self.remaining -= 1
        if let origin = self.origin { request.url.origin = origin }
        proceed.retry(request)
      }
    )
  }
}
