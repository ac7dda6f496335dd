import NIOCore
import TestSupport
import XCTest

@testable import Connect

final class GRPCResponseDecoderTests: XCTestCase {
  private static let headers: Headers = ["content-type": ["application/grpc+proto"], "x-a": ["1"]]

  private func decoder(_ contentType: String = "application/grpc+proto", limit: Int = 1000)
    -> GRPCResponseDecoder
  {
    GRPCResponseDecoder(
      baseContentType: GRPCProtocol.contentType,
      contentType: contentType,
      maximumMessageSize: limit,
      acceptedEncodings: AcceptedEncodings([GzipCompressionPool()])
    )
  }

  private func envelope(_ flags: UInt8, _ message: some Sequence<UInt8>) -> [UInt8] {
    Array(Envelope.encode(ByteBuffer(bytes: message), flags: flags).readableBytesView)
  }

  private func gzip(_ message: [UInt8]) -> [UInt8] {
    ((try? GzipCompressionPool().compress(ByteBuffer(bytes: message))).map { Array($0.readableBytesView) })
      ?? []
  }

  private func run(
    _ body: [UInt8],
    _ trailers: Headers,
    status: Int = 200,
    headers: Headers = GRPCResponseDecoderTests.headers,
    ending: ResponseScript.Ending = .end,
    limit: Int = 1000,
    line: UInt = #line
  ) -> ResponseResults {
    self.checkedRun(
      ResponseScript(status: status, headers: headers, body: body, ending: ending, trailers: trailers),
      self.decoder(limit: limit),
      line: line
    )
  }

  private func messages(_ results: ResponseResults) -> [[UInt8]] {
    results.messages.map { Array($0.readableBytesView) }
  }

  // MARK: Success

  func testMessagesAndTrailers() {
    let results = self.run(
      self.envelope(0, [1, 2]) + self.envelope(0, []) + self.envelope(0, [3]),
      ["grpc-status": ["0"], "x-b": ["2", "3, 4"], "y-bin": ["AAEC"]]
    )
    XCTAssertEqual(results.headers, [Self.headers])
    XCTAssertEqual(self.messages(results), [[1, 2], [], [3]])
    XCTAssertEqual(results.code, .ok)
    XCTAssertEqual(results.trailers, ["x-b": ["2", "3, 4"], "y-bin": ["AAEC"]])
  }

  func testCompressedMessages() {
    var headers = Self.headers
    headers.add(name: "grpc-encoding", value: "gzip")
    let results = self.run(
      self.envelope(1, self.gzip([1, 2])) + self.envelope(0, [3]) + self.envelope(1, []),
      ["grpc-status": ["0"]],
      headers: headers
    )
    XCTAssertEqual(self.messages(results), [[1, 2], [3], []])
    XCTAssertEqual(results.code, .ok)

    let tooLarge = self.run(
      self.envelope(1, self.gzip(Array(repeating: 0, count: 1001))),
      ["grpc-status": ["0"]],
      headers: headers
    )
    XCTAssertEqual(tooLarge.code, .resourceExhausted)
    XCTAssertTrue(tooLarge.error?.message?.contains("1000") == true)
    let broken = self.run(self.envelope(1, [1, 2, 3]), ["grpc-status": ["0"]], headers: headers)
    XCTAssertEqual(broken.code, .internalError)
  }

  func testMessagesAtTheLimitThatDoNotCompress() {
    var random = SeededGenerator()
    var headers = Self.headers
    headers.add(name: "grpc-encoding", value: "gzip")
    let message = (0..<1000).map { _ in UInt8.random(in: 0...255, using: &random) }
    XCTAssertGreaterThan(self.gzip(message).count, 1000)
    let results = self.run(self.envelope(1, self.gzip(message)), ["grpc-status": ["0"]], headers: headers)
    XCTAssertEqual(self.messages(results), [message])
  }

  func testMessagesComeAsTheyArrive() {
    var decoder = self.decoder()
    decoder.receive(HTTPResponseHead(status: 200, headers: Self.headers))
    guard case .headers = decoder.next() else { return XCTFail("no headers") }
    decoder.receive(ByteBuffer(bytes: self.envelope(0, [7]) + [0, 0]))
    XCTAssertEqual(decoder.bufferedByteCount, 8)
    XCTAssertEqual(decoder.next()?.message, ByteBuffer(bytes: [7]))
    XCTAssertEqual(decoder.bufferedByteCount, 2)
    XCTAssertNil(decoder.next())
  }

  // MARK: Errors from the server

  func testAnError() {
    let results = self.run(
      self.envelope(0, [1]),
      ["grpc-status": ["9"], "grpc-message": ["no%20way"], "x-b": ["2"]]
    )
    XCTAssertEqual(self.messages(results), [[1]])
    XCTAssertEqual(results.code, .failedPrecondition)
    XCTAssertEqual(results.error?.message, "no way")
    XCTAssertEqual(results.trailers, ["x-b": ["2"]])
    XCTAssertEqual(
      results.error?.metadata,
      ["content-type": ["application/grpc+proto"], "x-a": ["1"], "x-b": ["2"]]
    )
    XCTAssertEqual(results.error?.httpStatus, 200)
  }

  func testTrailersOnly() {
    var headers = Self.headers
    headers.add(name: "grpc-status", value: "5")
    headers.add(name: "grpc-message", value: "gone")
    let results = self.run([], [:], headers: headers)
    XCTAssertEqual(results.code, .notFound)
    XCTAssertEqual(results.error?.message, "gone")
    XCTAssertEqual(results.trailers, ["x-a": ["1"]])
    XCTAssertEqual(results.error?.metadata, Self.headers)

    headers["grpc-status"] = ["0"]
    let success = self.run([], [:], headers: headers)
    XCTAssertEqual(success.code, .ok)
    XCTAssertEqual(success.trailers, ["x-a": ["1"]])
  }

  /// The end of the stream may come on its own, or with trailers that are empty.
  func testAStatusInHeadersThatAreNotTheEnd() {
    for status in ["5", "0"] {
      var decoder = self.decoder()
      var headers = Self.headers
      headers.add(name: "grpc-status", value: status)
      decoder.receive(HTTPResponseHead(status: 200, headers: headers))
      guard case .headers = decoder.next() else { return XCTFail("no headers") }
      XCTAssertNil(decoder.next())
      decoder.receive(ByteBuffer())
      decoder.receiveEnd(trailers: [:])
      guard case .complete(let code, _, let trailers) = decoder.next() else { return XCTFail("no end") }
      XCTAssertEqual(code, status == "5" ? .notFound : .ok)
      XCTAssertEqual(trailers, ["x-a": ["1"]])
    }
  }

  func testAStatusInHeadersCountsForTrailersOnlyAlone() {
    var headers = Self.headers
    headers.add(name: "grpc-status", value: "5")
    // With a body it is ignored, so that there is none.
    XCTAssertEqual(self.run(self.envelope(0, [1]), [:], headers: headers).code, .internalError)
    // A real trailer wins.
    XCTAssertEqual(self.run(self.envelope(0, [1]), ["grpc-status": ["0"]], headers: headers).code, .ok)
    XCTAssertEqual(self.run([], ["grpc-status": ["7"]], headers: headers).code, .permissionDenied)
    XCTAssertEqual(self.run([], ["x-b": ["2"]], headers: headers).code, .unknown)
  }

  func testNoStatus() {
    let none = self.run(self.envelope(0, [1]), [:])
    XCTAssertEqual(self.messages(none), [[1]])
    XCTAssertEqual(none.code, .internalError)
    XCTAssertEqual(none.error?.message, "response ended without a grpc-status")
    XCTAssertEqual(self.run([], [:]).code, .internalError)
    let other = self.run(self.envelope(0, [1]), ["x-b": ["2"]])
    XCTAssertEqual(other.code, .unknown)
    XCTAssertEqual(other.trailers, ["x-b": ["2"]])
  }

  // MARK: Broken responses

  func testFlags() {
    for flags in [2, 4, 0x80, 0x81, 0xff] as [UInt8] {
      let results = self.run(self.envelope(0, [1]) + self.envelope(flags, []), ["grpc-status": ["0"]])
      XCTAssertEqual(self.messages(results), [[1]])
      XCTAssertEqual(results.code, .internalError)
      XCTAssertTrue(results.error?.message?.contains("flags \(flags)") == true)
    }
  }

  func testCompressedWithoutAnEncoding() {
    for headers in [
      Self.headers, ["content-type": ["application/grpc"], "grpc-encoding": ["identity"]],
    ] as [Headers] {
      for message in [[], [1]] as [[UInt8]] {
        let results = self.run(self.envelope(1, message), ["grpc-status": ["0"]], headers: headers)
        XCTAssertEqual(results.code, .internalError)
        XCTAssertEqual(
          results.error?.message,
          "received compressed message, but the response has no grpc-encoding"
        )
      }
    }
  }

  func testAnUnknownEncoding() {
    let headers: Headers = ["content-type": ["application/grpc"], "grpc-encoding": ["foo"]]
    let results = self.run(self.envelope(0, [1]), ["grpc-status": ["0"]], headers: headers)
    XCTAssertEqual(results.code, .internalError)
    XCTAssertEqual(results.messages, [])
    XCTAssertEqual(
      results.error?.message,
      "response has unknown grpc-encoding 'foo', which the request did not offer (see ProtocolClientConfig.compression)"
    )
  }

  func testContentTypes() {
    func code(_ received: String?, requested: String = "application/grpc+proto") -> Code? {
      let headers: Headers = received.map { ["content-type": [$0]] } ?? [:]
      let script = ResponseScript(headers: headers, trailers: ["grpc-status": ["0"]])
      return script.run(self.decoder(requested)).code
    }
    for good in [
      "application/grpc", "application/grpc+proto", "Application/GRPC; a=b", "application/grpc+proto;x",
    ] {
      XCTAssertEqual(code(good), .ok, good)
      XCTAssertEqual(code(good, requested: "application/grpc"), .ok, good)
    }
    XCTAssertEqual(code("application/grpc+json", requested: "application/grpc+json"), .ok)
    for other in ["application/grpc+json", "application/grpc+thrift"] {
      XCTAssertEqual(code(other), .internalError, other)
    }
    XCTAssertEqual(code("application/grpc", requested: "application/grpc+json"), .internalError)
    for foreign in [
      "text/html", "application/json", "application/grpc-web", "application/grpc-web+proto", "",
    ] {
      XCTAssertEqual(code(foreign), .unknown, foreign)
    }
    XCTAssertEqual(code(nil), .unknown)
  }

  func testATruncatedMessage() {
    for rest in [[0], [0, 0, 0, 0, 10], [0, 0, 0, 0, 10, 1, 2]] as [[UInt8]] {
      for trailers in [["grpc-status": ["0"]], [:]] as [Headers] {
        let results = self.run(self.envelope(0, [1]) + rest, trailers)
        XCTAssertEqual(self.messages(results), [[1]])
        XCTAssertEqual(results.code, .internalError)
        XCTAssertEqual(results.error?.message, "response ended in the middle of a message")
      }
      // What the server says is worth more.
      XCTAssertEqual(self.run(rest, ["grpc-status": ["10"]]).code, .aborted)
    }
  }

  func testTheSizeLimit() {
    let results = self.run(
      self.envelope(0, [1]) + self.envelope(0, Array(repeating: 1, count: 11)),
      ["grpc-status": ["0"]],
      limit: 10
    )
    XCTAssertEqual(self.messages(results), [[1]])
    XCTAssertEqual(results.code, .resourceExhausted)
    XCTAssertEqual(
      results.error?.message,
      "received message of 11 bytes, which is over the limit of 10 bytes (maximumReceivedMessageSize)"
    )
  }

  func testAFailure() {
    let reset = ConnectError(code: .unavailable, message: "reset")
    let results = self.run(self.envelope(0, [1]) + [0, 0], [:], ending: .failure(reset))
    XCTAssertEqual(self.messages(results), [[1]])
    XCTAssertEqual(results.code, .unavailable)
    XCTAssertEqual(results.error?.metadata, Self.headers)
    let early = ResponseScript(status: nil, ending: .failure(reset))
    XCTAssertEqual(self.checkedRun(early, self.decoder()).code, .unavailable)
    XCTAssertEqual(self.checkedRun(ResponseScript(status: nil), self.decoder()).code, .internalError)
  }

  // MARK: Other statuses

  func testHTTPStatus() {
    let table: [(Int, Code)] = [
      (400, .internalError), (401, .unauthenticated), (403, .permissionDenied), (404, .unimplemented),
      (429, .unavailable), (502, .unavailable), (503, .unavailable), (504, .unavailable), (408, .unknown),
      (409, .unknown), (413, .unknown), (415, .unknown), (500, .unknown), (505, .unknown), (800, .unknown),
      (204, .unknown), (302, .unknown),
    ]
    for (status, code) in table {
      let headers: Headers = ["content-type": ["text/html"]]
      let results = self.run(Array("<html>".utf8), [:], status: status, headers: headers)
      XCTAssertEqual(results.code, code, "\(status)")
      XCTAssertEqual(results.error?.message, HTTPStatus.describe(status))
      XCTAssertEqual(results.error?.httpStatus, status)
    }
  }

  func testAStatusOfTheServerWinsOverHTTP() {
    var headers = Self.headers
    headers.add(name: "grpc-status", value: "5")
    XCTAssertEqual(self.run([], [:], status: 503, headers: headers).code, .notFound)
    XCTAssertEqual(self.run([], ["grpc-status": ["10"]], status: 503).code, .aborted)
    XCTAssertEqual(self.run([1], [:], status: 503, headers: headers).code, .unavailable)
    headers["grpc-status"] = ["0"]
    XCTAssertEqual(self.run([], [:], status: 503, headers: headers).code, .unavailable)
    let reset = ConnectError(code: .internalError, message: "reset")
    XCTAssertEqual(self.run([], [:], status: 503, ending: .failure(reset)).code, .unavailable)
  }
}
