import XCTest

@testable import ConnectChannels

final class RegularExpressionTests: XCTestCase {
  func testMatchesAreOfTheWholeText() throws {
    let cases: [(String, yes: [String], no: [String])] = [
      ("", [""], ["a"]),
      ("a|ab", ["a", "ab"], ["abc", "b", ""]),
      (".*", ["", "anything"], ["two\nlines"]),
      ("(?s).*", ["two\nlines"], []),
      ("v[0-9]+", ["v1", "v22"], ["v", "xv1", "v1x", "V1"]),
      ("(?i)canary", ["canary", "CanarY"], ["canarys"]),
      (#"\d+"#, ["12"], ["\u{663}", "1a"]),
      (#"\w+"#, ["a_1"], ["é", "a b"]),
      (#"/pkg\.(Service|Other)/.*"#, ["/pkg.Service/Get", "/pkg.Other/"], ["/pkgxService/Get"]),
      ("^abc$", ["abc"], ["abcd", "xabc"]),
      ("(?P<name>a+)b", ["aab"], ["b"]),
      ("[[:digit:]]{2,3}", ["12", "123"], ["1", "1234"]),
      ("a.c", ["aéc"], ["ae\u{301}c"]),
      (#"spiffe://prod/(a|b)"#, ["spiffe://prod/a"], ["spiffe://prod/c"]),
    ]
    for (pattern, yes, no) in cases {
      let expression = try RegularExpression(pattern)
      for text in yes { XCTAssertTrue(expression.matches(text), "\(pattern) \(text)") }
      for text in no { XCTAssertFalse(expression.matches(text), "\(pattern) \(text)") }
    }
  }

  func testPatternsThatCannotBeUsed() {
    for pattern in ["(", "[a", "a{2,1}", "*", #"\"#] {
      XCTAssertThrowsError(try RegularExpression(pattern), pattern) { error in
        let reason = (error as? RegularExpression.PatternError)?.reason ?? ""
        XCTAssertTrue(reason.hasPrefix("\"\(pattern)\" is no regular expression: "), reason)
      }
    }
  }

  func testReplacing() throws {
    let cases: [(pattern: String, text: String, substitution: String, result: String)] = [
      ("b", "abcb", "x", "axcx"),
      (#"^/(\w+)/(\w+)$"#, "/user/ann", #"\2@\1"#, "ann@user"),
      ("a+", "aabaa", #"<\0>"#, "<aa>b<aa>"),
      ("a(x)?", "a", #"[\1\9]"#, "[]"),
      ("a", "a", #"\\1"#, #"\1"#),
      ("z", "abc", "x", "abc"),
      ("", "", "x", "x"),
    ]
    for (pattern, text, substitution, result) in cases {
      let expression = try RegularExpression(pattern)
      XCTAssertEqual(expression.replacing(in: text, with: substitution), result, pattern)
    }
  }

  func testEqualityIsOfThePattern() throws {
    XCTAssertEqual(try RegularExpression("a"), try RegularExpression("a"))
    XCTAssertNotEqual(try RegularExpression("a"), try RegularExpression("b"))
    XCTAssertEqual(Set([try RegularExpression("a"), try RegularExpression("a")]).count, 1)
  }

  /// Matches on several threads at once.
  func testConcurrentMatches() async throws {
    let expression = try RegularExpression("v[0-9]+(-[a-z]+)?")
    let count = await withTaskGroup(of: Int.self) { group in
      for task in 0..<4 {
        group.addTask { (0..<200).reduce(0) { $0 + (expression.matches("v\(task)\($1)-rc") ? 1 : 0) } }
      }
      return await group.reduce(0, +)
    }
    XCTAssertEqual(count, 800)
  }
}
