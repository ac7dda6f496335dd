import XCTest

@testable import Connect

/// What is removed from text of a peer.
final class PeerTextTests: XCTestCase {
  func testWhiteSpaceAroundValues() {
    for (text, expected) in [
      ("5", "5"), ("5 ", "5"), (" 5", "5"), ("\t 5 \t", "5"), ("a b\tc", "a b\tc"), ("", ""), (" ", ""),
      (" \t ", ""),
      ("ü ", "ü"), ("\n5\r", "\n5\r"),
    ] {
      XCTAssertEqual(FieldSpace.trim(text), expected, "'\(text)'")
      Array(text.utf8).withUnsafeBufferPointer { bytes in
        XCTAssertEqual(String(decoding: FieldSpace.trim(bytes), as: UTF8.self), expected, "'\(text)'")
      }
    }
  }

  func testControlCharacters() {
    for scalar in (0...0x2ff as ClosedRange<UInt32>).compactMap(Unicode.Scalar.init) {
      let text = "a\(scalar)b"
      let isControl = scalar.properties.generalCategory == .control
      let isSpace = scalar == "\t" || scalar == "\n" || scalar == "\r"
      XCTAssertEqual(
        PeerText.value(text),
        isControl && scalar != "\t" ? "a\u{fffd}b" : text,
        "\(scalar.value)"
      )
      XCTAssertEqual(PeerText.message(text), isControl && !isSpace ? "a\u{fffd}b" : text, "\(scalar.value)")
    }
    // A line feed behind a carriage return is one character for Swift.
    XCTAssertEqual(PeerText.value("a\r\nb"), "a\u{fffd}\u{fffd}b")
    let special = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
    XCTAssertEqual(PeerText.message(special), special)
  }

  func testFieldNames() {
    for name in ["a", "x-a", "x!#$%&'*+-.^_`|~9", "A"] { XCTAssertTrue(FieldName.isToken(name), name) }
    for name in ["", ":status", "a b", "a:", "x\r\ny", "a\0", "ä", "a/b", "a,b", "{a}"] {
      XCTAssertFalse(FieldName.isToken(name), name)
    }
    for name in ["x-bin", "-bin", "a-bin-bin"] { XCTAssertTrue(FieldName.isBinary(name), name) }
    for name in ["bin", "xbin", "x-bin-a", "x-bi", "", "x-bin "] {
      XCTAssertFalse(FieldName.isBinary(name), name)
    }
  }

  func testListsOfBase64() {
    for text in [
      "", "AA", "AAA", "AAAA", "AA==", "AAA=", "AAAA,AA", "AA==,AAE=", "AA , AAE\t,AAEC", "+/+/", ",",
      "AA,,AA",
    ] {
      XCTAssertTrue(Base64.isList(text), text)
    }
    for text in [
      "%%%", "A", "AAAAA", "AA=", "A===", "AA==A", "AA AA", "-_-_", "AAAA,A", "AA;AA", "ÄÄÄÄ", "AA\n", "=",
    ] {
      XCTAssertFalse(Base64.isList(text), text)
    }
  }
}
