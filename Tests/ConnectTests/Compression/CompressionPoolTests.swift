import NIOCore
import TestSupport
import XCTest

@testable import Connect

final class CompressionPoolTests: XCTestCase {
  /// Those of this build.
  static var pools: [any CompressionPool] {
    var pools: [any CompressionPool] = [
      GzipCompressionPool(), DeflateCompressionPool(), GzipCompressionPool(level: 0),
      DeflateCompressionPool(level: 99),
    ]
    #if Brotli
    pools.append(BrotliCompressionPool())
    #endif
    #if Zstd
    pools.append(ZstdCompressionPool())
    #endif
    #if Snappy
    pools.append(SnappyCompressionPool())
    #endif
    return pools
  }

  private func bytes(_ hex: String) -> ByteBuffer {
    var bytes = ByteBuffer()
    var rest = Substring(hex.filter { $0 != " " })
    while !rest.isEmpty {
      bytes.writeInteger(UInt8(rest.prefix(2), radix: 16) ?? 0)
      rest = rest.dropFirst(2)
    }
    return bytes
  }

  private func code(_ body: () throws -> Void) -> Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? ConnectError)?.code
    }
  }

  private func sample(_ size: Int, _ random: inout SeededGenerator) -> ByteBuffer {
    let letters = Int.random(in: 1...256, using: &random)
    return ByteBuffer(bytes: (0..<size).map { _ in UInt8(Int.random(in: 0..<letters, using: &random)) })
  }

  func testRoundTrips() throws {
    var random = SeededGenerator()
    for pool in Self.pools {
      for size in [0, 1, 2, 100, 1023, 4096, 65_535, 65_536, 65_537, 200_000, 1_000_000] {
        let message = self.sample(size, &random)
        let compressed = try pool.compress(message)
        XCTAssertLessThanOrEqual(
          compressed.readableBytes,
          ResponseEncoding.maximumCompressedSize(of: size),
          "\(pool.name) of \(size)"
        )
        XCTAssertGreaterThanOrEqual(compressed.readerIndex, Envelope.prefixLength, pool.name)
        XCTAssertEqual(try pool.decompress(compressed, maximumSize: size), message, "\(pool.name) of \(size)")
        guard size > 0 else { continue }
        XCTAssertEqual(
          self.code { _ = try pool.decompress(compressed, maximumSize: size - 1) },
          .resourceExhausted,
          "\(pool.name) of \(size)"
        )
      }
    }
  }

  func testTruncationIsAnError() throws {
    var random = SeededGenerator()
    for pool in Self.pools {
      let compressed = try pool.compress(self.sample(1000, &random))
      for length in 1..<compressed.readableBytes {
        guard let part = compressed.getSlice(at: compressed.readerIndex, length: length) else { continue }
        // Frames of snappy are whole where the stream identifier ends.
        if pool.name == "snappy", length == 10 { continue }
        XCTAssertEqual(
          self.code { _ = try pool.decompress(part, maximumSize: 5000) },
          .internalError,
          "\(pool.name), \(length) bytes"
        )
      }
    }
  }

  func testGarbageBehindTheEndIsAnError() throws {
    for pool in Self.pools {
      for garbage in [[0], [1, 2, 3], [0x1f], [0x1f, 0x8b, 0x08, 0]] as [[UInt8]] {
        var compressed = try pool.compress(ByteBuffer(string: "hello hello hello"))
        compressed.writeBytes(garbage)
        XCTAssertEqual(
          self.code { _ = try pool.decompress(compressed, maximumSize: 5000) },
          .internalError,
          "\(pool.name), \(garbage)"
        )
      }
    }
  }

  func testContextsStandAlone() throws {
    for pool in Self.pools {
      let message = ByteBuffer(string: String(repeating: "the same text ", count: 50))
      let first = try pool.compress(message)
      // A context that has failed is as good as new for the next message.
      XCTAssertNotNil(self.code { _ = try pool.decompress(ByteBuffer(bytes: [1, 2, 3]), maximumSize: 100) })
      XCTAssertNotNil(self.code { _ = try pool.decompress(first, maximumSize: 10) })
      for _ in 0..<20 {
        XCTAssertEqual(try pool.compress(message), first, pool.name)
        XCTAssertEqual(try pool.decompress(first, maximumSize: 5000), message, pool.name)
      }
    }
  }

  func testDamagedMessages() throws {
    var random = SeededGenerator()
    for pool in Self.pools {
      let good = Array(try pool.compress(self.sample(2000, &random)).readableBytesView)
      for _ in 0..<2000 {
        var bad = good
        for _ in 0...Int.random(in: 0..<3, using: &random) {
          let index = Int.random(in: 0..<bad.count, using: &random)
          switch Int.random(in: 0..<3, using: &random) {
          case 0: bad[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
          case 1: bad.insert(UInt8.random(in: 0...255, using: &random), at: index)
          default: if bad.count > 1 { bad.remove(at: index) }
          }
        }
        guard let result = try? pool.decompress(ByteBuffer(bytes: bad), maximumSize: 4096) else { continue }
        XCTAssertLessThanOrEqual(result.readableBytes, 4096, pool.name)
      }
    }
  }

  // MARK: Bombs

  func testABombIsRefusedWhileInflating() throws {
    let size = 10 << 20
    for pool in Self.pools where pool.name != "snappy" {
      let bomb = try pool.compress(ByteBuffer(repeating: 0, count: size))
      XCTAssertEqual(
        self.code { _ = try pool.decompress(bomb, maximumSize: 1 << 20) },
        .resourceExhausted,
        pool.name
      )
    }
  }

  func testABombNeverHoldsMoreThanTheLimit() throws {
    let bomb = try GzipCompressionPool(level: 9).compress(ByteBuffer(repeating: 0, count: 10 << 20))
    XCTAssertLessThan(bomb.readableBytes, 11_000)
    let inflater = try ZlibInflater(name: "gzip", windowBits: 31)
    for limit in [0, 1, 512, 4096, 1 << 20, 4 << 20] {
      var output = BoundedOutput(limit: limit, expected: bomb.readableBytes * 4)
      XCTAssertThrowsError(try inflater.decompress(bomb, to: &output)) { error in
        let error = error as? ConnectError
        XCTAssertEqual(error?.code, .resourceExhausted)
        XCTAssertEqual(
          error?.message,
          "received message of more than \(limit) bytes after decompression,"
            + " which is over the limit of \(limit) bytes (maximumReceivedMessageSize)"
        )
      }
      XCTAssertLessThanOrEqual(output.bytes.capacity, limit)
    }
    // Between powers of two the buffer's capacity is the next one, of which no more than the limit is written.
    var output = BoundedOutput(limit: 5000, expected: 100)
    XCTAssertThrowsError(try inflater.decompress(bomb, to: &output))
    XCTAssertEqual(output.bytes.readableBytes, 5000)
    XCTAssertLessThanOrEqual(output.bytes.capacity, 8192)
  }

  // MARK: Formats

  func testKnownGzip() throws {
    // `printf hello | gzip -n`
    let hello = self.bytes("1f8b0800000000000003cb48cdc9c9070086a6103605000000")
    let pool = GzipCompressionPool()
    XCTAssertEqual(try pool.decompress(hello, maximumSize: 5), ByteBuffer(string: "hello"))
    var two = hello
    two.writeImmutableBuffer(hello)
    XCTAssertEqual(try pool.decompress(two, maximumSize: 10), ByteBuffer(string: "hellohello"))
    XCTAssertEqual(self.code { _ = try pool.decompress(two, maximumSize: 9) }, .resourceExhausted)
    XCTAssertEqual(self.code { _ = try pool.decompress(ByteBuffer(), maximumSize: 9) }, .internalError)
    var wrongSum = hello
    wrongSum.setInteger(UInt8(0), at: hello.writerIndex - 8)
    XCTAssertEqual(self.code { _ = try pool.decompress(wrongSum, maximumSize: 9) }, .internalError)
  }

  func testDeflateIsTheZlibFormat() throws {
    let pool = DeflateCompressionPool()
    XCTAssertEqual(
      try pool.decompress(self.bytes("789ccb48cdc9c90700 062c0215"), maximumSize: 5),
      ByteBuffer(string: "hello")
    )
    // Bare RFC 1951 data and gzip are something else.
    XCTAssertEqual(
      self.code { _ = try pool.decompress(self.bytes("cb48cdc9c90700"), maximumSize: 5) },
      .internalError
    )
    let gzip = try GzipCompressionPool().compress(ByteBuffer(string: "hello"))
    XCTAssertEqual(self.code { _ = try pool.decompress(gzip, maximumSize: 5) }, .internalError)
    XCTAssertEqual(try pool.compress(ByteBuffer(string: "hello")).getInteger(at: 5, as: UInt8.self), 0x78)
  }

  func testContextsAreUsedByManyThreads() async throws {
    let pool = GzipCompressionPool()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<50 {
        group.addTask {
          let message = ByteBuffer(string: String(repeating: "\(index) ", count: 1000))
          let compressed = try pool.compress(message)
          let result = try pool.decompress(compressed, maximumSize: message.readableBytes)
          XCTAssertEqual(result, message)
        }
      }
      try await group.waitForAll()
    }
  }

  #if Snappy
  func testSnappyFrames() throws {
    XCTAssertEqual(CRC32C.checksum(of: "123456789".utf8), 0xe306_9283)
    let pool = SnappyCompressionPool()
    let identifier = "ff060000734e61507059"
    XCTAssertEqual(try pool.compress(ByteBuffer()), self.bytes(identifier))
    let message = ByteBuffer(string: "hello")
    let compressed = try pool.compress(message)
    XCTAssertEqual(compressed.readableBytes, 10 + 8 + 5)
    XCTAssertEqual(compressed.getInteger(at: compressed.readerIndex + 10, as: UInt8.self), 1)
    // Padding and skippable chunks, and the identifier again.
    var padded = compressed
    padded.writeImmutableBuffer(self.bytes("fe020000 0000 80000000 \(identifier)"))
    XCTAssertEqual(try pool.decompress(padded, maximumSize: 5), message)
    var reserved = compressed
    reserved.writeImmutableBuffer(self.bytes("02000000"))
    XCTAssertEqual(self.code { _ = try pool.decompress(reserved, maximumSize: 5) }, .internalError)
    var wrongSum = compressed
    wrongSum.setInteger(UInt8(0xff), at: compressed.readerIndex + 14)
    XCTAssertEqual(self.code { _ = try pool.decompress(wrongSum, maximumSize: 5) }, .internalError)
    XCTAssertEqual(
      self.code { _ = try pool.decompress(self.bytes("0000"), maximumSize: 5) },
      .internalError
    )
    // The bare block format is something else.
    XCTAssertEqual(
      self.code { _ = try pool.decompress(self.bytes("051068656c6c6f"), maximumSize: 5) },
      .internalError
    )
  }
  #endif
}
