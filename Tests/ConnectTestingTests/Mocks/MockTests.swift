import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// Mocks of each stream type, in async form.
final class MockTests: XCTestCase {
  func testAnswersUnaryCallWithValue() async throws {
    let mock = TestServiceClientMock()
    mock.mockEcho.answer(
      .message(
        .with { $0.payload.text = "hello" },
        headers: ["x-served-by": ["mock"]],
        trailers: ["x-cost": ["3"]]
      )
    )

    let options = CallOptions(headers: ["x-id": ["42"]], timeout: .seconds(9))
    let response = await mock.echo(request: .with { $0.payload.text = "hi" }, options: options)

    XCTAssertEqual(response.message?.payload.text, "hello")
    XCTAssertEqual(response.headers["x-served-by"], ["mock"])
    XCTAssertEqual(response.trailers["x-cost"], ["3"])
    let call = try XCTUnwrap(mock.mockEcho.calls.first)
    XCTAssertEqual(mock.mockEcho.calls.count, 1)
    XCTAssertEqual(call.request?.payload.text, "hi")
    XCTAssertEqual(call.options.timeout, .seconds(9))
    XCTAssertEqual(call.headers["x-id"], ["42"])
    XCTAssertEqual(call.headers["content-type"], ["application/proto"])
    XCTAssertEqual(call.code, .ok)
    XCTAssertEqual(call.attempts, 1)
  }
}
