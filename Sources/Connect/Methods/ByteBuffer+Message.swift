package import NIOCore

extension ByteBuffer {
  /// The bytes of an envelope's prefix, flags and length. Streams send it in front of each message, and gRPC does in
  /// all calls.
  private static let headroom = 5

  /// An empty buffer for a message, with room for an envelope's prefix in front.
  package init(withHeadroomFor capacity: Int) {
    self = ByteBufferAllocator().buffer(capacity: Self.headroom + capacity)
    self.moveWriterIndex(to: Self.headroom)
    self.moveReaderIndex(to: Self.headroom)
  }
}
