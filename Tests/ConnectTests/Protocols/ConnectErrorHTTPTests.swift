import NIOCore
import XCTest

@testable import Connect

/// What errors say of responses that are none of the protocol's.
final class ConnectErrorHTTPTests: XCTestCase {
  private let url = RequestURL(
    origin: Origin(scheme: .http, host: "api.example", port: 8080),
    path: "/v1/a.B/C",
    query: "message=secret"
  )

  private func message(
    _ status: Int,
    _ headers: Headers,
    body: String = "",
    over networkProtocol: NetworkProtocol = .connect,
    method: HTTPStreamRequest.Method = .post
  ) -> String? {
    let head = HTTPResponseHead(status: status, headers: headers)
    return ResponseRules.statusError(head, body: ByteBuffer(string: body))
      .naming(self.url, method: method, answeredWith: head, over: networkProtocol.wire).message
  }

  func testStatus() {
    XCTAssertEqual(
      self.message(503, ["content-type": ["text/plain; charset=utf-8"]], body: "upstream connect error\n"),
      """
      HTTP status 503 Service Unavailable (POST http://api.example:8080/v1/a.B/C, \
      content-type 'text/plain; charset=utf-8', it says: 'upstream connect error')
      """
    )
    XCTAssertEqual(
      self.message(599, [:], method: .get),
      "HTTP status 599 (GET http://api.example:8080/v1/a.B/C, no content-type)"
    )
  }

  func testQueriesAreNotShown() {
    let message = self.message(302, ["location": ["https://login.example/?state=secret"]]) ?? ""
    XCTAssertTrue(message.contains("location 'https://login.example/'"), message)
    XCTAssertFalse(message.contains("secret"), message)
  }

  func testAdvice() {
    let table: [(Int, Headers, String, NetworkProtocol, String?)] = [
      (301, [:], "", .grpc, "redirects are not followed"),
      (400, [:], "", .connect, nil),
      (
        400, ["content-type": ["text/plain"]], "Client sent an HTTP request to an HTTPS server.", .connect,
        "https://"
      ),
      (400, ["content-type": ["text/plain"]], "no such tenant", .connect, nil),
      (404, [:], "", .grpcWeb, "base path"),
      (405, [:], "", .connect, "base path"),
      (415, ["accept-post": ["application/json"]], "", .connect, "check networkProtocol and codec"),
      (415, ["content-type": ["application/grpc"]], "", .connect, "set networkProtocol to .grpc "),
      (415, ["content-type": ["application/grpc+proto"]], "", .grpcWeb, "set networkProtocol to .grpc "),
      (415, ["content-type": ["application/grpc-web+proto"]], "", .grpc, "set networkProtocol to .grpcWeb "),
      (
        500, ["content-type": ["application/grpc-web-text"]], "", .grpcWeb,
        "set networkProtocol to .grpcWebText "
      ),
      (500, ["content-type": ["application/connect+json"]], "", .grpc, "set networkProtocol to .connect "),
      (505, [:], "", .connect, "another version of HTTP"),
      (500, [:], "", .connect, nil),
    ]
    for (status, headers, body, networkProtocol, words) in table {
      let message = self.message(status, headers, body: body, over: networkProtocol) ?? ""
      let what = "\(status) \(networkProtocol): \(message)"
      XCTAssertEqual(message.contains(";"), words != nil, what)
      if let words { XCTAssertTrue(message.contains(words), what) }
    }
  }

  func testWhatAServerSaysStaysAsItIs() {
    let error = ConnectError(code: .notFound, message: "no such user", httpStatus: 404)
    let head = HTTPResponseHead(status: 404, headers: ["content-type": ["application/json"]])
    let named = error.naming(self.url, method: .post, answeredWith: head, over: NetworkProtocol.connect.wire)
    XCTAssertEqual(named.message, error.message)
  }

  func testNamedOnce() {
    let head = HTTPResponseHead(status: 404, headers: [:])
    let named = ResponseRules.statusError(head)
      .naming(self.url, method: .post, answeredWith: head, over: NetworkProtocol.connect.wire)
    let again = named.naming(self.url, method: .post, answeredWith: head, over: NetworkProtocol.connect.wire)
    XCTAssertEqual(again.message, named.message)
  }

  func testExcerpts() {
    func excerpt(_ body: String, _ headers: Headers = ["content-type": ["text/html"]]) -> String {
      ResponseText.excerpt(of: ByteBuffer(string: body), HTTPResponseHead(status: 400, headers: headers))
    }
    XCTAssertEqual(
      excerpt("\n<html><head><style>h1 { color: red }</style></head><body><h1>Bad\u{0} gate</h1>\r\nway"),
      "Bad gate way"
    )
    XCTAssertEqual(excerpt("1 < 2"), "1 < 2")
    XCTAssertEqual(excerpt("<script"), "")
    XCTAssertEqual(excerpt(String(repeating: "a", count: 2000)), String(repeating: "a", count: 120) + "…")
    XCTAssertEqual(excerpt("text", ["content-type": ["image/png"]]), "")
    XCTAssertEqual(excerpt("text", [:]), "")
    XCTAssertEqual(excerpt("text", ["content-type": ["text/plain"], "content-encoding": ["gzip"]]), "")
    XCTAssertEqual(excerpt(#"{"a":1}"#, ["content-type": ["application/json"]]), #"{"a":1}"#)
  }
}
