import XCTest

@testable import ConnectXDS

final class VirtualHostChoiceTests: XCTestCase {
  /// The domains of the virtual host that is chosen.
  private func choose(_ host: String, _ domains: [[String]]) -> [String]? {
    RouteConfigurationResource(virtualHosts: domains.map { .init(domains: $0, routes: []) })
      .virtualHost(for: host)?.domains
  }

  func testExactThenSuffixThenPrefixThenAny() {
    let all = [["*"], ["a.*"], ["*.b"], ["a.b"]]
    XCTAssertEqual(self.choose("a.b", all), ["a.b"])
    XCTAssertEqual(self.choose("x.b", all), ["*.b"])
    XCTAssertEqual(self.choose("a.x", all), ["a.*"])
    XCTAssertEqual(self.choose("x", all), ["*"])
    XCTAssertEqual(self.choose("a.c.b", all), ["*.b"])
  }

  func testTheLongestThenTheFirst() {
    XCTAssertEqual(self.choose("x.a.b", [["*.b"], ["*.a.b"], ["*b"]]), ["*.a.b"])
    XCTAssertEqual(self.choose("a.b.c", [["a.*"], ["a.b.*"]]), ["a.b.*"])
    XCTAssertEqual(self.choose("a", [["a", "1"], ["a", "2"]]), ["a", "1"])
    XCTAssertEqual(self.choose("b", [["a"], ["c", "b"]]), ["c", "b"])
  }

  func testCaseDoesNotMatter() {
    XCTAssertEqual(self.choose("A.b", [["a.B"]]), ["a.B"])
    XCTAssertEqual(self.choose("X.B", [["*.b"]]), ["*.b"])
  }

  func testTheStarStandsForSomething() {
    XCTAssertNil(self.choose(".b", [["*.b"]]))
    XCTAssertNil(self.choose("a.", [["a.*"]]))
    XCTAssertNil(self.choose("a.b", [["b.a"]]))
    XCTAssertNil(self.choose("a", []))
  }
}
