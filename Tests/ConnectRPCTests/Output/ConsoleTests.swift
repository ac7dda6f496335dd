import XCTest

@testable import connectrpc

final class ConsoleTests: XCTestCase {
  /// JSON lets these through, and terminals obey some of them.
  func testControlCharactersInJSON() throws {
    let json = Console.json("{\"a\u{9B}\":\"b\u{7F}\u{80}\u{9F}\u{A0}\u{FC}\"}")
    XCTAssertEqual(json, #"{"a\u009b":"b\u007f\u0080\u009f"# + "\u{A0}\u{FC}\"}")
    let value = try JSONDecoder().decode([String: String].self, from: Data(json.utf8))
    XCTAssertEqual(value, ["a\u{9B}": "b\u{7F}\u{80}\u{9F}\u{A0}\u{FC}"])
  }
}
