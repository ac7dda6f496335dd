import XCTest

@testable import ConnectNIO

final class CertificateNamesTests: XCTestCase {
  func testMatches() {
    let cases: [(pattern: String, host: String, isMatch: Bool)] = [
      ("example.com", "example.com", true),
      ("Example.COM.", "example.com", true),
      ("example.com", "example.com.", true),
      ("example.com", "a.example.com", false),
      ("*.example.com", "a.example.com", true),
      ("*.example.com", "a.b.example.com", false),
      ("*.example.com", "example.com", false),
      ("*.com", "example.com", false),
      ("a*.example.com", "ab.example.com", false),
      ("localhost", "localhost", true),
      ("*", "localhost", false),
      ("", "localhost", false),
    ]
    for (pattern, host, isMatch) in cases {
      XCTAssertEqual(CertificateNames.matches(pattern, host: host), isMatch, "\(pattern) for \(host)")
    }
  }
}
