internal import ConnectChannels
internal import XCTest

@testable internal import ConnectXDS

final class RouteMatchDecoderTests: XCTestCase {
  private func text(_ match: String) -> String {
    "virtual_hosts { domains: '*' routes { match { \(match) } route { cluster: 'c' } } }"
  }

  /// Nil for routes that are left out.
  private func match(_ match: String) throws -> RouteMatch? {
    try ResourceText.routes(self.text(match))?.virtualHosts.first?.routes.first?.match
  }

  private func check(_ match: String, _ problem: String, line: UInt = #line) throws {
    XCTAssertEqual(
      try ResourceText.problems(self.text(match), as: .routeConfiguration),
      ["virtual_hosts[0].routes[0].match\(problem)"],
      line: line
    )
  }

  // MARK: - Paths

  func testPrefixes() throws {
    for prefix in ["", "/", "/a", "/a.B/", "/a.B/c"] {
      XCTAssertEqual(try self.match("prefix: '\(prefix)'"), RouteMatch(path: .prefix(prefix)))
    }
    for prefix in ["a", "//", "//a", "/a//", "/a/b/"] {
      XCTAssertNil(try self.match("prefix: '\(prefix)'"), prefix)
    }
  }

  func testPaths() throws {
    XCTAssertEqual(try self.match("path: '/a.B/c'"), RouteMatch(path: .exact("/a.B/c")))
    for path in ["", "a", "/", "/a", "/a/", "//a", "/a/b/", "/a/b/c"] {
      XCTAssertNil(try self.match("path: '\(path)'"), path)
    }
  }

  func testRegularExpressions() throws {
    XCTAssertEqual(try self.match("safe_regex { regex: '/a.*' }"), RouteMatch(path: .regex("/a.*")))
    for pattern in [
      "(", "[a", "a**", "*", String(repeating: "(", count: 1000), String(repeating: "a", count: 5000),
    ] {
      let problem = try XCTUnwrap(RegexSyntax.problem(of: pattern), pattern)
      try self.check("safe_regex { regex: '\(pattern)' }", ": error creating path matcher: \(problem)")
    }
  }

  func testCase() throws {
    XCTAssertEqual(try self.match("prefix: '' case_sensitive {}"), RouteMatch(isCaseSensitive: false))
    XCTAssertEqual(try self.match("prefix: '' case_sensitive { value: true }"), .all)
  }

  func testNoPath() throws {
    try self.check("", ": invalid path specifier")
    XCTAssertNil(try self.match("prefix: '' query_parameters { name: 'a' }"))
  }

  // MARK: - Fractions

  func testFractions() throws {
    let cases: [(String, Double?)] = [
      ("", nil),
      ("default_value { numerator: 25 }", 0.25),
      ("default_value { numerator: 25 denominator: TEN_THOUSAND }", 0.0025),
      ("default_value { numerator: 25 denominator: MILLION }", 0.000_025),
      ("default_value { numerator: 4294967295 }", 1),
      ("default_value {}", 0),
    ]
    for (text, fraction) in cases {
      XCTAssertEqual(try self.match("prefix: '' runtime_fraction { \(text) }")?.fraction, fraction, text)
    }
    try self.check(
      "prefix: '' runtime_fraction { default_value { denominator: 3 } }",
      ".runtime_fraction.default_value.denominator: unknown denominator type"
    )
  }

  // MARK: - Headers

  func testHeaders() throws {
    let cases: [(String, HeaderMatch)] = [
      ("exact_match: 'x'", .init("a", .exact("x"))),
      ("prefix_match: 'x'", .init("a", .prefix("x"))),
      ("suffix_match: 'x'", .init("a", .suffix("x"))),
      ("contains_match: 'x'", .init("a", .contains("x"))),
      ("safe_regex_match { regex: 'x+' }", .init("a", .regex("x+"))),
      ("range_match { start: -1 end: 7 }", .init("a", .range(-1..<7))),
      ("range_match {}", .init("a", .range(0..<0))),
      ("present_match: true", .init("a", .present)),
      ("present_match: false", .init("a", .present, isInverted: true)),
      ("present_match: true invert_match: true", .init("a", .present, isInverted: true)),
      ("present_match: false invert_match: true", .init("a", .present)),
      ("exact_match: 'x' invert_match: true", .init("a", .exact("x"), isInverted: true)),
      ("string_match { exact: 'x' }", .init("a", .exact("x"))),
      ("string_match { exact: 'x' ignore_case: true }", .init("a", .exact("x"), ignoresCase: true)),
      ("string_match { prefix: 'x' }", .init("a", .prefix("x"))),
      ("string_match { suffix: 'x' }", .init("a", .suffix("x"))),
      ("string_match { contains: 'x' }", .init("a", .contains("x"))),
      ("string_match { safe_regex { regex: '[[:alpha:]]+' } }", .init("a", .regex("[[:alpha:]]+"))),
    ]
    for (text, match) in cases {
      XCTAssertEqual(try self.match("prefix: '' headers { name: 'a' \(text) }")?.headers, [match], text)
    }
  }

  func testHeadersThatAreRefused() throws {
    let regex = try XCTUnwrap(RegexSyntax.problem(of: "("))
    let cases = [
      ("", ": invalid header matcher"),
      ("string_match {}", ".string_match: invalid string matcher"),
      ("safe_regex_match { regex: '(' }", ": cannot create header matcher: \(regex)"),
      ("string_match { safe_regex { regex: '(' } }", ".string_match: \(regex)"),
      (
        "string_match { safe_regex { regex: 'x+' } ignore_case: true }",
        ".string_match.ignore_case: not supported for regex matcher"
      ),
      (
        "range_match { start: 2 end: 1 }",
        ": cannot create header matcher: the end of the range is before its start"
      ),
    ]
    for (text, problem) in cases {
      try self.check("prefix: '' headers { name: 'a' \(text) }", ".headers[0]\(problem)")
    }
  }
}
