import NIOCore
import TestSupport
import XCTest

@testable import Connect

/// Valid compressed messages, cut and damaged at random, and random ones.
final class DecompressionFuzzTests: XCTestCase {
  private struct Sample {
    var pool: any CompressionPool
    var message: ByteBuffer
    var compressed: [UInt8]
  }

  /// Valid messages of each encoding: short and long, dense and such that inflate to far more.
  private func samples(_ random: inout SeededGenerator) throws -> [Sample] {
    try CompressionPoolTests.pools.flatMap { pool in
      let noise = ByteBuffer(bytes: (0..<3000).map { _ in UInt8.random(in: 0...255, using: &random) })
      let text = ByteBuffer(bytes: (0..<3000).map { _ in UInt8.random(in: 0x61...0x64, using: &random) })
      let messages = [
        ByteBuffer(), ByteBuffer(string: "a"), noise, text, ByteBuffer(repeating: 0, count: 100_000),
      ]
      return try messages.map { message in
        let compressed = Array(try pool.compress(message).readableBytesView)
        return Sample(pool: pool, message: message, compressed: compressed)
      }
    }
  }

  /// What comes out is never more than the limit, nor is the memory for it: the next power of two.
  private func expectBounded(_ bytes: ByteBuffer, by limit: Int, _ what: String) {
    XCTAssertLessThanOrEqual(bytes.readableBytes, limit, what)
    var power = 1
    while power < limit { power *= 2 }
    XCTAssertLessThanOrEqual(bytes.capacity, power, what)
  }

  func testDamagedAndRandomCompressedMessages() throws {
    var random = SeededGenerator()
    let watchdog = Watchdog()
    let samples = try self.samples(&random)
    for round in 0..<DecoderFuzzTests.rounds {
      watchdog.begin(round: round)
      let sample = samples[round % samples.count]
      var bytes = sample.compressed
      for _ in 0..<Int.random(in: 0...4, using: &random) { random.damage(&bytes) }
      if Int.random(in: 0..<8, using: &random) == 0 {
        // Behind a valid beginning, so that not all is over with the first byte.
        bytes = sample.compressed.prefix(Int.random(in: 0...12, using: &random)) + random.body()
      }
      let limit = [0, 1, 100, 4096, 5000, 200_000].randomElement(using: &random) ?? 0
      let what = "\(sample.pool.name), round \(round)"
      do {
        let result = try sample.pool.decompress(ByteBuffer(bytes: bytes), maximumSize: limit)
        self.expectBounded(result, by: limit, what)
        if bytes == sample.compressed { XCTAssertTrue(result == sample.message, what) }
      } catch let error as ConnectError {
        XCTAssertTrue([.internalError, .resourceExhausted].contains(error.code), "\(what): \(error)")
        if bytes == sample.compressed {
          XCTAssertEqual(error.code, .resourceExhausted, what)
          XCTAssertGreaterThan(sample.message.readableBytes, limit, what)
        }
      }
    }
  }

  /// Also what was written before the end of a message turns out to be wrong.
  func testInflatingDamagedMessagesStaysWithinTheLimit() throws {
    var random = SeededGenerator()
    let watchdog = Watchdog()
    let inflaters = [
      "gzip": try ZlibInflater(name: "gzip", windowBits: 31),
      "deflate": try ZlibInflater(name: "deflate", windowBits: 15),
    ]
    let samples = try self.samples(&random).filter { inflaters[$0.pool.name] != nil }
    for round in 0..<DecoderFuzzTests.rounds {
      watchdog.begin(round: round)
      let sample = samples[round % samples.count]
      let inflater = try XCTUnwrap(inflaters[sample.pool.name])
      var bytes = sample.compressed
      for _ in 0..<Int.random(in: 0...4, using: &random) { random.damage(&bytes) }
      let limit = [0, 1, 100, 4096, 5000, 200_000].randomElement(using: &random) ?? 0
      var output = BoundedOutput(limit: limit, expected: bytes.count * 4)
      let isGood = (try? inflater.decompress(ByteBuffer(bytes: bytes), to: &output)) != nil
      let what = "\(sample.pool.name), round \(round)"
      self.expectBounded(output.bytes, by: limit, what)
      if isGood, bytes == sample.compressed { XCTAssertTrue(output.bytes == sample.message, what) }
    }
  }
}
