import NIOCore
import XCTest

@testable import ConnectNIO

/// What the framing of a chunked body may be.
final class HTTP1ChunksTests: XCTestCase {
  /// Feeds a body in pieces of `size` bytes.
  ///
  /// - Returns: How many bytes may be decoded, and the fault.
  private func read(_ body: String, by size: Int, maximumTrailers: Int = 64) -> (count: Int, fault: String?) {
    var chunks = HTTP1Chunks(maximumTrailers: maximumTrailers)
    var rest = ByteBuffer(string: body)
    var sum = 0
    while let piece = rest.readSlice(length: min(size, max(rest.readableBytes, 1))) {
      let (count, fault) = chunks.advance(over: piece)
      sum += count
      if fault != nil || count < piece.readableBytes { return (sum, fault) }
    }
    return (sum, nil)
  }

  func testBodies() {
    for body in [
      "0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "00A\r\n0123456789\r\n1\r\nx\r\n0\r\nT: v\r\nU:\tw\r\n\r\n",
      "3;x=y;z=\"a b\"\r\nabc\r\n0;end\r\n\r\n", "2 ; x\r\nab\r\n0\r\n\r\n",
      "b\r\n\r\n\r\n0\r\n\r\nab\r\n0\r\n\r\n",
    ] {
      for size in 1...body.utf8.count {
        let (count, fault) = self.read(body + "HTTP/1.1 200 OK", by: size)
        XCTAssertNil(fault, "\(body) by \(size)")
        XCTAssertEqual(count, body.utf8.count, "\(body) by \(size)")
      }
    }
  }

  func testFaults() {
    let long = String(repeating: "x", count: 5000)
    let faults: [(body: String, fault: String)] = [
      ("ffffffffffffffff\r\n", "a size of more than 4294967296 bytes"),
      ("7fffffffffffffff\r\n", "a size of more than"), ("100000001\r\n", "a size of more than"),
      (String(repeating: "f", count: 40), "a size of more than"), ("\r\n", "no size"), ("x\r\n", "no size"),
      (";a\r\n", "no size"), ("-1\r\n", "no size"), ("0x1\r\n", "no size"), ("\n", "no size"),
      ("1;\(long)", "more than 4096 bytes"), (String(repeating: "0", count: 5000), "more than 4096 bytes"),
      ("1\(String(repeating: " ", count: 5000))", "more than 4096 bytes"), ("1;a\nb", "control character"),
      ("1;a\rb", "does not end"), ("1\rx", "does not end"), ("1\r\nabc", "does not end"),
      ("1\r\na\rb", "does not end"),
      ("0\r\n\(long)", "more than 64 bytes"),
      ("0\r\na:\(String(repeating: " ", count: 90))", "more than 64 bytes"),
      ("0\r\na: \u{1}\r\n", "control character"), ("0\r\na: b\nc", "control character"),
      ("0\r\na\rb", "does not end"),
      ("0\r\n\ra", "does not end"),
    ]
    for (body, expected) in faults {
      for size in [1, 3, 10_000] {
        let (_, fault) = self.read("2\r\nok\r\n" + body, by: size)
        XCTAssertTrue(fault?.contains(expected) == true, "\(body.prefix(20)) by \(size): \(fault ?? "none")")
      }
    }
  }

  func testALargeChunk() {
    var chunks = HTTP1Chunks(maximumTrailers: 64)
    XCTAssertNil(chunks.advance(over: ByteBuffer(string: "100000000\r\n")).fault)
    XCTAssertNil(chunks.advance(over: ByteBuffer(repeating: 0, count: 1 << 20)).fault)
  }
}
