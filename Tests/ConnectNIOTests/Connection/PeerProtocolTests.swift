import NIOCore
import XCTest

@testable import ConnectNIO

final class PeerProtocolTests: XCTestCase {
  func testFirstBytes() {
    let table: [([UInt8], PeerProtocol?)] = [
      (Array("HTTP/1.1 200 OK\r\n".utf8), .http1),
      (Array("HTTP/".utf8), .http1),
      (Array("HTTP".utf8), nil),
      ([0, 0, 0, 4, 0, 0, 0, 0, 0], .http2),
      ([0, 0, 24, 4, 0, 0, 0, 0, 0, 0, 4], .http2),
      ([0, 0, 25, 4, 0, 0, 0, 0, 0], nil),
      ([0, 0, 24, 4, 0, 0, 0, 0], nil),
      ([0, 0, 24, 4, 0, 0, 0, 0, 1], nil),
      ([0, 0, 24, 3, 0, 0, 0, 0, 0], nil),
      ([0x15, 3, 3, 0, 2, 2, 70], .tls),
      ([0x16, 3, 1], .tls),
      ([0x16, 3], nil),
      ([0x15, 2, 3], nil),
      ([0x20, 3, 3], nil),
      (Array("<html>".utf8), nil),
      ([], nil),
    ]
    for (bytes, expected) in table {
      XCTAssertEqual(PeerProtocol(ByteBuffer(bytes: bytes)), expected, "\(bytes)")
    }
  }
}
