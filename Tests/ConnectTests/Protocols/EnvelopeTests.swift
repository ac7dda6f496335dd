import NIOCore
import XCTest

@testable import Connect

final class EnvelopeTests: XCTestCase {
  func testWritesThePrefixIntoTheHeadroomWithoutACopy() {
    var message = ContiguousByteBuffer(repeating: 7, count: 300).buffer
    let before = message.withUnsafeReadableBytes { $0.baseAddress }
    message = Envelope.encode(message.take(), flags: 2)
    XCTAssertEqual(Array(message.readableBytesView.prefix(6)), [2, 0, 0, 1, 44, 7])
    XCTAssertEqual(message.readableBytes, 305)
    XCTAssertEqual(message.withUnsafeReadableBytes { $0.baseAddress.map { $0 + 5 } }, before)
  }

  func testCopiesWithoutHeadroom() {
    let message = ByteBuffer(bytes: [1, 2])
    XCTAssertEqual(Array(Envelope.encode(message).readableBytesView), [0, 0, 0, 0, 2, 1, 2])
    XCTAssertEqual(Array(message.readableBytesView), [1, 2])
    XCTAssertEqual(Array(Envelope.encode(ByteBuffer()).readableBytesView), [0, 0, 0, 0, 0])
  }

  func testLeavesOtherHoldersOfTheBufferAlone() {
    var storage = ByteBuffer(bytes: [10, 11, 12, 13, 14, 15, 16])
    storage.moveReaderIndex(forwardBy: 5)
    let enveloped = Envelope.encode(storage, flags: 1)
    XCTAssertEqual(Array(enveloped.readableBytesView), [1, 0, 0, 0, 2, 15, 16])
    storage.moveReaderIndex(to: 0)
    XCTAssertEqual(Array(storage.readableBytesView), [10, 11, 12, 13, 14, 15, 16])
  }
}

extension ByteBuffer {
  /// The buffer, of which the variable keeps nothing.
  fileprivate mutating func take() -> ByteBuffer {
    let taken = self
    self = ByteBuffer()
    return taken
  }
}
