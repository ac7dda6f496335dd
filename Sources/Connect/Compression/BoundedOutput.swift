internal import NIOCore

/// The output of a decompressor: a buffer that grows as it fills, and never beyond a limit.
///
/// Its capacity is at most the limit, rounded up to a power of two as `ByteBuffer` does; bytes beyond the limit
/// are never written.
struct BoundedOutput {
  private static let minimumCapacity = 512

  let limit: Int
  private(set) var bytes = ByteBuffer()

  /// - Parameters:
  ///   - limit: In bytes.
  ///   - expected: A guess at the size, in bytes, for which room is made at once.
  init(limit: Int, expected: Int) {
    self.limit = min(max(limit, 0), Int(UInt32.max) - 1)
    self.bytes.reserveCapacity(min(self.limit, max(expected, Self.minimumCapacity)))
  }

  /// Lets `body` write into free space, of which there is at least one byte; it returns how much it has used.
  ///
  /// - Throws: ``ConnectError`` with `resource_exhausted` if the limit was reached before and `body` has more.
  mutating func write(_ body: (UnsafeMutableRawBufferPointer) -> Int) throws(ConnectError) {
    let room = self.limit - self.bytes.readableBytes
    guard room > 0 else {
      var probe: UInt8 = 0
      guard withUnsafeMutableBytes(of: &probe, body) == 0 else {
        throw CompressionErrors.tooLarge("more than \(self.limit)", limit: self.limit)
      }
      return
    }
    if self.bytes.writableBytes == 0 {
      self.bytes.reserveCapacity(min(self.limit, max(self.bytes.capacity * 2, Self.minimumCapacity)))
    }
    self.bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: 0) { space in
      body(UnsafeMutableRawBufferPointer(rebasing: space.prefix(room)))
    }
  }
  /// Lets `body` fill free space of exactly `count` bytes.
  ///
  /// - Throws: ``ConnectError`` with `resource_exhausted` if that is more than the limit leaves.
  mutating func write(
    exactly count: Int,
    _ body: (UnsafeMutableRawBufferPointer) -> Void
  ) throws(ConnectError) {
    guard count <= self.limit - self.bytes.readableBytes else {
      throw CompressionErrors.tooLarge("at least \(self.bytes.readableBytes + count)", limit: self.limit)
    }
    if self.bytes.writableBytes < count {
      self.bytes.reserveCapacity(
        min(self.limit, max(self.bytes.capacity * 2, self.bytes.writerIndex + count))
      )
    }
    self.bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { space in
      body(UnsafeMutableRawBufferPointer(rebasing: space.prefix(count)))
      return count
    }
  }
}
