internal import ConnectReflection
internal import XCTest

final class PrettyJSONTests: XCTestCase {
  func testLines() {
    let text = PrettyJSON.indented(#"{"a":[1,{"b":"x, {y}: \"z\""}],"c":{},"d":[],"e":null}"#)
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
    for text in ["1", "\"a\"", "true", "{}", "[]"] { XCTAssertEqual(PrettyJSON.indented(text), text) }
  }
}
