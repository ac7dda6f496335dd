import XCTest

@testable import ConnectXDS

final class RegexSyntaxTests: XCTestCase {
  func testPatternsOfRE2() {
    for pattern in [
      "", "a", "/a/.*", "(?:a|b){3}", "[{]{1000}", "a{,5}", "a{b}", "(?i)abc", "(?P<name>a)",
      "[0-9a-f]{8}(-[0-9a-f]{4}){3}",
      "(a{10}){100}", "a{500}b{500}c{500}", "\\{1001x?", "(a{1,}){1000}", "[[:alpha:]{2000}]",
      "\\Q(?=a{2000}\\E", "[a\\-\\-b]", "a--b&&c", "[a-z-]", "[\\[]",
    ] {
      XCTAssertNil(RegexSyntax.problem(of: pattern), pattern)
    }
  }

  /// RE2 refuses them, and trying them could take for ever.
  func testPatternsThatRE2DoesNotHave() {
    let cases = [
      ("a{1001}", "repetitions"), ("a{2,1001}", "repetitions"), ("a{99999999999999999999}", "repetitions"),
      ("(a{11}){100}", "repetitions"), ("((){1000}){1000}", "repetitions"),
      ("((a{2}b){100}c){6}", "repetitions"),
      ("a(?=b)", "looks around"), ("a(?!b)", "looks around"), ("(?<=a)b", "looks around"),
      ("(?<!a)b", "looks around"), ("(?>a)b", "looks around"), ("(a)\\1", "refers back"),
      ("(?P<n>a)\\k<n>", "refers back"), ("(", "no regular expression"),
      ("[a-z--m]", "-- in a class"), ("[a&&b]", "&& in a class"), ("[a~~b]", "~~ in a class"),
      ("[a[b]]", "unescaped ["), ("[a", "no regular expression"), ("[]a]", "no regular expression"),
    ]
    for (pattern, problem) in cases {
      let found = RegexSyntax.problem(of: pattern)
      XCTAssertTrue(found?.contains(problem) == true, "\(pattern): \(found ?? "accepted")")
    }
  }

  func testProblemsAreShort() throws {
    let name = String(repeating: "a*é", count: 100_000)
    let problems = ProblemList()
    FieldPlace(problems).field("a").report(name)
    XCTAssertLessThan(try XCTUnwrap(problems.problem?.problems.first).utf8.count, 4_010)
  }
}
