import Connect
import XCTest

/// The code of what comes up through hooks is that of its error.
final class ResponseCodeTests: XCTestCase {
  private let aborted = ConnectError(code: .aborted, message: "no", metadata: ["x": ["1"]])

  func testResponsesOfMessages() {
    var response = ResponseMessage(message: 1)
    XCTAssertEqual(response.code, .ok)
    response.code = .ok
    XCTAssertEqual(response.message, 1)
    response.trailers["x"] = ["2"]
    response.code = .dataLoss
    XCTAssertNil(response.message)
    XCTAssertEqual(response.error?.code, .dataLoss)
    XCTAssertEqual(response.error?.metadata["x"], ["2"])
    // An error that is there stays, whatever is said of the code.
    for code in [Code.ok, .aborted] {
      response.code = code
      XCTAssertEqual(response.code, .dataLoss)
    }
    response.result = .success(3)
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(ResponseMessage(code: .notFound, result: .success(1)).error?.code, .notFound)
    let failed = ResponseMessage<Int>(code: .ok, result: .failure(self.aborted))
    XCTAssertEqual(failed.code, .aborted)
    XCTAssertEqual(failed.error?.message, "no")
  }

  func testResponsesOfBytes() {
    var response = HTTPResponse(code: .notFound, trailers: ["x": ["2"]], httpStatus: 404)
    XCTAssertEqual(response.error?.code, .notFound)
    XCTAssertEqual(response.error?.metadata["x"], ["2"])
    XCTAssertEqual(response.error?.httpStatus, 404)
    response.code = .ok
    XCTAssertEqual(response.code, .notFound)
    response.error = nil
    XCTAssertEqual(response.code, .ok)
    response.code = .unavailable
    XCTAssertEqual(response.error?.httpStatus, 404)
    XCTAssertEqual(HTTPResponse(code: .ok, error: self.aborted).code, .aborted)
    XCTAssertEqual(HTTPResponse(error: self.aborted).trailers["x"], ["1"])
  }

  func testOutcomes() {
    var outcome = CallOutcome(code: .notFound, trailers: ["x": ["2"]])
    XCTAssertEqual(outcome.error?.metadata["x"], ["2"])
    outcome.code = .aborted
    XCTAssertEqual(outcome.code, .notFound)
    outcome.error = self.aborted
    XCTAssertEqual(outcome.code, .aborted)
    XCTAssertEqual(CallOutcome().code, .ok)
  }

  func testCopiesAreTheirOwn() {
    let request = HTTPRequest(
      url: RequestURL(origin: Origin(scheme: .https, host: "a.test", port: 443), path: "/a/B"),
      contentType: "application/proto",
      message: [1]
    )
    var copy = request
    copy.message.append(2)
    copy.headers["x"] = ["1"]
    var other = copy
    other.message = [3]
    XCTAssertEqual([request.message, copy.message, other.message], [[1], [1, 2], [3]])
    XCTAssertEqual(request.headers["x"], [])
    XCTAssertEqual(other.headers["x"], ["1"])
  }
}
