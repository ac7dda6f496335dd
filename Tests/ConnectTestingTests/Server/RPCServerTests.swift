import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// What the server answers to requests that no client of ours makes.
final class RPCServerTests: XCTestCase {
  private let echo = TestMethods.echo.path
  private let sum = TestMethods.sum.path

  private func makeHTTPClient() -> RawHTTPClient {
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { _, _ in EchoResponse() }
    transport.onUnary(TestMethods.lookup) { request, _ in .with { $0.value = request.key } }
    transport.onClientStream(TestMethods.sum) { requests, _ in
      for try await _ in requests {}
      return SumResponse()
    }
    return RawHTTPClient(transport)
  }

  // MARK: HTTP

  func testUnknownContentTypeIs415() async throws {
    let http = self.makeHTTPClient()
    for type in [
      "", "text/plain", "application/", "application/xml", "application/connect+proto",
      "application/grpc+xml",
    ] {
      let response = try await http.post(self.echo, headers: ["content-type": [type]])
      XCTAssertEqual(response.status, 415, type)
      XCTAssertEqual(response.headers["accept-post"], ["application/proto, application/json"], type)
    }
    let response = try await http.post(self.sum, headers: ["content-type": ["application/proto"]])
    XCTAssertEqual(response.status, 415)
    XCTAssertEqual(response.headers["accept-post"], ["application/connect+proto, application/connect+json"])
  }

  func testContentTypeHasAnyCaseAndParameters() async throws {
    let http = self.makeHTTPClient()
    let headers: Headers = ["content-type": ["Application/JSON; charset=utf-8"]]
    let response = try await http.post(self.echo, headers: headers, body: ByteBuffer(string: "{}"))
    XCTAssertEqual(response.status, 200)
    XCTAssertEqual(response.body, "{}")
  }

  func testGETOfAMethodWithSideEffectsIs405() async throws {
    let response = try await self.makeHTTPClient().get(self.echo + "?connect=v1&encoding=json&message=%7B%7D")
    XCTAssertEqual(response.status, 405)
    XCTAssertEqual(response.headers["allow"], ["POST"])
  }

  func testBadQueryIs400() async throws {
    let http = self.makeHTTPClient()
    for query in [
      "", "?", "?connect=v1", "?connect=v2&encoding=json&message=%7B%7D",
      "?connect=v1&encoding=xml&message=a",
      "?connect=v1&encoding=proto&base64=1&message=!", "?=&&=&connect",
    ] {
      let response = try await http.get(TestMethods.lookup.path + query)
      XCTAssertEqual(response.status, 400, query)
    }
    let good = "?message=%7B%22key%22%3A%22a+b%22%7D&encoding=json&connect=v1&message=second"
    let response = try await http.get(TestMethods.lookup.path + good)
    XCTAssertEqual(response.body, #"{"value":"a b"}"#)
  }

  // MARK: RPC

  func testUnknownVersionOfTheProtocol() async throws {
    let response = try await self.makeHTTPClient().post(
      self.echo,
      headers: ["content-type": ["application/json"], "connect-protocol-version": ["2"]]
    )
    XCTAssertEqual(response.status, 400)
    XCTAssertEqual(
      response.body,
      #"{"code":"invalid_argument","message":"connect-protocol-version must be \"1\": got \"2\""}"#
    )
  }

  func testMessageThatDoesNotDecode() async throws {
    let http = self.makeHTTPClient()
    let response = try await http.post(
      self.echo,
      headers: ["content-type": ["application/json"]],
      body: ByteBuffer(string: "{")
    )
    XCTAssertEqual(response.status, 400)
    XCTAssertTrue(response.body.contains("message does not decode"), response.body)
  }

  func testBodyThatDoesNotDecompress() async throws {
    let response = try await self.makeHTTPClient().post(
      self.echo,
      headers: ["content-type": ["application/json"], "content-encoding": ["gzip"]],
      body: ByteBuffer(string: "{}")
    )
    XCTAssertEqual(response.status, 400)
    XCTAssertTrue(response.body.contains("message does not decompress"), response.body)
  }

  func testBrokenEnvelopes() async throws {
    let http = self.makeHTTPClient()
    let cases: [(bytes: [UInt8], status: String, message: String)] = [
      ([0, 0, 0], "3", "the request ends within an envelope"),
      ([0, 0, 0, 0, 2, 8], "3", "the request ends within an envelope"),
      ([4, 0, 0, 0, 0], "3", "unexpected envelope flags 4"),
      ([], "12", "the request has no message"),
      ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "12", "the request has more than one message"),
      (
        [0, 0xff, 0, 0, 0], "8",
        "message is larger than 67108864 bytes"
      ),
    ]
    for (bytes, status, message) in cases {
      let response = try await http.post(
        self.echo,
        headers: ["content-type": ["application/grpc"]],
        body: ByteBuffer(bytes: bytes)
      )
      XCTAssertEqual(response.trailers["grpc-status"], [status], message)
      XCTAssertEqual(
        response.trailers["grpc-message"],
        [message.replacingOccurrences(of: " ", with: "%20").replacingOccurrences(of: ",", with: "%2C")]
      )
    }
  }

  func testTextThatIsNoBase64() async throws {
    let response = try await self.makeHTTPClient().post(
      self.echo,
      headers: ["content-type": ["application/grpc-web-text+proto"]],
      body: ByteBuffer(string: "????")
    )
    XCTAssertEqual(response.status, 200)
    let block = try XCTUnwrap(Data(base64Encoded: response.body))
    XCTAssertTrue(String(decoding: block, as: UTF8.self).contains("grpc-status: 3"))
  }

  func testTimeoutsThatAreNoneAreIgnored() async throws {
    let http = self.makeHTTPClient()
    for timeout in ["", "-", "x", "99999999999999999999"] {
      let connect: Headers = ["content-type": ["application/json"], "connect-timeout-ms": [timeout]]
      let first = try await http.post(self.echo, headers: connect, body: ByteBuffer(string: "{}"))
      XCTAssertEqual(first.status, 200, timeout)
      let grpc: Headers = ["content-type": ["application/grpc"], "grpc-timeout": [timeout + "S"]]
      let second = try await http.post(self.echo, headers: grpc, body: ByteBuffer(repeating: 0, count: 5))
      XCTAssertEqual(second.trailers["grpc-status"], ["0"], timeout)
    }
  }
}
