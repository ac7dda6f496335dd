import Foundation
import NIOCore
import TestSupport
import XCTest

@testable import Connect

final class TextHelpersTests: XCTestCase {
  func testBase64() {
    let cases: [(String, [UInt8]?)] = [
      ("", []), ("AA", [0]), ("AA==", [0]), ("AAE", [0, 1]), ("AAE=", [0, 1]), ("AAEC", [0, 1, 2]),
      ("+/+/", [251, 255, 191]), ("-_-_", [251, 255, 191]), ("/w", [255]),
      ("A", nil), ("AAAAA", nil), ("AA=", nil), ("=", nil), ("AA===", nil), ("A=A", nil), ("AA==AA==", nil),
      ("AA AA", nil), ("ü", nil), ("AA\n", nil), ("AAEC=", nil),
    ]
    for (text, bytes) in cases {
      XCTAssertEqual(Base64.decode(text).map { Array($0.readableBytesView) }, bytes, text)
    }
  }

  func testBase64AgainstFoundation() {
    var random = SeededGenerator()
    for size in 0..<200 {
      let bytes = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
      let text = Data(bytes).base64EncodedString()
      XCTAssertEqual(Base64.decode(text), ByteBuffer(bytes: bytes))
      XCTAssertEqual(Base64.decode(text.prefix { $0 != "=" }), ByteBuffer(bytes: bytes))
    }
  }

  func testBase64EncodingAgainstFoundation() {
    var random = SeededGenerator()
    for size in 0..<200 {
      let bytes = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
      let expected = Data(bytes).base64EncodedString()
      let buffer = ByteBuffer(bytes: bytes)
      XCTAssertEqual(String(buffer: Base64.encode(buffer, alphabet: .standard, isPadded: true)), expected)
      let bare = expected.filter { $0 != "=" }
      XCTAssertEqual(String(buffer: Base64.encode(buffer, alphabet: .standard, isPadded: false)), bare)
      let url = bare.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
      XCTAssertEqual(String(buffer: Base64.encode(buffer, alphabet: .urlSafe, isPadded: false)), url)
    }
  }

  func testBinaryHeaders() throws {
    var headers = Headers()
    headers.addBinary(name: "A-Bin", value: ByteBuffer(bytes: [0]))
    headers.addBinary(name: "a-bin", value: ByteBuffer(bytes: [0, 1, 255]))
    XCTAssertEqual(headers["a-bin"], ["AA", "AAH/"])
    headers.add(name: "a-bin", value: "AA==, AAE,,AAEC")
    XCTAssertEqual(
      try headers.binaryValues("A-BIN").map { Array($0.readableBytesView) },
      [[0], [0, 1, 255], [0], [0, 1], [], [0, 1, 2]]
    )
    XCTAssertEqual(try headers.binaryValues("b-bin"), [])
    headers.add(name: "c-bin", value: "AA== , AAE\t,\tAAEC ")
    XCTAssertEqual(
      try headers.binaryValues("c-bin").map { Array($0.readableBytesView) },
      [[0], [0, 1], [0, 1, 2]]
    )
    headers.add(name: "a-bin", value: "!")
    XCTAssertThrowsError(try headers.binaryValues("a-bin")) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .internalError)
    }
  }

  func testMediaTypes() {
    XCTAssertEqual(MediaType.essence("Application/JSON ; charset=utf-8"), "application/json")
    XCTAssertEqual(MediaType.essence(" \tapplication/proto\t"), "application/proto")
    XCTAssertEqual(MediaType.essence(""), "")
    XCTAssertEqual(MediaType.essence(" ; "), "")
    XCTAssertEqual(MediaType.essence(";"), "")
    XCTAssertTrue(MediaType.matches("application/json;charset=utf-8", "application/json"))
    XCTAssertTrue(MediaType.matches("application/json", "application/JSON; x=y"))
    XCTAssertFalse(MediaType.matches("application/jsonx", "application/json"))
  }
}
