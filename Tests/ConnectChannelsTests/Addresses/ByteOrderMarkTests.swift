import Connect
import XCTest

@testable import ConnectChannels

final class ByteOrderMarkTests: XCTestCase {
  private static let mark = "\u{feff}"

  func testMarks() {
    let mark = Self.mark
    let cases = [
      ("", ""), ("a\nb", "a\nb"), (mark, ""), ("\(mark)a", "a"), ("\(mark)a\r\n\(mark)b\n", "a\r\nb\n"),
      ("a\n\(mark)b\r\(mark)c", "a\nb\rc"),
      // Not at the beginning of a line, and other characters that begin with the same byte.
      ("a\(mark)b", "a\(mark)b"), ("\u{ff01}a", "\u{ff01}a"), ("a\n\u{ff01}", "a\n\u{ff01}"),
      ("\(mark)\(mark)a", "\(mark)a"),
    ]
    for (text, result) in cases {
      let bytes = ByteOrderMark.removed(from: Array(text.utf8))
      XCTAssertEqual(String(decoding: bytes, as: UTF8.self), result, text.debugDescription)
    }
    XCTAssertEqual(ByteOrderMark.removed(from: [0xef]), [0xef])
    XCTAssertEqual(ByteOrderMark.removed(from: [0xef, 0xbb]), [0xef, 0xbb])
  }

  func testUTF16() {
    XCTAssertTrue(ByteOrderMark.saysUTF16([0xff, 0xfe, 0x2d, 0]))
    XCTAssertTrue(ByteOrderMark.saysUTF16([0xfe, 0xff, 0, 0x2d]))
    XCTAssertFalse(ByteOrderMark.saysUTF16(Array("\(Self.mark)a".utf8)))
    XCTAssertFalse(ByteOrderMark.saysUTF16([]))
  }

  func testJSON() throws {
    XCTAssertEqual(
      try JSONParser.parse("\(Self.mark){\r\n\"a\": 1}\r\n"),
      try JSONParser.parse("{\"a\":1}")
    )
    XCTAssertThrowsError(try JSONParser.parse("\(Self.mark)[1 2]")) { error in
      XCTAssertEqual((error as? JSONParser.Failure)?.column, 4)
    }
    XCTAssertThrowsError(try JSONParser.parse("[\(Self.mark)]"))
  }
}
