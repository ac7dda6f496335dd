import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

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
}

/// Makes another attempt with the very request of the first, if that has failed.
private final class SentAgain: Interceptor {
  private var request: HTTPRequest<ByteBuffer>?
  private var hasRetried = false

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.request = request
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        guard response.error != nil, !self.hasRetried, let request = self.request else {
          return proceed(response)
        }
        self.hasRetried = true
        proceed.retry(request)
      }
    )
  }
}
