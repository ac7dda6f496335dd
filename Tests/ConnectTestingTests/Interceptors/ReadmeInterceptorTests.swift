import Connect
import ConnectTesting
import NIOCore
import XCTest

/// The examples of the README, "Testing an interceptor".
final class TokenInterceptorTests: XCTestCase {
  func testAddsTheToken() async throws {
    let driver = InterceptorDriver { TokenInterceptor(config: $0) { "t0k3n" } }
    let outcome = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    XCTAssertEqual(outcome.request?.headers["authorization"], ["Bearer t0k3n"])
  }

  func testFailsTheCallWithoutAToken() async throws {
    let driver = InterceptorDriver { TokenInterceptor(config: $0) { nil } }
    let outcome = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    XCTAssertEqual(outcome.error?.code, .unauthenticated)
  }

  func testRetriesWithADelayThatDoubles() async throws {
    let driver = InterceptorDriver { TokenInterceptor(config: $0) { "t0k3n" } }
    let unavailable = HTTPResponse(error: ConnectError(code: .unavailable))
    let first = try await driver.unary.response(unavailable).outcome
    XCTAssertEqual(first.retryDelay, .seconds(1))
    let second = try await driver.unary.response(unavailable).outcome
    XCTAssertEqual(second.retryDelay, .seconds(2))
    let third = try await driver.unary.response(unavailable).outcome
    XCTAssertEqual(third.response?.error?.code, .unavailable)
  }

  func testBackoffOfACall() async throws {
    let executor = VirtualExecutor()
    let probe = InterceptorProbe(executor: executor)
    let transport = NoteTransport(executor, errors: [.unavailable, .unavailable])
    let client = transport.client([
      { TokenInterceptor(config: $0) { "t0k3n" } }, probe.factory("wire", levels: [.byte]),
    ])
    let response = try await executor.lettingTimePass { await client.unary(Note.post, Note("hello")) }
    XCTAssertEqual(response.message, Note("hello"))
    XCTAssertEqual(executor.now, .seconds(3))
    XCTAssertEqual(
      probe.events.filter { $0.hook == .response }.timeline,
      """
      0.0 seconds wire byte response unavailable: sorry
      1.0 seconds wire byte response unavailable: sorry
      3.0 seconds wire byte response ok: {"text":"hello"}
      """
    )
  }
}

/// The interceptor of the README's examples.
final class TokenInterceptor: Interceptor {
  private let fetchToken: @Sendable () async -> String?
  private var delay = Duration.seconds(1)

  init(config: ProtocolClientConfig, fetchToken: @escaping @Sendable () async -> String?) {
    self.fetchToken = fetchToken
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { [fetchToken] request, proceed in
        Task {
          guard let token = await fetchToken() else {
            return proceed(.failure(ConnectError(code: .unauthenticated, message: "no token")))
          }
          var request = request
          request.headers["authorization"] = ["Bearer \(token)"]
          proceed(.success(request))
        }
      },
      responseFunction: { response, proceed in
        guard response.code == .unavailable, self.delay < .seconds(4) else { return proceed(response) }
        proceed.retry(after: self.delay)
        self.delay *= 2
      }
    )
  }
}
