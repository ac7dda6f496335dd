import Connect
import HTTPTypes
import XCTest

final class HeadersTests: XCTestCase {
  private func pairs(_ headers: Headers) -> [String] {
    headers.map { "\($0.name)=\($0.value)" }
  }

  func testKeepsOrderAndValues() {
    var headers = Headers()
    headers.add(name: "B", value: "1")
    headers.add(name: "a", value: "2,3")
    headers.add(name: "b", value: "4")
    XCTAssertEqual(self.pairs(headers), ["b=1", "a=2,3", "b=4"])
    XCTAssertEqual(headers["b"], ["1", "4"])
    XCTAssertEqual(headers["a"], ["2,3"], "values are never split at commas")
    XCTAssertEqual(headers.first("b"), "1")
  }

  func testNamesAreCaseInsensitive() {
    var headers: Headers = ["Content-Type": ["x"]]
    XCTAssertEqual(headers["CONTENT-TYPE"], ["x"])
    XCTAssertEqual(headers.first("content-Type"), "x")
    XCTAssertTrue(headers.contains("Content-type"))
    XCTAssertFalse(headers.contains("content"))
    XCTAssertNil(headers.first("content"))
    headers.remove(name: "CONTENT-type")
    XCTAssertTrue(headers.isEmpty)
    // Only ASCII letters have case; the Kelvin sign is not a k.
    XCTAssertFalse((["\u{212a}": ["x"]] as Headers).contains("k"))
  }

  func testSettingReplacesAtTheFirstPlace() {
    var headers: Headers = ["a": ["1", "2"], "b": ["3"], "A": ["4"]]
    headers["A"] = ["5", "6"]
    XCTAssertEqual(self.pairs(headers), ["a=5", "a=6", "b=3"])
    headers["c"] = ["7"]
    XCTAssertEqual(self.pairs(headers), ["a=5", "a=6", "b=3", "c=7"])
    headers["a"] = []
    XCTAssertEqual(self.pairs(headers), ["b=3", "c=7"])
    headers["none"] = []
    headers.remove(name: "none")
    XCTAssertEqual(headers.count, 2)
    XCTAssertEqual(headers["none"], [])
  }

  func testAppendingThroughTheSubscript() {
    var headers = Headers()
    headers["x"].append("1")
    headers["X"].append("2")
    XCTAssertEqual(headers["x"], ["1", "2"])
  }

  func testAppendingFields() {
    var headers: Headers = ["a": ["1"]]
    headers.append(contentsOf: ["a": ["2"], "B": ["3"]] as Headers)
    XCTAssertEqual(self.pairs(headers), ["a=1", "a=2", "b=3"])
    XCTAssertEqual(self.pairs(Headers([Headers.Field(name: "Q", value: "1")])), ["q=1"])
  }

  func testCopiesAreIndependent() {
    var headers: Headers = ["a": ["1"]]
    let copy = headers
    headers.add(name: "b", value: "2")
    headers.remove(name: "a")
    XCTAssertEqual(self.pairs(copy), ["a=1"])
  }

  func testEquality() {
    let headers: Headers = ["a": ["1", "2"], "b": ["3"]]
    let reordered: Headers = ["B": ["3"], "A": ["1", "2"]]
    XCTAssertEqual(headers, reordered)
    XCTAssertEqual(headers.hashValue, reordered.hashValue)
    XCTAssertNotEqual(headers, ["a": ["2", "1"], "b": ["3"]])
    XCTAssertNotEqual(headers, ["a": ["1", "2"]])
    XCTAssertNotEqual(headers, ["a": ["1", "2"], "b": ["3", "3"]])
    XCTAssertEqual(Headers(), [:])
  }

  func testAcceptsAnyString() {
    var headers: Headers = ["": ["\r\n\0"], "ÄÖ": ["é"], "a b": [""]]
    headers["\0"] = [String(repeating: "x", count: 100_000)]
    XCTAssertEqual(headers["ÄÖ"], ["é"])
    XCTAssertEqual(headers[""], ["\r\n\0"])
    XCTAssertFalse(headers.description.isEmpty)
  }

  func testManyFields() {
    var headers = Headers()
    for index in 0..<70_000 { headers.add(name: "n\(index % 7)", value: "v") }
    XCTAssertEqual(headers["N3"].count, 10_000)
  }

  // MARK: swift-http-types

  func testToHTTPFieldsAndBack() throws {
    let headers: Headers = ["X-One": ["1", "2"], "two": ["a, b"], "empty": [""], "utf8": ["ü"]]
    let fields = try HTTPFields(headers)
    XCTAssertEqual(fields[values: try XCTUnwrap(HTTPField.Name("x-one"))], ["1", "2"])
    XCTAssertEqual(Headers(fields), headers)
    XCTAssertEqual(self.pairs(Headers(fields)), self.pairs(headers))
  }

  func testFromHTTPFieldsLowersNames() {
    var fields = HTTPFields()
    fields.append(HTTPField(name: .contentType, value: "a"))
    XCTAssertEqual(self.pairs(Headers(fields)), ["content-type=a"])
  }

  func testToHTTPFieldsFails() {
    for headers in [["a b": ["x"]], ["": ["x"]], [":path": ["/"]], ["a": ["x\r\ny"]], ["a": ["\0"]]]
      as [Headers]
    {
      XCTAssertThrowsError(try HTTPFields(headers), "\(headers)") { error in
        XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
      }
    }
    var many = Headers()
    for _ in 0..<65_535 { many.add(name: "a", value: "b") }
    XCTAssertThrowsError(try HTTPFields(many)) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
    }
    many.remove(name: "a")
    for _ in 0..<65_534 { many.add(name: "a", value: "b") }
    XCTAssertEqual(try HTTPFields(many).count, 65_534)
  }
}
