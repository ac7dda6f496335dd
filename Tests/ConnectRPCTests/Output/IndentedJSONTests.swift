import Foundation
import NIOCore
import XCTest

@testable import connectrpc

final class IndentedJSONTests: XCTestCase {
  func testLines() {
    let text = IndentedJSON.text(
      ByteBuffer(string: "{\"a\":[1,{\"b\":\"x, {y}: \\\"z\\\"\"}],\"c\":{},\"d\":[],\"e\":null}")
    )
    XCTAssertEqual(
      text,
      """
      {
        "a": [
          1,
          {
            "b": "x, {y}: \\"z\\""
          }
        ],
        "c": {},
        "d": [],
        "e": null
      }
      """
    )
  }

  func testScalars() {
    for text in ["1", "\"a\"", "true", "{}", "[]"] {
      XCTAssertEqual(IndentedJSON.text(ByteBuffer(string: text)), text)
    }
  }
}
