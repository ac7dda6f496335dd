import ConnectChannels
import XCTest

@testable import ConnectNIO

final class NameRuleTests: XCTestCase {
  private func presented(dns: [String] = [], uris: [String] = []) -> PresentedIdentifiers {
    PresentedIdentifiers(dnsNames: dns.map { Array($0.utf8) }, uris: uris.map { Array($0.utf8) })
  }

  func testSPIFFEIDs() throws {
    for text in [
      "spiffe://a", "spiffe://a/b", "spiffe://a-b.c_d.1/B/c.d_e-f", "spiffe://a/...", "spiffe://1.2.3.4/x",
    ] {
      XCTAssertEqual(try SPIFFEID(text).description, text)
    }
    for text in [
      "", "a", "spiffe:", "spiffe://", "spiffe:///a", "SPIFFE://a/b", "https://a/b", "spiffe://A/b",
      "spiffe://a/",
      "spiffe://a//b", "spiffe://a/./b", "spiffe://a/../b", "spiffe://a/b/", "spiffe://a/b?c",
      "spiffe://a/b#c",
      "spiffe://a:1/b", "spiffe://u@a/b", "spiffe://a/%41", "spiffe://a/ü", "spiffe://a/b c",
      "spiffe://a/" + String(repeating: "b", count: 2048), "spiffe://\(String(repeating: "a", count: 256))/b",
    ] {
      XCTAssertThrowsError(try SPIFFEID(text), text)
    }
  }

  /// A certificate with more than one URI has no SPIFFE ID (X.509-SVID, section 2).
  func testSPIFFEIDOfACertificate() throws {
    let id = try SPIFFEID("spiffe://a/b")
    XCTAssertEqual(self.presented(uris: ["spiffe://a/b"]).spiffeID, id)
    XCTAssertEqual(self.presented(dns: ["a.test"], uris: ["spiffe://a/b"]).spiffeID, id)
    for uris in [
      [], ["spiffe://a/b", "spiffe://a/b"], ["https://a/b", "spiffe://a/b"], ["https://a/b"],
      ["spiffe://a/b\u{0}"],
    ] {
      XCTAssertNil(self.presented(uris: uris).spiffeID, "\(uris)")
    }
  }

  func testRules() throws {
    let host = try ReferenceIdentifier("a.test")
    let own = self.presented(dns: ["*.test.example"], uris: ["spiffe://prod/a"])
    let cases: [(NameRule, Bool, String)] = [
      (.connection, false, "'a.test'"), (.any, true, "anything"),
      (.oneOf([.host(try ReferenceIdentifier("b.test.example"))]), true, "'b.test.example'"),
      (.oneOf([.spiffeID(try SPIFFEID("spiffe://prod/a"))]), true, "'spiffe://prod/a'"),
      (.oneOf([.spiffeID(try SPIFFEID("spiffe://prod"))]), false, "'spiffe://prod'"),
      (.oneOf([.trustDomain("prod")]), true, "'spiffe://prod/*'"),
      (
        .oneOf([.trustDomain("pro"), .uri("spiffe://prod/A")]), false, "'spiffe://pro/*' or 'spiffe://prod/A'"
      ),
      (
        .oneOf(Array(repeating: .trustDomain("x"), count: 12)), false,
        String(repeating: "'spiffe://x/*' or ", count: 10) + "2 more"
      ),
    ]
    for (rule, isAccepted, text) in cases {
      XCTAssertEqual(rule.accepts(own, of: host), isAccepted, "\(rule)")
      XCTAssertEqual(rule.text(of: host), text)
    }
    XCTAssertTrue(NameRule.connection.accepts(self.presented(dns: ["A.test"]), of: host))
  }
}
