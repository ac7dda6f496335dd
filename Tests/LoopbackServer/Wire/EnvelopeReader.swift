internal import NIOCore

/// Cuts a request's body into its messages.
struct EnvelopeReader {
  private let exchange: Exchange
  private var received = ByteBuffer()

  init(_ exchange: Exchange) {
    self.exchange = exchange
  }

  /// The next message; nil after the last one.
  mutating func next() async throws -> ByteBuffer? {
    while true {
      if let envelope = try self.received.readEnvelope(limit: ConnectUnaryCall.messageLimit) {
        if envelope.flags & 0x01 != 0 {
          throw RPCFailure(.unimplemented, "unknown compression: supported is identity")
        }
        guard envelope.flags == 0 else {
          throw RPCFailure(.invalidArgument, "unexpected envelope flags \(envelope.flags)")
        }
        return envelope.message
      }
      guard var chunk = try await self.exchange.nextChunk() else { break }
      if self.received.readableBytes == 0 {
        self.received = chunk
      } else {
        self.received.discardReadBytes()
        self.received.writeBuffer(&chunk)
      }
    }
    guard self.received.readableBytes == 0 else {
      throw RPCFailure(.invalidArgument, "the request ends within an envelope")
    }
    return nil
  }
}
