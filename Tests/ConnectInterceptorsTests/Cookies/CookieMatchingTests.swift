import Connect
import XCTest

@testable import ConnectInterceptors

/// Which host may set which cookies, and which requests they go with: RFC 6265, sections 5.1.3, 5.1.4, 5.3 and 5.4.
final class CookieMatchingTests: XCTestCase {
  private func url(_ text: String) throws -> RequestURL {
    let (origin, path) = try Origin.parse(host: text)
    return RequestURL(origin: origin, path: path.isEmpty ? "/" : path)
  }

  /// Whether a cookie that the response of `source` sets goes with a request to each of `targets`.
  private func expect(
    _ setCookie: String,
    from source: String,
    goesTo targets: [String],
    notTo others: [String] = [],
    line: UInt = #line
  ) throws {
    let jar = CookieJar()
    jar.receive(setCookie, from: try self.url(source))
    for target in targets {
      XCTAssertEqual(jar.cookies(for: try self.url(target)).count, 1, target, line: line)
    }
    for other in others { XCTAssertEqual(jar.cookies(for: try self.url(other)).count, 0, other, line: line) }
    if targets.isEmpty { XCTAssertEqual(jar.cookies, [], line: line) }
  }

  func testHostOnly() throws {
    try self.expect(
      "a=b; Path=/",
      from: "https://api.example.com",
      goesTo: ["https://api.example.com", "http://API.example.com", "https://api.example.com:8443"],
      notTo: ["https://x.api.example.com", "https://example.com", "https://xapi.example.com"]
    )
  }

  func testDomains() throws {
    let here = "https://api.example.com"
    for domain in ["example.com", ".example.com", "EXAMPLE.com"] {
      try self.expect(
        "a=b; Path=/; Domain=\(domain)",
        from: here,
        goesTo: [here, "https://example.com", "https://x.y.example.com"],
        notTo: ["https://badexample.com", "https://example.com.evil.org", "https://com"]
      )
    }
    try self.expect(
      "a=b; Path=/; Domain=api.example.com",
      from: here,
      goesTo: [here, "https://x.api.example.com"],
      notTo: ["https://example.com"]
    )
    for domain in [
      "com", ".com", "other.com", "x.api.example.com", "ample.com", "pi.example.com", "example.com.",
      "..example.com",
      "example", "api.example.co", "*.example.com", "127.0.0.1", "xapi.example.com",
    ] { try self.expect("a=b; Path=/; Domain=\(domain)", from: here, goesTo: []) }
    for domain in ["", "."] {
      try self.expect(
        "a=b; Path=/; Domain=\(domain)",
        from: here,
        goesTo: [here],
        notTo: ["https://x.api.example.com"]
      )
    }
    // As there is no list of public suffixes.
    try self.expect("a=b; Path=/; Domain=co.uk", from: "https://shop.co.uk", goesTo: ["https://other.co.uk"])
  }

  func testSingleNamesAndAddresses() throws {
    try self.expect(
      "a=b; Domain=localhost",
      from: "http://localhost:8080",
      goesTo: ["http://localhost:9090"],
      notTo: ["http://x.localhost", "http://127.0.0.1"]
    )
    try self.expect("a=b; Domain=localhost", from: "http://x.localhost", goesTo: [])
    try self.expect("a=b; Domain=127.0.0.1", from: "http://127.0.0.1", goesTo: ["http://127.0.0.1:1"])
    for domain in ["0.0.1", ".0.0.1", "1", "localhost"] {
      try self.expect("a=b; Domain=\(domain)", from: "http://127.0.0.1", goesTo: [])
    }
    try self.expect(
      "a=b",
      from: "http://127.0.0.1",
      goesTo: ["http://127.0.0.1"],
      notTo: ["http://27.0.0.1", "http://0.0.1"]
    )
    try self.expect(
      "a=b",
      from: "http://[::1]",
      goesTo: ["http://[::1]:80"],
      notTo: ["http://[::2]", "http://localhost"]
    )
    try self.expect("a=b; Domain=:1", from: "http://[::1]", goesTo: [])
  }

  func testSockets() throws {
    try self.expect(
      "a=b; Path=/; Secure; Domain=localhost",
      from: "unix:/run/a.sock",
      goesTo: ["unix:/run/a.sock"],
      notTo: ["unix:/run/b.sock", "https://localhost", "unix:/run/A.sock"]
    )
    try self.expect("a=b; Domain=a.sock", from: "unix:/run/x.a.sock", goesTo: [])
  }

  func testSecure() throws {
    try self.expect(
      "a=b; Path=/; Secure",
      from: "https://api.example.com",
      goesTo: ["https://api.example.com"],
      notTo: ["http://api.example.com"]
    )
    try self.expect("a=b; Secure", from: "http://api.example.com", goesTo: [])
  }

  func testPrefixes() throws {
    let here = "https://api.example.com"
    for (setCookie, isAccepted) in [
      ("__Secure-a=b; Secure; Path=/", true), ("__Secure-a=b; Path=/", false),
      ("__secure-a=b; Path=/", false),
      ("__Host-a=b; Secure; Path=/", true), ("__Host-a=b; Secure", false), ("__Host-a=b; Path=/", false),
      ("__Host-a=b; Secure; Path=/x", false), ("__Host-a=b; Secure; Path=/; Domain=example.com", false),
      ("__HOST-a=b; Secure; Path=/; Domain=api.example.com", false), ("__Hosta=b; Path=/", true),
    ] { try self.expect(setCookie, from: here, goesTo: isAccepted ? [here] : []) }
  }

  func testSecureCookiesAreLeftAlone() throws {
    let jar = CookieJar()
    let secure = try self.url("https://api.example.com/x")
    let plain = try self.url("http://api.example.com/x")
    jar.receive("a=good; Secure; Path=/x", from: secure)
    for attack in [
      "a=bad; Path=/x", "a=bad; Path=/x/y", "a=bad; Path=/x; Domain=example.com", "a=; Max-Age=0; Path=/x",
    ] {
      jar.receive(attack, from: plain)
      XCTAssertEqual(jar.cookies.map(\.value), ["good"], attack)
    }
    jar.receive("a=other; Path=/", from: plain)
    jar.receive("b=other; Path=/x", from: plain)
    XCTAssertEqual(jar.cookies(for: secure).map(\.value), ["good", "other", "other"])
    jar.receive("a=new; Path=/x", from: secure)
    XCTAssertEqual(jar.cookies.map(\.value), ["new", "other", "other"])
  }

  func testPaths() {
    for (path, cookiePath, matches) in [
      ("/", "/", true), ("/x", "/", true), ("/x", "/x", true), ("/x/", "/x", true), ("/x/y", "/x", true),
      ("/x/y", "/x/", true), ("/xy", "/x", false), ("/x", "/x/", false), ("/", "/x", false),
      ("/X", "/x", false),
      ("/a.S/M", "/a.S", true), ("/a.S2/M", "/a.S", false), ("", "/", false),
    ] { XCTAssertEqual(Cookie.matches(path, cookiePath), matches, "\(path) \(cookiePath)") }
    for (path, cookiePath) in [
      ("/", "/"), ("/x", "/"), ("/x/", "/x"), ("/x/y", "/x"), ("/x/y/z", "/x/y"), ("", "/"), ("x/y", "/"),
      ("/pkg.Service/Method", "/pkg.Service"),
    ] { XCTAssertEqual(Cookie.defaultPath(path), cookiePath, path) }
  }

  func testOrder() throws {
    let jar = CookieJar()
    let here = try self.url("https://api.example.com/a/b/c")
    for setCookie in [
      "1=; Path=/", "2=; Path=/a/b", "3=; Path=/a/b/c", "4=; Path=/a/b", "5=; Path=/", "6=; Path=/x",
    ] {
      jar.receive(setCookie, from: here)
    }
    XCTAssertEqual(jar.cookies(for: here).map(\.name), ["3", "2", "4", "1", "5"])
    // A cookie that is replaced keeps its place.
    jar.receive("2=new; Path=/a/b", from: here)
    XCTAssertEqual(jar.cookies(for: here).map(\.name), ["3", "2", "4", "1", "5"])
    XCTAssertEqual(jar.cookies(for: here)[1].value, "new")
    // One that is removed does not.
    jar.receive("2=; Path=/a/b; Max-Age=0", from: here)
    jar.receive("2=; Path=/a/b", from: here)
    XCTAssertEqual(jar.cookies(for: here).map(\.name), ["3", "4", "2", "1", "5"])
  }
}
