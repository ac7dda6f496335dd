import NIOCore
import NIOEmbedded
import XCTest

@testable import connectrpc

final class PrefaceDetectorTests: XCTestCase {
  private static let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

  /// What the detector finds in a text that comes in pieces, and what it passes on.
  private func detect(_ text: String, pieces: Int) throws -> (isHTTP2: Bool?, passedOn: String) {
    var found: Bool?
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandler(PrefaceDetector { found = $0 })
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      try channel.writeInbound(ByteBuffer(bytes: bytes[start..<min(start + pieces, bytes.count)]))
    }
    var passedOn = ""
    while let bytes = try channel.readInbound(as: ByteBuffer.self) { passedOn += String(buffer: bytes) }
    _ = try channel.finish()
    return (found, passedOn)
  }

  func testVersions() throws {
    for pieces in [1, 7, 1000] {
      for (text, isHTTP2) in [
        (Self.preface + "more", true), ("POST /a HTTP/1.1\r\n\r\n", false), ("PRI * HTTP/1.1\r\n\r\n", false),
      ] {
        let (found, passedOn) = try self.detect(text, pieces: pieces)
        XCTAssertEqual(found, isHTTP2, text)
        XCTAssertEqual(passedOn, text)
      }
    }
  }

  func testWhatMayBeBoth() throws {
    let (found, passedOn) = try self.detect(String(Self.preface.dropLast()), pieces: 1)
    XCTAssertNil(found)
    XCTAssertEqual(passedOn, "")
  }
}
