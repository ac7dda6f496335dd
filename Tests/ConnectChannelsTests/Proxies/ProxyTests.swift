import XCTest

@testable import ConnectChannels

final class ProxyTests: XCTestCase {
  func testURLs() throws {
    let cases: [(text: String, proxy: Proxy, description: String)] = [
      ("http://proxy:3128", .httpConnect(host: "proxy", port: 3128, credentials: nil), "http://proxy:3128"),
      (" HTTP://proxy/ ", .httpConnect(host: "proxy", port: 80, credentials: nil), "http://proxy:80"),
      ("proxy:3128", .httpConnect(host: "proxy", port: 3128, credentials: nil), "http://proxy:3128"),
      (
        "http://[::1]:3128/path?x", .httpConnect(host: "::1", port: 3128, credentials: nil),
        "http://[::1]:3128"
      ),
      ("socks5://proxy", .socks5(host: "proxy", port: 1080, credentials: nil), "socks5://proxy:1080"),
      ("socks5h://proxy:1", .socks5(host: "proxy", port: 1, credentials: nil), "socks5://proxy:1"),
      (
        "http://us%40er:p%3Aa:s%C3%A9@proxy:1",
        .httpConnect(host: "proxy", port: 1, credentials: .init(user: "us@er", password: "p:a:sé")),
        "http://us@er:***@proxy:1"
      ),
      (
        "user@proxy:1", .httpConnect(host: "proxy", port: 1, credentials: .init(user: "user", password: "")),
        "http://user:***@proxy:1"
      ),
      (
        "socks5://u:p@ss@proxy:1",
        .socks5(host: "proxy", port: 1, credentials: .init(user: "u", password: "p@ss")),
        "socks5://u:***@proxy:1"
      ),
    ]
    for (text, proxy, description) in cases {
      XCTAssertEqual(try Proxy(text), proxy, text)
      XCTAssertEqual(proxy.description, description)
    }
  }

  func testErrors() {
    let cases: [(text: String, advice: String)] = [
      ("", "the host is missing"), ("http://", "the host is missing"), ("http://proxy:x", "1 to 65535"),
      ("https://proxy", "write http://HOST:PORT"), ("ftp://proxy", "the scheme \"ftp\" is not supported"),
      ("socks4://proxy", "write http://HOST:PORT or socks5://HOST:PORT"),
      ("http://u:%zz@proxy", "write % as %25"),
      ("http://u:secret/x@proxy", "write / as %2F"), ("http://u:%ff@proxy", "of UTF-8"),
      ("http://a%3Ab:secret@proxy", "has a colon"), ("socks5://u@proxy", "1 to 255 bytes"),
      ("socks5://" + String(repeating: "u", count: 256) + ":secret@proxy", "1 to 255 bytes"),
    ]
    for (text, advice) in cases {
      XCTAssertThrowsError(try Proxy(text), text) { error in
        XCTAssertTrue("\(error)".contains(advice), "\(text): \(error)")
        XCTAssertFalse("\(error)".contains("secret"), "\(error)")
      }
    }
  }

  func testCheckOfAProxyThatNoURLHasMade() throws {
    let login = Proxy.Credentials(user: "us", password: "secret")
    XCTAssertNoThrow(try Proxy.httpConnect(host: "::1", port: 1, credentials: login).check())
    XCTAssertNoThrow(try Proxy.socks5(host: "proxy", port: 65_535, credentials: nil).check())
    let wrong: [Proxy] = [
      .httpConnect(host: "", port: 1, credentials: nil), .httpConnect(host: "a b", port: 1, credentials: nil),
      .httpConnect(host: "proxy", port: 0, credentials: nil),
      .socks5(host: "proxy", port: 65_536, credentials: nil),
      .httpConnect(host: "proxy", port: 1, credentials: .init(user: "a:b", password: "secret")),
      .socks5(host: "proxy", port: 1, credentials: .init(user: "", password: "secret")),
    ]
    for proxy in wrong {
      XCTAssertThrowsError(try proxy.check(), "\(proxy)") { error in
        XCTAssertEqual((error as? ProxyError)?.reason, .invalidURL)
        XCTAssertFalse("\(error)".contains("secret"), "\(error)")
      }
    }
  }

  func testNothingShowsThePassword() throws {
    let settings = ProxySettings(proxy: try Proxy("http://user:secret@proxy:1"))
    var dumped = ""
    dump(settings, to: &dumped)
    for text in ["\(settings)", String(reflecting: settings), "\([settings.proxy])", dumped] {
      XCTAssertFalse(text.contains("secret"), text)
    }
  }

  func testEnvironment() throws {
    let cases: [(environment: [String: String], proxy: String?)] = [
      ([:], nil),
      (["grpc_proxy": "g:1", "https_proxy": "s:1", "http_proxy": "h:1"], "http://g:1"),
      (["GRPC_PROXY": "g:1", "https_proxy": "s:1"], "http://g:1"),
      (["GRPC_PROXY": "G:1", "grpc_proxy": "g:1"], "http://g:1"),
      (["https_proxy": "s:1", "http_proxy": "h:1"], "http://s:1"),
      (["HTTPS_PROXY": "s:1", "http_proxy": "h:1"], "http://s:1"),
      (["HTTP_PROXY": "h:1"], "http://h:1"),
      (["HTTP_PROXY": "h:1", "REQUEST_METHOD": "GET"], nil),
      (["http_proxy": "h:1", "REQUEST_METHOD": "GET"], "http://h:1"),
      (["HTTPS_PROXY": "h:1", "REQUEST_METHOD": "GET"], "http://h:1"),
      (["grpc_proxy": "", "https_proxy": "s:1"], nil),
      (["all_proxy": "a:1"], nil),
      (["http_proxy": "socks5://h", "no_proxy": "server"], nil),
      (["http_proxy": "socks5://h", "no_grpc_proxy": "other", "no_proxy": "server"], "socks5://h:1080"),
      (["http_proxy": "socks5://h", "no_grpc_proxy": "", "NO_PROXY": "*"], "socks5://h:1080"),
      (["http_proxy": "socks5://h", "NO_PROXY": "*"], nil),
    ]
    for (environment, proxy) in cases {
      let settings = try ProxySettings.fromEnvironment(environment)
      XCTAssertEqual(settings.proxy(host: "server", port: 443)?.description, proxy, "\(environment)")
    }
    XCTAssertThrowsError(try ProxySettings.fromEnvironment(["HTTPS_PROXY": "ftp://x"])) { error in
      XCTAssertTrue("\(error)".contains("the environment variable HTTPS_PROXY"), "\(error)")
    }
  }

  func testExceptions() {
    let cases: [(list: String, host: String, isMatch: Bool)] = [
      ("", "a", false), ("*", "a", true), ("x, *", "a", true),
      ("example.com", "example.com", true), ("example.com", "Example.COM.", true),
      ("example.com.", "example.com", true),
      ("example.com", "a.b.example.com", true), ("example.com", "badexample.com", false),
      (".example.com", "example.com", false), (".example.com", "a.example.com", true),
      ("*.example.com", "a.example.com", true), ("*.example.com", "example.com", false),
      ("a b\tc,d", "c", true), ("a,,b", "", false), ("example.com:443", "a.example.com", true),
      ("example.com:80", "example.com", false), ("*:443", "a", true), ("*:80", "a", false),
      ("10.0.0.1", "10.0.0.1", true), ("10.0.0.1", "10.0.0.2", false), ("10.0.0.1:443", "10.0.0.1", true),
      ("10.0.0.1:80", "10.0.0.1", false), ("10.0.0.0/8", "10.9.9.9", true), ("10.0.0.0/8", "11.0.0.0", false),
      ("10.0.0.0/8", "10.example", false), ("::1", "::1", true), ("[::1]", "0:0::1", true),
      ("[::1]:443", "::1", true),
      ("[::1]:80", "::1", false), ("2001:db8::/32", "2001:db8:1::", true),
      ("10.0.0.0/8", "::ffff:10.0.0.1", true),
      ("0.1", "10.0.0.1", false), ("nonsense/8", "nonsense", false), ("a:b:c", "a", false),
    ]
    for (list, host, isMatch) in cases {
      XCTAssertEqual(NoProxyList(list).contains(host: host, port: 443), isMatch, "\(host) in \(list)")
    }
  }
}
