import NIOCore
import TestSupport
import XCTest

@testable import connectrpc

final class JSONSplitterTests: XCTestCase {
  /// All values of a text that comes in pieces of so many bytes.
  private func values(_ text: String, pieces: Int = .max) throws -> [String] {
    var splitter = JSONSplitter()
    var values: [String] = []
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      splitter.append(ByteBuffer(bytes: rest.prefix(pieces)))
      rest = rest.dropFirst(pieces)
      while let value = try splitter.next() { values.append(String(buffer: value)) }
    }
    if let value = splitter.finish() { values.append(String(buffer: value)) }
    return values
  }

  func testValuesInPiecesOfAnySize() throws {
    let texts: [(String, [String])] = [
      ("", []),
      (" \n\t ", []),
      ("{}", ["{}"]),
      ("{}{}", ["{}", "{}"]),
      ("{\"a\":1}\n{\"a\":[2,{\"b\":\"}\"}]}\n", ["{\"a\":1}", "{\"a\":[2,{\"b\":\"}\"}]}"]),
      ("\"a b\" 1 true[2]\"c\"", ["\"a b\"", "1", "true", "[2]", "\"c\""]),
      ("{\"a\":\"\\\"}\\\\\"} {}", ["{\"a\":\"\\\"}\\\\\"}", "{}"]),
      ("1", ["1"]),
      ("{\n  \"ä\": \"→\"\n}\r\n", ["{\n  \"ä\": \"→\"\n}"]),
      // With byte order marks.
      ("\u{feff}{}\n\u{feff} 1", ["{}", "1"]),
      // A byte order mark, as in front of a file.
      ("\u{feff}{\"a\":\"\u{feff}\"}\r\n\u{feff}1", ["{\"a\":\"\u{feff}\"}", "1"]),
      ("\u{feff}", []),
      // What is no JSON goes on to those who say so.
      ("{\"a\":", ["{\"a\":"]),
      ("}{}", ["}", "{}"]),
    ]
    for (text, expected) in texts {
      for size in [1, 2, 3, 7, Int.max] {
        XCTAssertEqual(try self.values(text, pieces: size), expected, "\(text) in pieces of \(size)")
      }
    }
  }

  func testWhatIsTakenIsNotKept() throws {
    var splitter = JSONSplitter()
    for _ in 0..<10_000 {
      splitter.append(ByteBuffer(string: "{\"text\":\"\(String(repeating: "x", count: 100))\"}\n"))
      XCTAssertNotNil(try splitter.next())
    }
    XCTAssertNil(splitter.finish())
  }
}
