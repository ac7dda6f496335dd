import Connect
import XCTest

@testable import ConnectChannels

final class JSONParserTests: XCTestCase {
  func testValues() throws {
    let cases: [(text: String, canonical: String)] = [
      ("null", "null"), (" true\n", "true"), ("false", "false"), ("0", "0"), ("-0.5e+10", "-0.5e+10"),
      ("12345678901234567890", "12345678901234567890"), ("\"a\"", "\"a\""), ("[]", "[]"), ("{}", "{}"),
      ("[1, [2], {}]", "[1,[2],{}]"), ("{ \"b\" : 1 , \"a\" : null }", "{\"b\":1,\"a\":null}"),
      (
        #""\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00é""#,
        "\"\\\"\\\\/\\u0008\\u000c\\n\\r\\tAé😀é\""
      ),
    ]
    for (text, canonical) in cases {
      let value = try JSONParser.parse(text)
      XCTAssertEqual(value.description, canonical, text)
      XCTAssertEqual(try JSONParser.parse(value.description), value, text)
    }
  }

  func testErrors() {
    let cases: [(text: String, problem: String, line: Int, column: Int)] = [
      ("", "a value is missing at the end", 1, 1), ("[1,\n 2,]", "a value is missing", 2, 4),
      ("{\"a\":1,}", "a name in double quotes is missing", 1, 8), ("{a:1}", "a name in double quotes", 1, 2),
      ("{\"a\" 1}", "the colon", 1, 6), ("[1 2]", "a comma or a closing bracket", 1, 4),
      ("{\"a\":1", "a comma or a closing brace", 1, 7), ("1 1", "more text behind", 1, 3),
      ("01", "begins with zero", 1, 3), ("-", "no digits", 1, 2), ("1.", "behind its point", 1, 3),
      ("1e", "exponent", 1, 3), (".5", "a value is missing", 1, 1), ("NaN", "a value is missing", 1, 1),
      ("'a'", "a value is missing", 1, 1), ("\"a", "the closing quote", 1, 3),
      ("\"\n\"", "control character", 2, 1),
      ("\"\\x\"", "an escape is unknown", 1, 4), ("\"\\u12g4\"", "four hexadecimal", 1, 6),
      ("\"\\ud800\"", "half of a surrogate pair", 1, 8), ("\"\\ud800\\u0041\"", "half of a surrogate", 1, 14),
      ("\"\\udc00\"", "half of a surrogate pair", 1, 8),
      ("{\"a\":1,\"a\":2}", "has the name \"a\" twice", 1, 11),
      (String(repeating: "[", count: 65), "nested deeper than 64", 1, 65),
      ("tru", "a value is missing", 1, 1),
    ]
    for (text, problem, line, column) in cases {
      do throws(JSONParser.Failure) {
        let value = try JSONParser.parse(text)
        XCTFail("\(text): \(value)")
      } catch {
        XCTAssertTrue(error.problem.contains(problem), "\(text): \(error)")
        XCTAssertEqual([error.line, error.column], [line, column], "\(text): \(error)")
      }
    }
    XCTAssertNoThrow(
      try JSONParser.parse(String(repeating: "[", count: 64) + String(repeating: "]", count: 64))
    )
  }

  func testAgreesWithFoundation() {
    var random = SeededRandom(seed: 4)
    var parsed = 0
    for _ in 0..<fuzzRounds {
      let bytes = random.mutated(Array(ServiceConfigTests.everything.utf8))
      guard let text = String(validating: bytes, as: UTF8.self) else { continue }
      guard let value = try? JSONParser.parse(text) else { continue }
      parsed += 1
      let theirs = try? JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
      XCTAssertNotNil(theirs, text)
      XCTAssertEqual(try? JSONParser.parse(value.description), value)
    }
    XCTAssertGreaterThan(parsed, fuzzRounds / 40)
  }

  func testDurations() {
    let cases: [(text: String, duration: Duration?)] = [
      ("1s", .seconds(1)), ("1.5s", .milliseconds(1_500)), (".1s", .milliseconds(100)), ("0s", .zero),
      ("1.s", .seconds(1)), ("0.000000001s", .nanoseconds(1)), ("-2.5s", .milliseconds(-2_500)),
      ("315576000000s", .seconds(315_576_000_000)), ("315576000001s", nil), ("1.0000000001s", nil), ("", nil),
      ("s", nil), (".s", nil), ("-s", nil), ("1", nil), ("1 s", nil), ("1e3s", nil), ("+1s", nil),
      ("1ms", nil),
      ("--1s", nil), ("1.-5s", nil), ("99999999999999999999s", nil), ("1.2.3s", nil),
    ]
    for (text, duration) in cases {
      XCTAssertEqual(Duration(proto3JSON: text), duration, text)
    }
  }
}
