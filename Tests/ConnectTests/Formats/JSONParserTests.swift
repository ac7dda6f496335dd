internal import Connect
internal import XCTest

final class JSONParserTests: XCTestCase {
  private func failure(_ text: [UInt8]) -> JSONParser.Failure? {
    do throws(JSONParser.Failure) {
      _ = try JSONParser.parse(text)
      return nil
    } catch { return error }
  }

  func testEscapes() throws {
    let text = #"["","a","\"","a\"","\"a","a\nb\u00e9\ud83d\ude00c","\\\\"]"#
    XCTAssertEqual(
      try JSONParser.parse(text),
      .array(["", "a", "\"", "a\"", "\"a", "a\nb\u{e9}\u{1f600}c", "\\\\"].map { .string($0) })
    )
  }

  /// In small objects and in large ones, which are compared in different ways.
  func testNamesThatAreThereTwice() throws {
    for count in [1, 2, 15, 16, 17, 18, 100] {
      let members = (0..<count).map { "\"n\($0)\":\($0)" }
      guard case .object(let found) = try JSONParser.parse("{\(members.joined(separator: ","))}") else {
        return XCTFail("no object")
      }
      XCTAssertEqual(found.map(\.name), (0..<count).map { "n\($0)" })
      for twice in [0, count / 2, count - 1] {
        let text = "{\((members + ["\"n\(twice)\":0"]).joined(separator: ","))}"
        XCTAssertEqual(
          self.failure(Array(text.utf8))?.problem,
          "the object has the name \"n\(twice)\" twice",
          "\(count)"
        )
      }
    }
  }

  /// What is no UTF-8 is replaced in strings, and a mistake elsewhere.
  func testBytes() throws {
    let text = Array("\u{feff}{\"a\":\"".utf8) + [0xc3, 0x28] + Array("\"}".utf8)
    XCTAssertEqual(try JSONParser.parse(text), .object([.init(name: "a", value: .string("\u{fffd}("))]))
    XCTAssertEqual(self.failure([0x5b, 0xff, 0x5d])?.column, 2)
  }

  func testPlaces() {
    for (text, problem, line, column) in [
      ("", "a value is missing at the end", 1, 1),
      ("{\n \"a\" 1}", "the colon behind a name is missing", 2, 6),
      ("[\"a\n\"]", "a string has a control character, or its closing quote is missing", 2, 1),
      ("[\"a\\x\"]", "an escape is unknown", 1, 6),
      ("[\"a", "the closing quote of a string is missing", 1, 4),
      ("[1] 2", "there is more text behind the value", 1, 5),
    ] {
      let failure = self.failure(Array(text.utf8))
      XCTAssertEqual(failure?.problem, problem, text)
      XCTAssertEqual([failure?.line, failure?.column], [line, column], text)
    }
  }
}
