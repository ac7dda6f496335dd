internal import DequeModule
internal import NIOCore

/// The bytes of a request's body that wait for the peer's window or for the socket, in order.
struct HTTP2OutboundBody {
  /// Most bodies are one buffer, which needs no queue.
  private var first: ByteBuffer?
  private var rest: Deque<ByteBuffer> = []
  private(set) var byteCount = 0

  var isEmpty: Bool { self.byteCount == 0 }

  mutating func append(_ bytes: ByteBuffer) {
    guard bytes.readableBytes > 0 else { return }
    self.byteCount += bytes.readableBytes
    if self.first == nil { self.first = bytes } else { self.rest.append(bytes) }
  }

  /// Takes up to `limit` bytes, without a copy and from one buffer only; nil if there are none.
  mutating func next(limit: Int) -> ByteBuffer? {
    guard limit > 0, let available = self.first?.readableBytes else { return nil }
    if available <= limit {
      self.byteCount -= available
      let whole = self.first
      self.first = self.rest.popFirst()
      return whole
    }
    self.byteCount -= limit
    return self.first?.readSlice(length: limit)
  }

  mutating func removeAll() {
    self.first = nil
    self.rest = []
    self.byteCount = 0
  }
}
