import Connect
import XCTest

final class HTTPStatusTests: XCTestCase {
  func testRegisteredStatusesHaveTheirPhrase() {
    let table = [
      200: "OK", 301: "Moved Permanently", 404: "Not Found", 413: "Content Too Large",
      415: "Unsupported Media Type",
      421: "Misdirected Request", 422: "Unprocessable Content", 503: "Service Unavailable",
      511: "Network Authentication Required",
    ]
    for (status, phrase) in table {
      XCTAssertEqual(HTTPStatus.describe(status), "HTTP status \(status) \(phrase)")
    }
  }

  func testOthersHaveNone() {
    for status in [Int.min, -1, 0, 99, 299, 306, 418, 420, 509, 512, 800, Int.max] {
      XCTAssertEqual(HTTPStatus.describe(status), "HTTP status \(status)")
    }
  }

  func testNumberOfPhrases() {
    XCTAssertEqual((0...999).filter { HTTPStatus.reasonPhrase($0) != nil }.count, 61)
  }
}
