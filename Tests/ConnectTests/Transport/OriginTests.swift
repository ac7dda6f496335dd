import NIOCore
import TestSupport
import XCTest

@testable import Connect

final class OriginTests: XCTestCase {
  private func check(
    _ text: String,
    _ origin: Origin,
    prefix: String = "",
    authority: String? = nil,
    line: UInt = #line
  ) {
    do {
      let parsed = try Origin.parse(host: text)
      XCTAssertEqual(parsed.origin, origin, text, line: line)
      XCTAssertEqual(parsed.pathPrefix, prefix, text, line: line)
      if let authority { XCTAssertEqual(parsed.origin.authority, authority, text, line: line) }
    } catch {
      XCTFail("\(text): \(error)", line: line)
    }
  }

  private func refuse(_ text: String, _ reason: String, line: UInt = #line) {
    XCTAssertThrowsError(try Origin.parse(host: text), text, line: line) { error in
      let error = error as? ConnectError
      XCTAssertEqual(error?.code, .invalidArgument, line: line)
      let message = error?.message ?? ""
      XCTAssertTrue(message.contains(reason), message, line: line)
    }
  }

  func testHTTP() {
    self.check("http://h", Origin(scheme: .http, host: "h", port: 80), authority: "h")
    self.check("https://h", Origin(scheme: .https, host: "h", port: 443), authority: "h")
    self.check("http://h:443", Origin(scheme: .http, host: "h", port: 443), authority: "h:443")
    self.check("https://h:80", Origin(scheme: .https, host: "h", port: 80), authority: "h:80")
    self.check("https://h:443", Origin(scheme: .https, host: "h", port: 443), authority: "h")
    self.check("http://127.0.0.1:1", Origin(scheme: .http, host: "127.0.0.1", port: 1))
    self.check("http://h:65535", Origin(scheme: .http, host: "h", port: 65_535))
    self.check("HTTPS://Demo.Example", Origin(scheme: .https, host: "demo.example", port: 443))
    self.check("http://my_service-1.local.", Origin(scheme: .http, host: "my_service-1.local.", port: 80))
  }

  func testIPv6() {
    self.check("http://[::1]:8080", Origin(scheme: .http, host: "::1", port: 8080), authority: "[::1]:8080")
    self.check(
      "https://[2001:DB8::1]/x",
      Origin(scheme: .https, host: "2001:db8::1", port: 443),
      prefix: "/x"
    )
    self.refuse("http://[::1", "bracket")
    self.refuse("http://[]", "IPv6")
    self.refuse("http://[127.0.0.1]", "IPv6")
    self.refuse("http://[fe80::1%25eth0]", "IPv6")
    self.refuse("http://[::1]8080", "bracket")
    self.refuse("http://::1", "no host")
    self.refuse("http://fe80::1", "port that is not a number")
  }

  func testBasePath() {
    let origin = Origin(scheme: .http, host: "h", port: 1)
    self.check("http://h:1/", origin)
    self.check("http://h:1//", origin)
    self.check("http://h:1/base", origin, prefix: "/base")
    self.check("http://h:1/base/", origin, prefix: "/base")
    self.check("http://h:1/a%20b/C//", origin, prefix: "/a%20b/C")
    self.refuse("http://h/a b", "path")
    self.refuse("http://h/ü", "path")
  }

  func testUnix() {
    let origin = Origin(scheme: .unix, host: "/run/my.sock", port: 0)
    self.check("unix:/run/my.sock", origin, authority: "localhost")
    self.check("unix:///run/my.sock", origin)
    self.check("unix:/run/a b?#@ü", Origin(scheme: .unix, host: "/run/a b?#@ü", port: 0))
    self.refuse("unix:", "absolute")
    self.refuse("unix:run/my.sock", "absolute")
    self.refuse("unix://host/my.sock", "absolute")
    self.refuse("unix:/" + String(repeating: "x", count: 107), "108 bytes")
    self.refuse("unix:/run/\0", "control")
  }

  func testAbstractUnix() {
    self.check(
      "unix-abstract:my.sock",
      Origin(scheme: .unixAbstract, host: "my.sock", port: 0),
      authority: "localhost"
    )
    self.check("unix-abstract:/a b:1", Origin(scheme: .unixAbstract, host: "/a b:1", port: 0))
    self.refuse("unix-abstract:", "without the NUL in front")
    self.refuse("unix-abstract:" + String(repeating: "x", count: 108), "108 bytes; the limit is 107")
    self.refuse("unix-abstract:a\0", "control")
  }

  func testVsock() {
    self.check("vsock:3:50051", Origin(scheme: .vsock, host: "3", port: 50_051), authority: "localhost")
    self.check("vsock:1:4294967294", Origin(scheme: .vsock, host: "1", port: 4_294_967_294))
    for text in [
      "vsock:", "vsock:x", "vsock:3", "vsock:3:", "vsock::1", "vsock:3:x", "vsock:-1:5", "vsock:3:5:6",
    ] {
      self.refuse(text, "write vsock:CID:PORT, two numbers from 0 to 4294967294, as in vsock:3:50051")
    }
    self.refuse("vsock:3:4294967295", "vsock:CID:PORT")
    self.refuse("vsock:3:5/base", "vsock:CID:PORT")
  }

  func testErrors() {
    self.refuse("", "no scheme")
    self.refuse("demo.example", "no scheme")
    self.refuse("localhost:8080", "no scheme")
    self.refuse("ftp://h", "scheme other than")
    self.refuse("http:h", "'//'")
    self.refuse("http:/h", "'//'")
    self.refuse("http://", "no host")
    self.refuse("http:///base", "no host")
    self.refuse("http://:80", "no host")
    self.refuse("http://h:", "not a number")
    self.refuse("http://h:x", "not a number")
    self.refuse("http://h:+1", "not a number")
    self.refuse("http://h:-1", "not a number")
    self.refuse("http://h:1:2", "not a number")
    self.refuse("http://h:0", "between 1 and 65535")
    self.refuse("http://h:65536", "between 1 and 65535")
    self.refuse("http://h:99999999999999999999", "between 1 and 65535")
    self.refuse("http://h?q", "query")
    self.refuse("http://h/x?q=1", "query")
    self.refuse("http://h#f", "fragment")
    self.refuse("http://h h", "character")
    self.refuse(" http://h", "scheme")
    self.refuse("http://h\r\nx", "control")
    self.refuse("http://h\u{7f}", "control")
    self.refuse("http://häuser.example", "ASCII")
    self.refuse("http://h%41", "character")
    self.refuse("http://h\\x", "character")
  }

  func testErrorsNameTheTextButNoPassword() {
    self.refuse("ftp://h", "'ftp://h'")
    XCTAssertThrowsError(try Origin.parse(host: "http://ann:s3cret@h:1")) { error in
      let message = (error as? ConnectError)?.message ?? ""
      XCTAssertEqual(message, "host 'http:…@h:1' has user information")
    }
  }

  func testDescriptionParsesBack() throws {
    for text in [
      "http://h", "https://h:8443", "http://[::1]:8080", "unix:/run/my.sock", "unix-abstract:a", "vsock:3:1",
    ] {
      XCTAssertEqual(try Origin.parse(host: text).origin.description, text)
    }
  }

  func testNoInputTraps() {
    var random = SeededGenerator()
    let alphabet = Array("htps:/[]@?#. 019-%\u{301}ü\0")
    for _ in 0..<20_000 {
      let text = String(
        (0..<Int.random(in: 0..<12, using: &random)).compactMap { _ in alphabet.randomElement(using: &random)
        }
      )
      for prefix in ["", "http://", "unix:", "https://[", "unix-abstract:", "vsock:"] {
        _ = try? Origin.parse(host: prefix + text)
      }
    }
  }
}
