import XCTest

@testable import ConnectInterceptors

/// What is read of a `Set-Cookie` header: RFC 6265, section 5.2.
final class SetCookieTests: XCTestCase {
  private static let now = Duration.seconds(1_700_000_000)

  private func parse(_ text: String) -> SetCookie? { SetCookie(text, now: Self.now) }

  func testNamesAndValues() {
    let cases: [(text: String, name: String?, value: String)] = [
      ("a=b", "a", "b"),
      ("a=", "a", ""),
      (" a \t=\t b c ", "a", "b c"),
      ("a=b=c", "a", "b=c"),
      (#"a="b c""#, "a", #""b c""#),
      ("a=b;", "a", "b"),
      ("a=b;;;", "a", "b"),
      ("a b=c", "a b", "c"),
      ("a,b=c,d", "a,b", "c,d"),
      ("A=ü", "A", "ü"),
      ("=b", nil, ""),
      (" =b", nil, ""),
      ("a", nil, ""),
      ("", nil, ""),
      (";a=b", nil, ""),
      ("a;b=c", nil, ""),
      ("a=b\u{0}c", nil, ""),
      ("a=b\nx: y", nil, ""),
      ("a=b\u{7f}", nil, ""),
      ("a=b; path=/\u{1}", nil, ""),
    ]
    for (text, name, value) in cases {
      let cookie = self.parse(text)
      XCTAssertEqual(cookie?.name, name, text)
      if name != nil { XCTAssertEqual(cookie?.value, value, text) }
    }
  }

  func testExpiry() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    let cases: [(text: String, expiry: Duration?)] = [
      ("", nil),
      ("Expires=\(date)", .seconds(784_111_777)),
      ("expires = \(date) ", .seconds(784_111_777)),
      ("EXPIRES=nonsense", nil),
      ("Expires=\(date); Expires=nonsense", .seconds(784_111_777)),
      ("Expires=\(date); Expires=7 Nov 1994 08:49:37", .seconds(784_111_777 + 86_400)),
      ("Max-Age=60", Self.now + .seconds(60)),
      ("max-age= 60 ", Self.now + .seconds(60)),
      ("Max-Age=60; Expires=\(date)", Self.now + .seconds(60)),
      ("Expires=\(date); Max-Age=60", Self.now + .seconds(60)),
      ("Max-Age=0", Self.now),
      ("Max-Age=-1", Self.now),
      ("Max-Age=-99999999999999999999", Self.now),
      ("Max-Age=99999999999999999999", Self.now + .seconds(100 * 365 * 86_400)),
      ("Max-Age=", nil),
      ("Max-Age=-", nil),
      ("Max-Age=+1", nil),
      ("Max-Age=1.5", nil),
      ("Max-Age=6 0", nil),
      ("Max-Age=\"60\"", nil),
      ("Max-Age=60; Max-Age=x", Self.now + .seconds(60)),
      ("Max-Age=60; Max-Age=90", Self.now + .seconds(90)),
    ]
    for (text, expiry) in cases { XCTAssertEqual(self.parse("a=b; \(text)")?.expiry, expiry, text) }
  }

  func testOtherAttributes() {
    let cases: [(text: String, domain: String?, path: String?, isSecure: Bool)] = [
      ("Domain=Example.COM", "example.com", nil, false),
      ("domain=.example.com", "example.com", nil, false),
      ("Domain=..example.com", ".example.com", nil, false),
      ("Domain=", nil, nil, false),
      ("Domain", nil, nil, false),
      ("Domain=.", nil, nil, false),
      ("Domain=a.b; Domain=", "a.b", nil, false),
      ("Domain=a.b; Domain=c.d", "c.d", nil, false),
      ("Path=/x", nil, "/x", false),
      ("path = /x/ ", nil, "/x/", false),
      ("Path=x", nil, nil, false),
      ("Path=", nil, nil, false),
      ("Path=/x; Path=y", nil, nil, false),
      ("Path=/x; Path=/y", nil, "/y", false),
      ("Secure", nil, nil, true),
      ("secure=no", nil, nil, true),
      ("HttpOnly; SameSite=Strict; Partitioned; unknown=1; =x", nil, nil, false),
      ("HttpOnly;Secure;Path=/;Domain=a.b", "a.b", "/", true),
    ]
    for (text, domain, path, isSecure) in cases {
      let cookie = self.parse("a=b; \(text)")
      XCTAssertNotNil(cookie, text)
      XCTAssertEqual(cookie?.domain, domain, text)
      XCTAssertEqual(cookie?.path, path, text)
      XCTAssertEqual(cookie?.isSecure, isSecure, text)
    }
  }

  func testSizes() {
    func text(_ count: Int) -> String { String(repeating: "x", count: count) }
    XCTAssertNotNil(self.parse("a=\(text(4095))"))
    XCTAssertNil(self.parse("a=\(text(4096))"))
    XCTAssertNotNil(self.parse("a=\(text(2000)); path=/\(text(2090))"))
    XCTAssertNil(self.parse("a=\(text(2000)); path=/\(text(2091))"))
    XCTAssertNil(self.parse("a=\(text(1_000_000))"))
    XCTAssertNil(self.parse("a=b" + String(repeating: ";", count: 1_000_000)))
  }
}
