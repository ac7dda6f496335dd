import NIOCore
import XCTest

@testable import Connect

final class ConnectCompressionTests: XCTestCase {
  private let accepted = AcceptedEncodings([GzipCompressionPool(), DeflateCompressionPool()])

  private func gzip(_ text: String) throws -> [UInt8] {
    Array(try GzipCompressionPool().compress(ByteBuffer(string: text)).readableBytesView)
  }

  private func envelope(_ flags: UInt8, _ message: some Sequence<UInt8>) -> [UInt8] {
    Array(Envelope.encode(ByteBuffer(bytes: message), flags: flags).readableBytesView)
  }

  private func unary(
    _ body: [UInt8],
    encoding: String = "gzip",
    status: Int = 200,
    type: String = "application/proto",
    limit: Int = 1000,
    line: UInt = #line
  ) -> ResponseResults {
    self.checkedRun(
      ResponseScript(
        status: status,
        headers: ["content-type": [type], "content-encoding": [encoding]],
        body: body
      ),
      ConnectUnaryDecoder(
        contentType: "application/proto",
        maximumMessageSize: limit,
        acceptedEncodings: self.accepted
      ),
      line: line
    )
  }

  private func stream(_ body: [UInt8], limit: Int = 1000, line: UInt = #line) -> ResponseResults {
    self.checkedRun(
      ResponseScript(
        headers: ["content-type": ["application/connect+proto"], "connect-content-encoding": ["GZIP"]],
        body: body
      ),
      ConnectStreamDecoder(
        contentType: "application/connect+proto",
        maximumMessageSize: limit,
        acceptedEncodings: self.accepted
      ),
      line: line
    )
  }

  func testUnary() throws {
    XCTAssertEqual(self.unary(try self.gzip("hello")).messages, [ByteBuffer(string: "hello")])
    let deflate = try DeflateCompressionPool().compress(ByteBuffer(string: "hello"))
    XCTAssertEqual(
      self.unary(Array(deflate.readableBytesView), encoding: "deflate").messages,
      [ByteBuffer(string: "hello")]
    )
    // An empty body is never decompressed.
    XCTAssertEqual(self.unary([]).messages, [ByteBuffer()])
    XCTAssertEqual(self.unary([1, 2, 3]).code, .internalError)
    XCTAssertEqual(self.unary(try self.gzip("hello") + [0]).code, .internalError)
    XCTAssertEqual(self.unary(Array(try self.gzip("hello").dropLast())).code, .internalError)
    XCTAssertEqual(self.unary([], encoding: "br").code, .internalError)
    let bomb = self.unary(try self.gzip(String(repeating: " ", count: 1001)))
    XCTAssertEqual(bomb.code, .resourceExhausted)
    XCTAssertEqual(bomb.messages, [])
  }

  func testErrors() throws {
    let json = #"{"code":"aborted","message":"oops"}"#
    let results = self.unary(try self.gzip(json), status: 409, type: "application/json", limit: 5)
    XCTAssertEqual(results.code, .aborted)
    XCTAssertEqual(results.error?.message, "oops")
    // What does not decompress, or is too large, says no more than the status.
    XCTAssertEqual(self.unary(Array(json.utf8), status: 503, type: "application/json").code, .unavailable)
    let bomb = try self.gzip(String(repeating: " ", count: ConnectErrorJSON.maximumSize + 1))
    XCTAssertEqual(self.unary(bomb, status: 503, type: "application/json").code, .unavailable)
    XCTAssertEqual(self.unary([], status: 404, type: "application/json").code, .unimplemented)
    XCTAssertEqual(self.unary([1], encoding: "br", status: 404, type: "text/html").code, .unimplemented)
  }

  func testStreams() throws {
    let end = try self.gzip(#"{"error":{"code":"aborted"},"metadata":{"a":["b"]}}"#)
    let results = self.stream(
      self.envelope(1, try self.gzip("one")) + self.envelope(0, "two".utf8)
        + self.envelope(1, try self.gzip("three")) + self.envelope(1, []) + self.envelope(3, end)
    )
    XCTAssertEqual(results.messages.map { String(buffer: $0) }, ["one", "two", "three", ""])
    XCTAssertEqual(results.code, .aborted)
    XCTAssertEqual(results.trailers, ["a": ["b"]])
    let bomb = self.stream(self.envelope(1, try self.gzip(String(repeating: " ", count: 1001))))
    XCTAssertEqual(bomb.code, .resourceExhausted)
    XCTAssertEqual(self.stream(self.envelope(1, [1, 2])).code, .internalError)
    let endBomb = try self.gzip(String(repeating: " ", count: ConnectErrorJSON.maximumSize + 1))
    XCTAssertEqual(self.stream(self.envelope(3, endBomb)).code, .resourceExhausted)
  }

  func testOnesOwnPool() {
    struct Reverse: CompressionPool {
      let name = "reverse"
      func compress(_ message: ByteBuffer) throws -> ByteBuffer {
        ByteBuffer(bytes: message.readableBytesView.reversed())
      }
      func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer {
        if message.readableBytes == 1 { throw CancellationError() }
        return ByteBuffer(bytes: message.readableBytesView.reversed())
      }
    }
    let encodings = AcceptedEncodings([Reverse(), GzipCompressionPool()])
    XCTAssertEqual(encodings.headerValue, "reverse,gzip")
    XCTAssertNil(AcceptedEncodings.none.headerValue)
    func run(_ body: String) -> ResponseResults {
      let headers: Headers = ["content-type": ["application/proto"], "content-encoding": ["reverse"]]
      let decoder = ConnectUnaryDecoder(
        contentType: "application/proto",
        maximumMessageSize: 5,
        acceptedEncodings: encodings
      )
      return self.checkedRun(ResponseScript(headers: headers, body: body.utf8), decoder)
    }
    XCTAssertEqual(run("olleh").messages, [ByteBuffer(string: "hello")])
    // Its errors are internal, with it as the cause; its sizes are checked.
    XCTAssertEqual(run("x").code, .internalError)
    XCTAssertTrue(run("x").error?.exception is CancellationError)
    XCTAssertEqual(run("olleh!").code, .resourceExhausted)
  }
}
