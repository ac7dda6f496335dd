package import NIOCore

extension ByteBuffer {
  /// The flags and the length that streams, and gRPC always, send in front of a message.
  private static let headroom = 5

  /// An empty buffer for a message, with room for an envelope's prefix in front.
  package init(withHeadroomFor capacity: Int) {
    self = ByteBufferAllocator().buffer(capacity: Self.headroom + capacity)
    self.moveWriterIndex(to: Self.headroom)
    self.moveReaderIndex(to: Self.headroom)
  }
}
