import XCTest

@testable import Connect

final class AuthorityTests: XCTestCase {
  func testHostAndPort() throws {
    let cases: [(String, String, Int?)] = [
      ("api.example", "api.example", nil), ("API.Example:8443", "api.example", 8443),
      ("127.0.0.1:1", "127.0.0.1", 1),
      ("[2001:DB8::1]", "2001:db8::1", nil), ("[::1]:443", "::1", 443), ("a_b~c-d", "a_b~c-d", nil),
    ]
    for (text, host, port) in cases {
      let authority = try Authority(ofCall: text)
      XCTAssertEqual(authority.host, host, text)
      XCTAssertEqual(authority.port, port, text)
    }
  }

  func testErrorsSayWhatToDo() {
    for (text, problem) in [
      ("", "has no host"), (":80", "has no host"), ("a b", "character"), (" a", "character"),
      ("a\r\nb: c", "character"),
      ("a\0", "character"), ("a/b", "has a path or a scheme"), ("https://a", "has a path or a scheme"),
      ("a?b", "has a path"), ("a#b", "has a path"), ("a:", "port that is not a number"),
      ("a:x", "not a number"),
      ("a:0", "between 1 and 65535"), ("a:65536", "between 1 and 65535"), ("::1", "has no host"),
      ("[::1", "not closed"), ("[a]", "no IPv6 address"), ("häuser", "xn--"), ("a,b", "character"),
      ("*.a", "character"),
    ] {
      XCTAssertThrowsError(try Authority(ofCall: text), text) { error in
        let error = error as? ConnectError
        XCTAssertEqual(error?.code, .invalidArgument)
        let message = error?.message ?? ""
        XCTAssertTrue(message.contains(problem), "\(text): \(message)")
        XCTAssertTrue(message.contains("write HOST or HOST:PORT"), message)
        XCTAssertFalse(message.contains("\r"), message)
      }
    }
  }

  func testPasswordsAreNotInErrors() {
    XCTAssertThrowsError(try Authority(ofCall: "ann:s3cret@a")) { error in
      let message = (error as? ConnectError)?.message ?? ""
      XCTAssertTrue(message.contains("has user information"), message)
      XCTAssertFalse(message.contains("s3cret"), message)
    }
  }
}
