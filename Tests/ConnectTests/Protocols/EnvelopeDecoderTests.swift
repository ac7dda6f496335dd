import NIOCore
import TestSupport
import XCTest

@testable import Connect

final class EnvelopeDecoderTests: XCTestCase {
  private func bytes(_ messages: [(flags: UInt8, message: [UInt8])]) -> ByteBuffer {
    messages.reduce(into: ByteBuffer()) { result, item in
      result.writeImmutableBuffer(Envelope.encode(ByteBuffer(bytes: item.message), flags: item.flags))
    }
  }

  private func drain(_ decoder: inout EnvelopeDecoder) throws -> [Envelope] {
    var result: [Envelope] = []
    while let envelope = try decoder.next() { result.append(envelope) }
    return result
  }

  func testWhole() throws {
    var decoder = EnvelopeDecoder(maximumMessageSize: 100)
    XCTAssertNil(try decoder.next())
    decoder.receive(self.bytes([(0, [1, 2, 3]), (255, []), (2, [4])]))
    XCTAssertEqual(decoder.bufferedByteCount, 19)
    XCTAssertEqual(try decoder.next(), Envelope(flags: 0, message: ByteBuffer(bytes: [1, 2, 3])))
    XCTAssertEqual(decoder.bufferedByteCount, 11)
    XCTAssertEqual(try decoder.next(), Envelope(flags: 255, message: ByteBuffer()))
    XCTAssertEqual(try decoder.next(), Envelope(flags: 2, message: ByteBuffer(bytes: [4])))
    XCTAssertNil(try decoder.next())
    XCTAssertEqual(decoder.bufferedByteCount, 0)
  }

  func testAMessageWithinAChunkIsASlice() throws {
    var chunk = self.bytes([(0, Array(repeating: 1, count: 2000)), (0, Array(repeating: 2, count: 2000))])
    let start = chunk.withUnsafeReadableBytes { $0.baseAddress }
    var decoder = EnvelopeDecoder(maximumMessageSize: 4000)
    decoder.receive(chunk)
    for offset in [5, 2010] {
      let message = try XCTUnwrap(decoder.next()).message
      XCTAssertEqual(message.withUnsafeReadableBytes { $0.baseAddress }, start.map { $0 + offset })
    }
    chunk.clear()
  }

  func testAMessageInPiecesIsCopiedOnceWhetherItIsReadOrNot() throws {
    let size = 100_000
    for piece in [1, 100, 1023, 1024, 20_000] {
      for reads in [true, false] {
        var rest = self.bytes([(0, [7]), (0, Array(repeating: 1, count: size)), (0, [8])])
        var decoder = EnvelopeDecoder(maximumMessageSize: size)
        var places: Set<UnsafeRawPointer?> = []
        var envelopes: [Envelope] = []
        while let chunk = rest.readSlice(length: min(piece, rest.readableBytes)), chunk.readableBytes > 0 {
          decoder.receive(ByteBuffer(bytes: chunk.readableBytesView))
          if reads { envelopes += try self.drain(&decoder) }
          if let partial = decoder.partial, partial.length == size, partial.message.readableBytes > 0 {
            places.insert(partial.message.withUnsafeReadableBytes { $0.baseAddress })
          }
        }
        envelopes += try self.drain(&decoder)
        XCTAssertEqual(envelopes.map(\.message.readableBytes), [1, size, 1])
        // Where the first piece was written to, and nowhere else.
        XCTAssertEqual(places, [envelopes[1].message.withUnsafeReadableBytes { $0.baseAddress }])
      }
    }
  }

  /// Whether it came in a chunk with other things, or behind a prefix that came before.
  func testASmallMessageThatWaitsDoesNotHoldItsChunk() throws {
    var decoder = EnvelopeDecoder(maximumMessageSize: 10_000)
    var large = self.bytes([(0, Array(repeating: 1, count: 5000))])
    decoder.receive(large)
    large.writeBytes([0, 0, 0, 0, 1])
    decoder.receive(large)
    let chunk = ByteBuffer(bytes: [7] + Array(repeating: 0, count: 65_536))
    decoder.receive(try XCTUnwrap(chunk.getSlice(at: 0, length: 1)))
    let whole = self.bytes([(0, [8]), (0, Array(repeating: 2, count: 5000))])
    decoder.receive(try XCTUnwrap(whole.getSlice(at: 0, length: 6)))
    let messages = try self.drain(&decoder).map(\.message)
    XCTAssertEqual(messages.map(\.readableBytes), [5000, 5000, 1, 1])
    for (message, chunk) in zip(messages.suffix(2), [chunk, whole]) {
      let place = try XCTUnwrap(message.withUnsafeReadableBytes { $0.baseAddress })
      chunk.withUnsafeReadableBytes { bytes in
        guard let start = bytes.baseAddress else { return XCTFail("no bytes") }
        XCTAssertFalse((start..<start + bytes.count).contains(place))
      }
    }
  }

  func testTheOnlySmallMessageDoesNotHoldItsChunkOnceSettled() throws {
    for (length, isCopied) in [(10, true), (2000, false)] {
      var decoder = EnvelopeDecoder(maximumMessageSize: 10_000)
      let chunk = self.bytes([(0, Array(repeating: 3, count: length))])
      decoder.receive(chunk)
      decoder.settle()
      decoder.settle()
      XCTAssertEqual(decoder.bufferedByteCount, length + 5)
      let message = try XCTUnwrap(try decoder.next()).message
      XCTAssertEqual(Array(message.readableBytesView), Array(repeating: 3, count: length))
      let place = try XCTUnwrap(message.withUnsafeReadableBytes { $0.baseAddress })
      chunk.withUnsafeReadableBytes { bytes in
        guard let start = bytes.baseAddress else { return XCTFail("no bytes") }
        XCTAssertEqual((start..<start + bytes.count).contains(place), !isCopied)
      }
      XCTAssertNil(try decoder.next())
      decoder.settle()
      XCTAssertEqual(decoder.bufferedByteCount, 0)
    }
  }

  func testAPrefixOfItsOwnCostsNoCopyOfTheMessage() throws {
    var decoder = EnvelopeDecoder(maximumMessageSize: 4000)
    decoder.receive(ByteBuffer(bytes: [0, 0, 0, 0x0b, 0xb8]))
    let message = ByteBuffer(repeating: 1, count: 3000)
    decoder.receive(message)
    let result = try XCTUnwrap(decoder.next()).message
    XCTAssertEqual(result, message)
    XCTAssertEqual(
      result.withUnsafeReadableBytes { $0.baseAddress },
      message.withUnsafeReadableBytes { $0.baseAddress }
    )
  }

  func testNothingIsKeptBehindAMessageOverTheLimit() throws {
    var decoder = EnvelopeDecoder(maximumMessageSize: 10)
    decoder.receive(self.bytes([(0, [1]), (0, Array(repeating: 0, count: 11))]))
    let count = decoder.bufferedByteCount
    decoder.receive(ByteBuffer(repeating: 0, count: 1000))
    XCTAssertEqual(decoder.bufferedByteCount, count)
    XCTAssertEqual(try decoder.next()?.message, ByteBuffer(bytes: [1]))
    for _ in 0..<2 { XCTAssertThrowsError(try decoder.next()) }
    decoder.discard()
    XCTAssertEqual(decoder.bufferedByteCount, 0)
  }

  func testByteByByte() throws {
    let whole = self.bytes([(0, [1, 2, 3]), (1, []), (0, Array(0...255)), (2, [9])])
    for drainsEachTime in [true, false] {
      var decoder = EnvelopeDecoder(maximumMessageSize: 1000)
      var result: [Envelope] = []
      for byte in whole.readableBytesView {
        decoder.receive(ByteBuffer(bytes: [byte]))
        if drainsEachTime { result += try self.drain(&decoder) }
      }
      result += try self.drain(&decoder)
      XCTAssertEqual(result.map(\.flags), [0, 1, 0, 2])
      XCTAssertEqual(
        result.map { Array($0.message.readableBytesView) },
        [[1, 2, 3], [], Array(0...255), [9]]
      )
      XCTAssertEqual(decoder.bufferedByteCount, 0)
    }
  }

  func testRandomChunks() throws {
    var random = SeededGenerator()
    for _ in 0..<500 {
      let messages = (0..<Int.random(in: 0...6, using: &random)).map { _ in
        let size = Int.random(
          in: 0...[0, 3, 600, 5000][Int.random(in: 0...3, using: &random)],
          using: &random
        )
        return (
          flags: UInt8.random(in: 0...255, using: &random),
          message: (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        )
      }
      var rest = self.bytes(messages)
      var decoder = EnvelopeDecoder(maximumMessageSize: 5000)
      var result: [Envelope] = []
      var handedOut = 0
      var received = 0
      while rest.readableBytes > 0 {
        let size = min(Int.random(in: 1...2000, using: &random), rest.readableBytes)
        decoder.receive(try XCTUnwrap(rest.readSlice(length: size)))
        received += size
        if Bool.random(using: &random), let envelope = try decoder.next() {
          result.append(envelope)
          handedOut += 5 + envelope.message.readableBytes
        }
        XCTAssertEqual(decoder.bufferedByteCount, received - handedOut)
      }
      result += try self.drain(&decoder)
      XCTAssertEqual(result.map(\.flags), messages.map(\.flags))
      XCTAssertEqual(result.map { Array($0.message.readableBytesView) }, messages.map(\.message))
    }
  }

  func testTheLimitIsCheckedOnThePrefix() throws {
    var decoder = EnvelopeDecoder(maximumMessageSize: 10)
    decoder.receive(self.bytes([(0, Array(repeating: 0, count: 10))]))
    decoder.receive(ByteBuffer(bytes: [0, 0, 0, 0, 11]))
    XCTAssertNotNil(try decoder.next())
    XCTAssertThrowsError(try decoder.next()) { error in
      let error = error as? ConnectError
      XCTAssertEqual(error?.code, .resourceExhausted)
      XCTAssertEqual(
        error?.message,
        "received message of 11 bytes, which is over the limit of 10 bytes (maximumReceivedMessageSize)"
      )
    }
  }

  func testTheEndHasALimitOfItsOwn() throws {
    var decoder = EnvelopeDecoder(maximumMessageSize: 1, endFlag: 0x80, maximumEndSize: 3)
    decoder.receive(self.bytes([(0x81, [1, 2, 3]), (0x80, [1, 2, 3, 4])]))
    XCTAssertEqual(try decoder.next()?.message.readableBytes, 3)
    XCTAssertThrowsError(try decoder.next()) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .resourceExhausted)
    }
  }

  func testNothingIsReservedOnAHugeAnnouncement() throws {
    var decoder = EnvelopeDecoder(maximumMessageSize: Int(UInt32.max))
    decoder.receive(ByteBuffer(bytes: [0, 0xff, 0xff, 0xff, 0xff, 1]))
    XCTAssertNil(try decoder.next())
    decoder.receive(ByteBuffer(bytes: [2]))
    XCTAssertNil(try decoder.next())
    XCTAssertEqual(decoder.bufferedByteCount, 7)
  }

  func testALargeMessageInManyChunks() throws {
    let size = 9 << 20
    var decoder = EnvelopeDecoder(maximumMessageSize: size)
    var prefix = ByteBuffer(bytes: [0])
    prefix.writeInteger(UInt32(size))
    decoder.receive(prefix)
    let chunk = ByteBuffer(repeating: 3, count: 16 << 10)
    for _ in 0..<(size / chunk.readableBytes) {
      XCTAssertNil(try decoder.next())
      decoder.receive(chunk)
    }
    XCTAssertEqual(try decoder.next()?.message.readableBytes, size)
  }

  func testEmptyChunksAndDiscard() throws {
    var decoder = EnvelopeDecoder(maximumMessageSize: 10)
    decoder.receive(ByteBuffer())
    decoder.receive(ByteBuffer(bytes: [0, 0]))
    decoder.receive(ByteBuffer())
    XCTAssertNil(try decoder.next())
    XCTAssertEqual(decoder.bufferedByteCount, 2)
    decoder.discard()
    XCTAssertEqual(decoder.bufferedByteCount, 0)
    decoder.receive(self.bytes([(0, [5])]))
    XCTAssertEqual(try decoder.next()?.message, ByteBuffer(bytes: [5]))
  }
}
