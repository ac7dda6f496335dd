import XCTest

@testable import Connect

final class HeaderRulesTests: XCTestCase {
  private func check(_ headers: Headers, trailers: Headers = Headers()) -> ConnectError? {
    do throws(ConnectError) {
      try HeaderRules.check(headers, trailers: trailers, for: ConnectProtocol())
      return nil
    } catch {
      return error
    }
  }

  private func refuse(_ name: String, _ value: String = "x", saying text: String, line: UInt = #line) {
    for (kind, error) in [
      ("header", self.check(["ok": ["1"], name: [value]])),
      ("trailer", self.check([:], trailers: ["ok": ["1"], name: [value]])),
    ] {
      XCTAssertEqual(error?.code, .invalidArgument, name, line: line)
      let message = error?.message ?? ""
      XCTAssertTrue(message.contains(text) && message.contains(kind), message, line: line)
    }
  }

  func testGoodHeaders() {
    let headers: Headers = [
      "authorization": ["Bearer a.b-c"], "x-a": ["", "a\tb c", "ü € 😀"], "user-agent": ["me/1"],
      "x!#$%&'*+-.^_`|~9": ["\u{80}"], "data-bin": ["AAEC"], "cookie": ["a=b; c=d"], "accept": ["*/*"],
    ]
    XCTAssertNil(self.check(headers, trailers: headers))
    XCTAssertNil(self.check([:]))
  }

  /// The one of gRPC's reserved names that interceptors set.
  func testPreviousAttempts() throws {
    let headers: Headers = ["grpc-previous-rpc-attempts": ["1"]]
    for wire in [ConnectProtocol(), GRPCProtocol(), GRPCWebProtocol(isText: false)] as [any WireProtocol] {
      XCTAssertTrue(wire.owns(headerName: "grpc-previous-rpc-attempts"))
      try HeaderRules.check(headers, trailers: Headers(), for: wire)
    }
  }

  func testNames() {
    self.refuse("", saying: "empty")
    for name in ["a b", "a:", "a\r\nb", "a\0", "ä", "a/b", "a(b)", "a,b", "a\"", "a\u{7f}", " a", "{a}"] {
      self.refuse(name, saying: "field name")
    }
    self.refuse(":path", saying: "':path' is a pseudo-header")
    self.refuse(":", saying: "pseudo-header")
  }

  func testMessagesCannotBreakALogLine() {
    let message = self.check(["a\r\nb": ["x"]])?.message ?? ""
    XCTAssertTrue(message.contains("'a??b'"), message)
  }

  func testValues() {
    for value in ["a\r\nb", "\n", "a\0", "a\u{1}", "\u{7f}", "a\u{1b}[0m"] {
      self.refuse("x-a", value, saying: "'x-a' has a control character")
    }
    for value in [" a", "\ta", " "] { self.refuse("x-a", value, saying: "'x-a' begins with a space") }
    for value in ["a ", "a\t"] { self.refuse("x-a", value, saying: "'x-a' ends with a space") }
  }

  func testEachPlaceOfALongText() throws {
    for length in [15, 16, 17, 31, 32, 33, 70] {
      let value = String(repeating: "v", count: length)
      let path = "/" + String(repeating: "p", count: length)
      XCTAssertNil(self.check(["x-a": [value]]))
      XCTAssertNoThrow(try HeaderRules.check(path: path, query: nil))
      for index in 0..<length {
        self.refuse(
          "x-a",
          value.replacing(at: index, with: "\u{7f}"),
          saying: "'x-a' has a control character"
        )
        for character: Character in [" ", "#", "\u{7f}", "ä"] {
          let path = path.replacing(at: index + 1, with: character)
          XCTAssertThrowsError(try HeaderRules.check(path: path, query: nil), path)
        }
      }
    }
  }

  func testConnectionSpecificHeaders() {
    for name in [
      "connection", "Keep-Alive", "proxy-connection", "Transfer-Encoding", "upgrade", "Host",
      "content-length",
      "TE", "trailer",
    ] {
      self.refuse(name, saying: "'\(name.lowercased())' belongs to the HTTP connection")
    }
  }

  func testHeadersOfTheWireProtocol() {
    for name in [
      "Content-Type", "Connect-Protocol-Version", "connect-timeout-ms", "content-encoding", "accept-encoding",
      "connect-content-encoding", "connect-accept-encoding", "connect-anything", "grpc-timeout",
      "grpc-status",
    ] {
      self.refuse(name, saying: "'\(name.lowercased())' belongs to the connect protocol")
    }
    XCTAssertNil(self.check(["connection-id": ["1"], "grpcx": ["1"], "content": ["1"]]))
  }

  func testContentType() throws {
    for good in ["application/proto", "application/connect+json", "application/json; charset=utf-8"] {
      XCTAssertNoThrow(try HeaderRules.check(contentType: good))
    }
    for bad in ["", "a\r\nb: c", " application/proto", "a\0"] {
      XCTAssertThrowsError(try HeaderRules.check(contentType: bad)) { error in
        XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
      }
    }
  }

  func testTarget() {
    XCTAssertNoThrow(try HeaderRules.check(path: "/a.B/C%20d;~(x)", query: nil))
    XCTAssertNoThrow(try HeaderRules.check(path: "/", query: "a=b&c=%7B%7D/?"))
    XCTAssertNoThrow(try HeaderRules.check(path: "/", query: ""))
    for path in ["", "a", "*", "/a b", "/a\r\nHost: x", "/\0", "/ü", "/a#b", "/\u{7f}"] {
      XCTAssertThrowsError(try HeaderRules.check(path: path, query: nil), path) { error in
        XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
      }
    }
    for query in ["a b", "\n", "ü", "#"] {
      XCTAssertThrowsError(try HeaderRules.check(path: "/", query: query), query)
    }
  }

  func testWholeRequests() {
    let url = RequestURL(origin: Origin(scheme: .http, host: "h", port: 80), path: "/a/b")
    let good = HTTPRequest(url: url, contentType: "application/proto", headers: ["a": ["b"]], message: 1)
    XCTAssertNoThrow(try HeaderRules.check(good.head, for: ConnectProtocol()))
    let breaks: [(inout HTTPRequest<Int>) -> Void] = [
      { $0.url.path = "x" }, { $0.url.query = " " }, { $0.contentType = "" }, { $0.headers["te"] = ["x"] },
      { $0.trailers["te"] = ["x"] },
    ]
    for change in breaks {
      var bad = good
      change(&bad)
      XCTAssertThrowsError(try HeaderRules.check(bad.head, for: ConnectProtocol()))
    }
  }
}

extension String {
  fileprivate func replacing(at offset: Int, with character: Character) -> String {
    var characters = Array(self)
    characters[offset] = character
    return String(characters)
  }
}
