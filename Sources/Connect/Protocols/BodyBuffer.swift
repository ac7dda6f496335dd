internal import NIOCore

/// Gathers a body of limited size. A body that arrives in a single chunk is not copied.
struct BodyBuffer {
  /// The most that is reserved for a body because of its `content-length` alone, in bytes.
  private static let maximumReservation = 4 << 20

  let limit: Int
  private(set) var bytes = ByteBuffer()
  private var expectedLength = 0
  private var isOwned = false
  let buffers: BodyBuffers?

  /// - Parameters:
  ///   - limit: In bytes; a `ByteBuffer` cannot hold 4 GiB, whatever the limit.
  ///   - buffers: Where memory for a large body comes from.
  init(limit: Int, buffers: BodyBuffers? = nil) {
    self.limit = min(limit, Int(UInt32.max))
    self.buffers = buffers
  }

  /// Takes note of a `content-length`. False if it is over the limit.
  mutating func expect(_ length: Int) -> Bool {
    self.expectedLength = max(length, 0)
    return length <= self.limit
  }

  /// False if the body is over the limit with this chunk; it is not added then.
  mutating func append(_ chunk: ByteBuffer) -> Bool {
    let total = self.bytes.readableBytes + chunk.readableBytes
    guard total <= self.limit else { return false }
    if self.bytes.readableBytes == 0 {
      self.bytes = chunk
      self.isOwned = false
      return true
    }
    if !self.isOwned {
      var owned = self.buffers.buffer(size: max(total, min(self.expectedLength, Self.maximumReservation)))
      owned.writeImmutableBuffer(self.bytes)
      self.bytes = owned
      self.isOwned = true
    }
    self.bytes.writeImmutableBuffer(chunk)
    return true
  }

  /// The body; empty afterwards.
  mutating func take() -> ByteBuffer {
    defer { self.bytes = ByteBuffer() }
    return self.bytes
  }
}
