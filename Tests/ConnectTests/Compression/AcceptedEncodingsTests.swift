import NIOCore
import XCTest

@testable import Connect

/// The encodings that a response may name.
final class AcceptedEncodingsTests: XCTestCase {
  private struct NamedPool: CompressionPool {
    let name: String
    func compress(_ message: ByteBuffer) throws -> ByteBuffer { message }
    func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer { message }
  }

  private func name(_ value: String, _ pools: [any CompressionPool]) throws -> String? {
    try AcceptedEncodings(pools).encoding(of: ["content-encoding": [value]], header: "content-encoding").pool?
      .name
  }

  /// RFC 9110, section 8.4.1.3.
  func testXGzipEqualsGzip() throws {
    let pools: [any CompressionPool] = [DeflateCompressionPool(), GzipCompressionPool()]
    for value in ["gzip", "x-gzip", "X-GZIP", "GZip"] {
      XCTAssertEqual(try self.name(value, pools), "gzip", value)
    }
    XCTAssertEqual(try self.name("x-gzip", [NamedPool(name: "x-gzip")]), "x-gzip")
    XCTAssertThrowsError(try self.name("x-gzip", [DeflateCompressionPool()]))
    XCTAssertThrowsError(try self.name("x-deflate", pools))
    XCTAssertNil(try self.name("identity", pools))
  }

  func testAnAnswerInXGzip() throws {
    var decoder = ConnectUnaryDecoder(
      contentType: "application/proto",
      maximumMessageSize: 100,
      acceptedEncodings: AcceptedEncodings([GzipCompressionPool()])
    )
    decoder.receive(
      HTTPResponseHead(
        status: 200,
        headers: ["content-type": ["application/proto"], "content-encoding": ["x-gzip"]]
      )
    )
    decoder.receive(try GzipCompressionPool().compress(ByteBuffer(string: "hello")))
    decoder.receiveEnd(trailers: [:])
    guard case .success(.bytes(let message))? = decoder.takeWhole()?.result else {
      return XCTFail("no message")
    }
    XCTAssertEqual(String(buffer: message), "hello")
  }
}
