import NIOCore
import TestSupport
import XCTest

@testable import Connect

final class GRPCWebResponseDecoderTests: XCTestCase {
  private static let headers: Headers = ["content-type": ["application/grpc-web+proto"], "x-a": ["1"]]
  private static let textHeaders: Headers = ["content-type": ["application/grpc-web-text+proto"]]

  private func decoder(isText: Bool = false) -> GRPCWebResponseDecoder {
    GRPCWebResponseDecoder(
      isText: isText,
      contentType: isText ? "application/grpc-web-text+proto" : "application/grpc-web+proto",
      maximumMessageSize: 1000,
      acceptedEncodings: AcceptedEncodings([GzipCompressionPool()])
    )
  }

  private func envelope(_ flags: UInt8, _ message: some Sequence<UInt8>) -> [UInt8] {
    Array(Envelope.encode(ByteBuffer(bytes: message), flags: flags).readableBytesView)
  }

  private func trailers(_ text: String) -> [UInt8] { self.envelope(0x80, text.utf8) }

  private func base64(_ bytes: [UInt8], isPadded: Bool = true) -> [UInt8] {
    Array(
      Base64.encode(ByteBuffer(bytes: bytes), alphabet: .standard, isPadded: isPadded).readableBytesView
    )
  }

  private func run(
    _ body: [UInt8],
    status: Int = 200,
    headers: Headers = GRPCWebResponseDecoderTests.headers,
    ending: ResponseScript.Ending = .end,
    isText: Bool = false,
    line: UInt = #line
  ) -> ResponseResults {
    self.checkedRun(
      ResponseScript(
        status: status,
        headers: headers,
        body: body,
        ending: ending,
        trailers: ["grpc-status": ["3"]]
      ),
      self.decoder(isText: isText),
      line: line
    )
  }

  private func messages(_ results: ResponseResults) -> [[UInt8]] {
    results.messages.map { Array($0.readableBytesView) }
  }

  // MARK: Binary

  func testMessagesAndTrailers() {
    let results = self.run(
      self.envelope(0, [1, 2]) + self.envelope(0, [])
        + self.trailers("grpc-status: 0\r\nX-B:2\r\nx-b: 3, 4:5 \r\nY-Bin:AAEC\r\nempty:\r\n")
    )
    XCTAssertEqual(results.headers, [Self.headers])
    XCTAssertEqual(self.messages(results), [[1, 2], []])
    XCTAssertEqual(results.code, .ok)
    XCTAssertEqual(results.trailers, ["x-b": ["2", "3, 4:5"], "y-bin": ["AAEC"], "empty": [""]])
  }

  func testAnError() {
    let results = self.run(
      self.envelope(0, [1]) + self.trailers("GRPC-STATUS:9\r\nGrpc-Message: a%20b\r\nx-b: 2")
    )
    XCTAssertEqual(self.messages(results), [[1]])
    XCTAssertEqual(results.code, .failedPrecondition)
    XCTAssertEqual(results.error?.message, "a b")
    XCTAssertEqual(results.trailers, ["x-b": ["2"]])
    XCTAssertEqual(results.error?.metadata["x-b"], ["2"])
  }

  func testCompressedTrailers() throws {
    var headers = Self.headers
    headers.add(name: "grpc-encoding", value: "gzip")
    let block = try GzipCompressionPool().compress(ByteBuffer(string: "grpc-status: 0\r\nx-b: 2\r\n"))
    let results = self.run(self.envelope(0x81, block.readableBytesView), headers: headers)
    XCTAssertEqual(results.code, .ok)
    XCTAssertEqual(results.trailers, ["x-b": ["2"]])
    XCTAssertEqual(self.run(self.envelope(0x81, block.readableBytesView)).code, .internalError)
    let bomb = try GzipCompressionPool().compress(ByteBuffer(repeating: 0x20, count: 1 << 20))
    XCTAssertEqual(
      self.run(self.envelope(0x81, bomb.readableBytesView), headers: headers).code,
      .resourceExhausted
    )
  }

  func testTrailersOnly() {
    var headers = Self.headers
    headers.add(name: "grpc-status", value: "5")
    headers.add(name: "grpc-message", value: "gone")
    let results = self.run([], headers: headers)
    XCTAssertEqual(results.code, .notFound)
    XCTAssertEqual(results.trailers, ["x-a": ["1"]])
    // With a body the headers say nothing.
    XCTAssertEqual(self.run(self.envelope(0, [1]), headers: headers).code, .internalError)
    XCTAssertEqual(self.run(self.trailers("grpc-status: 0"), headers: headers).code, .ok)
  }

  /// Servers send a frame of trailers without any behind a status in the headers.
  func testAStatusInHeadersBeforeAnEmptyTrailerFrame() {
    for isText in [false, true] {
      func body(_ bytes: [UInt8]) -> [UInt8] { isText ? self.base64(bytes) : bytes }
      var headers = isText ? Self.textHeaders : Self.headers
      headers.add(name: "x-c", value: "3")
      headers.add(name: "grpc-status", value: "5")
      headers.add(name: "grpc-message", value: "gone")
      let results = self.run(body(self.trailers("")), headers: headers, isText: isText)
      XCTAssertEqual(results.code, .notFound)
      XCTAssertEqual(results.error?.message, "gone")
      XCTAssertEqual(results.trailers?["x-c"], ["3"])
      headers["grpc-status"] = ["0"]
      XCTAssertEqual(self.run(body(self.trailers("")), headers: headers, isText: isText).code, .ok)
      // Behind a message, or with other trailers, the headers say nothing.
      let message = self.envelope(0, [1]) + self.trailers("")
      XCTAssertEqual(self.run(body(message), headers: headers, isText: isText).code, .internalError)
      XCTAssertEqual(
        self.run(body(self.envelope(0, [])), headers: headers, isText: isText).code,
        .internalError
      )
      XCTAssertEqual(self.run(body(self.trailers("x-b: 2")), headers: headers, isText: isText).code, .unknown)
    }
  }

  func testNoTrailers() {
    // Those of HTTP mean nothing.
    let results = self.run(self.envelope(0, [1]))
    XCTAssertEqual(self.messages(results), [[1]])
    XCTAssertEqual(results.code, .internalError)
    XCTAssertEqual(self.run([]).code, .internalError)
    XCTAssertEqual(self.run(self.trailers("x-b: 2")).code, .unknown)
    XCTAssertEqual(self.run(self.trailers("")).code, .internalError)
  }

  func testBrokenBodies() {
    for rest in [[0], self.envelope(0, [1]), self.trailers("grpc-status: 0")] as [[UInt8]] {
      let results = self.run(self.trailers("grpc-status: 0\r\n") + rest)
      XCTAssertEqual(results.code, .internalError)
      XCTAssertEqual(self.messages(results), [])
    }
    XCTAssertEqual(self.run([0, 0, 0]).error?.message, "response ended in the middle of a message")
    for flags in [2, 0x82, 0xff] as [UInt8] {
      XCTAssertEqual(self.run(self.envelope(flags, [])).code, .internalError)
    }
    for line in ["nothing", ": value", "a\r\n:b"] {
      XCTAssertEqual(self.run(self.trailers(line)).code, .internalError, line)
    }
    XCTAssertEqual(self.run([0x80, 0, 2, 0, 0]).code, .resourceExhausted)
    let many = String(repeating: "a:b\r\n", count: 2000)
    XCTAssertEqual(self.run(self.trailers(many)).code, .resourceExhausted)
  }

  func testAFailure() {
    let reset = ConnectError(code: .unavailable, message: "reset")
    XCTAssertEqual(self.run(self.envelope(0, [1]), ending: .failure(reset)).code, .unavailable)
    XCTAssertEqual(self.run(self.trailers("grpc-status: 0"), ending: .failure(reset)).code, .ok)
    XCTAssertEqual(self.run(self.trailers("grpc-status: 10"), ending: .failure(reset)).code, .aborted)
  }

  func testContentTypes() {
    for (type, code) in [
      ("application/grpc-web", Code.ok), ("application/grpc-web+proto;x", .ok),
      ("application/grpc-web+json", .internalError), ("application/grpc", .unknown),
      ("application/grpc+proto", .unknown), ("application/grpc-web-text", .unknown), ("text/html", .unknown),
    ] {
      let results = self.run(self.trailers("grpc-status:0"), headers: ["content-type": [type]])
      XCTAssertEqual(results.code, code, type)
    }
  }

  func testHTTPStatus() {
    for isText in [true, false] {
      let results = self.run(
        Array("<html>".utf8),
        status: 502,
        headers: ["content-type": ["text/html"]],
        isText: isText
      )
      XCTAssertEqual(results.code, .unavailable)
    }
  }

  // MARK: Text

  func testText() {
    let message = self.envelope(0, [1, 2])
    let end = self.trailers("grpc-status:0\r\nx-b:2\r\n")
    let bodies = [
      self.base64(message + end),
      // Each part on its own, with padding in mid-stream.
      self.base64(message) + self.base64(end),
      self.base64(Array(message.prefix(1))) + self.base64(Array(message.dropFirst()) + end),
      self.base64(message + end, isPadded: false),
    ]
    for body in bodies {
      let results = self.run(body, headers: Self.textHeaders, isText: true)
      XCTAssertEqual(self.messages(results), [[1, 2]])
      XCTAssertEqual(results.code, .ok)
      XCTAssertEqual(results.trailers, ["x-b": ["2"]])
    }
  }

  func testTextThatIsNoBase64() {
    for bad in ["!", "AA=A", "====", "A", "AA\n", "AAAAA"] {
      let body = self.base64(self.envelope(0, [1])) + Array(bad.utf8)
      let results = self.run(body, headers: Self.textHeaders, isText: true)
      XCTAssertEqual(results.code, .internalError, bad)
    }
  }

  func testBase64Streams() {
    var random = SeededGenerator()
    for _ in 0..<500 {
      var expected: [UInt8] = []
      var text: [UInt8] = []
      for _ in 0..<Int.random(in: 1...5, using: &random) {
        let part = (0..<Int.random(in: 0..<30, using: &random)).map { _ in
          UInt8.random(in: 0...255, using: &random)
        }
        expected += part
        text += self.base64(part)
      }
      var decoder = Base64StreamDecoder()
      var result = ByteBuffer()
      var rest = text[...]
      while !rest.isEmpty {
        let count = Int.random(in: 1...7, using: &random)
        result.writeImmutableBuffer(decoder.decode(ByteBuffer(bytes: rest.prefix(count))))
        rest = rest.dropFirst(count)
      }
      result.writeImmutableBuffer(decoder.finish())
      XCTAssertTrue(decoder.isValid)
      XCTAssertEqual(Array(result.readableBytesView), expected)
    }
  }

  // MARK: Requests

  func testRequests() {
    let binary = GRPCWebProtocol(isText: false)
    let text = GRPCWebProtocol(isText: true)
    XCTAssertEqual(binary.contentType(codecName: "json", isUnary: true), "application/grpc-web+json")
    XCTAssertEqual(text.contentType(codecName: "proto", isUnary: false), "application/grpc-web-text+proto")
    let message = ByteBuffer(bytes: [1, 2])
    XCTAssertEqual(
      binary.frame(message, isCompressed: true, streamType: .unary),
      ByteBuffer(bytes: [1, 0, 0, 0, 2, 1, 2])
    )
    XCTAssertEqual(
      text.frame(message, isCompressed: false, streamType: .unary),
      ByteBuffer(string: "AAAAAAIBAg==")
    )
    let request = WireRequest(
      contentType: "application/grpc-web-text+proto",
      streamType: .unary,
      timeout: .seconds(5)
    )
    XCTAssertEqual(
      text.requestHeaders([:], for: request),
      [
        "accept": ["application/grpc-web-text+proto"], "x-grpc-web": ["1"],
        "content-type": ["application/grpc-web-text+proto"], "grpc-timeout": ["5000000u"],
        "user-agent": ["grpc-swift-connect-linux/0.1.0"], "x-user-agent": ["grpc-swift-connect-linux/0.1.0"],
      ]
    )
    XCTAssertFalse(binary.requestHeaders([:], for: request).contains("accept"))
    XCTAssertFalse(binary.requestHeaders([:], for: request).contains("te"))
  }
}
