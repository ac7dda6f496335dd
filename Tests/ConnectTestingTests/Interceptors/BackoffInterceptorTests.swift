import Connect
import ConnectTesting
import NIOCore
import XCTest

/// An interceptor in the async form, which sleeps.
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
  func testInACall() async throws {
    let executor = VirtualExecutor()
    let probe = InterceptorProbe(executor: executor)
    let transport = NoteTransport(executor, errors: [.unavailable, .unavailable])
    let client = transport.client([
      { _ in BackoffInterceptor(clock: executor.clock) }, probe.factory("inside"),
    ])

    let response = try await executor.lettingTimePass { await client.unary(Note.post, Note("hello")) }

    XCTAssertEqual(response.message, Note("hello"))
    XCTAssertEqual(
      probe.events.filter { $0.level == .message }.timeline,
      """
      0.0 seconds inside message request: hello
      0.0 seconds inside message response unavailable: sorry
      1.0 seconds inside message request: hello
      1.0 seconds inside message response unavailable: sorry
      3.0 seconds inside message request: hello
      3.0 seconds inside message response ok: hello
      """
    )
  }
}
