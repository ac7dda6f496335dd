import NIOCore
import XCTest

@testable import connectrpc

final class TypeNamesTests: XCTestCase {
  func testNamesInJSON() {
    let text =
      #"{"a": [{"@type": "x/acme.A", "b": {"@type": "type.example/y/acme.B"}}], "@type": "acme.None", "c": "@type"}"#
    XCTAssertEqual(TypeNames.inJSON(ByteBuffer(string: text)), ["acme.A", "acme.B"])
    for text in ["", "{", "[]", #"{"@type": 5}"#, #"{"@type": "x/"}"#, #"{"a": "x/acme.A"}"#] {
      XCTAssertEqual(TypeNames.inJSON(ByteBuffer(string: text)), [], text)
    }
  }
}
