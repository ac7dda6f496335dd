internal import Connect
internal import XCTest

final class JSONValueTests: XCTestCase {
  func testLines() {
    let text = JSONValue.indented(#"{"a":[1,{"b":"x, {y}: \"z\""}],"c":{},"d":[],"e":null}"#)
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
    for text in ["1", "\"a\"", "true", "{}", "[]"] { XCTAssertEqual(JSONValue.indented(text), text) }
  }
}
