// Extracted from Sources/ConnectTesting/ConnectTesting.docc/TestingInterceptors.md by `make generate`.

import Connect
import ConnectTesting
import NIOCore
import XCTest

/// An interceptor made of closures.
final class TokenInterceptor: Interceptor {
  private let fetchToken: @Sendable () async -> String?

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
        // The server refused the call and did not process it: a retry is safe, whatever the method does.
        if response.code == .unauthenticated {
          proceed.retry(after: .milliseconds(100))
        } else {
          proceed(response)
        }
      }
    )
  }
}

final class TokenInterceptorTests: XCTestCase {
  func testAddsTheToken() async throws {
    let driver = InterceptorDriver { TokenInterceptor(config: $0) { "t0k3n" } }
    let request = driver.makeRequest(message: ByteBuffer())
    let outcome = try await driver.unary.request(request).outcome
    XCTAssertEqual(outcome.request?.headers["authorization"], ["Bearer t0k3n"])
  }

  func testFailsTheCallWithoutAToken() async throws {
    let driver = InterceptorDriver { TokenInterceptor(config: $0) { nil } }
    let request = driver.makeRequest(message: ByteBuffer())
    let outcome = try await driver.unary.request(request).outcome
    XCTAssertEqual(outcome.error?.code, .unauthenticated)
  }

  func testRetriesWhatTheServerRefused() async throws {
    let driver = InterceptorDriver { TokenInterceptor(config: $0) { "t0k3n" } }
    let refused = HTTPResponse(error: ConnectError(code: .unauthenticated))
    let outcome = try await driver.unary.response(refused).outcome
    XCTAssertEqual(outcome.retryDelay, .milliseconds(100))
  }

  func testDoesNotRepeatWhatTheServerMayHaveProcessed() async throws {
    let driver = InterceptorDriver { TokenInterceptor(config: $0) { "t0k3n" } }
    let unavailable = HTTPResponse(error: ConnectError(code: .unavailable))
    let outcome = try await driver.unary.response(unavailable).outcome
    XCTAssertEqual(outcome.response?.code, .unavailable)
  }
}

/// An interceptor in the async form, which waits longer each time.
struct BackoffInterceptor: AsyncUnaryInterceptor {
  let clock: any Clock<Duration>

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var delay = Duration.seconds(1)
    while true {
      let response = try await next(request)
      guard response.code == .unavailable, delay < .seconds(4) else { return response }
      try await self.clock.sleep(for: delay)
      delay *= 2
    }
  }
}

final class BackoffInterceptorTests: XCTestCase {
  func testWaitsLongerEachTimeAndGivesUp() async throws {
    let executor = VirtualExecutor()
    let driver = InterceptorDriver(executor: executor) { _ in BackoffInterceptor(clock: executor.clock) }
    let hooks = driver.unaryMessages(Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say)
    let error = ConnectError(code: .unavailable)
    let unavailable = ResponseMessage<Connectrpc_Eliza_V1_SayResponse>(error: error)

    _ = try await hooks.request(driver.makeRequest(message: .init())).outcome
    let first = try await hooks.response(unavailable).outcome
    XCTAssertEqual(first.retryDelay, .seconds(1))
    let second = try await hooks.response(unavailable).outcome
    XCTAssertEqual(second.retryDelay, .seconds(2))
    let third = try await hooks.response(unavailable).outcome
    XCTAssertEqual(third.response?.code, .unavailable)
  }
}

final class BackoffInACallTests: XCTestCase {
  func testTheThirdAttemptSucceeds() async throws {
    let executor = VirtualExecutor()
    let probe = InterceptorProbe(executor: executor)
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock(
      MockService(
        config: ProtocolClientConfig(
          host: "http://memory",
          interceptors: [{ _ in BackoffInterceptor(clock: executor.clock) }, probe.factory("inside")]
        ),
        executor: executor
      )
    )
    let busy = ConnectError(code: .unavailable)
    mock.mockSay.answer(.failure(busy), .failure(busy), .message(.with { $0.sentence = "Hello" }))

    let answer = try await executor.lettingTimePass { try await mock.say(.init()) }

    XCTAssertEqual(answer.sentence, "Hello")
    XCTAssertEqual(executor.now, .seconds(3))
    XCTAssertEqual(probe.events.filter { $0.level == .message }.count, 6)
  }
}
