import Connect
import XCTest

final class HTTPResponseTests: XCTestCase {
  func testCopiesAreTheirOwn() {
    let response = HTTPResponse(headers: ["a": ["1"]], trailers: ["b": ["2"]], httpHeaders: ["c": ["3"]])
    var copy = response
    copy.headers["a"] = ["x"]
    copy.trailers["b"] = ["x"]
    copy.httpHeaders["c"] = ["x"]
    copy.error = ConnectError(code: .aborted)
    XCTAssertEqual(response.headers, ["a": ["1"]])
    XCTAssertEqual(response.trailers, ["b": ["2"]])
    XCTAssertEqual(response.httpHeaders, ["c": ["3"]])
    XCTAssertNil(response.error)
    XCTAssertEqual(copy.headers, ["a": ["x"]])
    XCTAssertEqual(copy.trailers, ["b": ["x"]])
    XCTAssertEqual(copy.httpHeaders, ["c": ["x"]])
    XCTAssertEqual(copy.error?.code, .aborted)
  }

  /// Changing headers in place does not copy the list.
  func testChangesAreInPlace() {
    var response = HTTPResponse()
    for path in [\HTTPResponse.headers, \.trailers, \.httpHeaders] {
      response[keyPath: path].reserveCapacity(8)
      response[keyPath: path].add(name: "a", value: "1")
    }
    let places = [response.headers.place, response.trailers.place, response.httpHeaders.place]
    response.headers.add(name: "b", value: "2")
    response.trailers.add(name: "b", value: "2")
    response.httpHeaders.add(name: "b", value: "2")
    XCTAssertEqual([response.headers.place, response.trailers.place, response.httpHeaders.place], places)
    XCTAssertEqual(response.headers, ["a": ["1"], "b": ["2"]])
  }
}

extension Headers {
  /// Where the fields are in memory.
  var place: UnsafePointer<Field>? { self.fields.withUnsafeBufferPointer { $0.baseAddress } }
}
