internal import NIOCore
internal import XCTest

@testable internal import ConnectNIO

final class HTTP2OutputTests: XCTestCase {
  private func pieces(isEncrypted: Bool, frames: Int, bodySize: Int) -> [ByteBuffer] {
    var output = HTTP2Output(isEncrypted: isEncrypted)
    for index in 0..<frames {
      [UInt8](repeating: UInt8(index), count: 9).withUnsafeBytes { output.append(copying: $0) }
      output.append(ByteBuffer(repeating: UInt8(index), count: bodySize))
    }
    let (pieces, last) = output.takeAll()
    return pieces + (last.readableBytes > 0 ? [last] : [])
  }

  private func expected(frames: Int, bodySize: Int) -> [UInt8] {
    (0..<frames).flatMap { [UInt8](repeating: UInt8($0), count: 9 + bodySize) }
  }

  func testLargeBodiesAreNotCopiedInCleartext() {
    let pieces = self.pieces(isEncrypted: false, frames: 3, bodySize: 16 << 10)
    XCTAssertEqual(pieces.map(\.readableBytes), [9, 16 << 10, 9, 16 << 10, 9, 16 << 10])
    XCTAssertEqual(
      pieces.flatMap { Array($0.readableBytesView) },
      self.expected(frames: 3, bodySize: 16 << 10)
    )
  }

  func testFrameHeadersShareRecordsWithBodiesInTLS() {
    let pieces = self.pieces(isEncrypted: true, frames: 8, bodySize: 16 << 10)
    XCTAssertEqual(pieces.map { $0.readableBytes > 16 << 10 }, [true, true, true])
    XCTAssertEqual(
      pieces.flatMap { Array($0.readableBytesView) },
      self.expected(frames: 8, bodySize: 16 << 10)
    )
  }
}
