public import NIOCore

extension ByteBuffer {
  /// An enveloped message: a byte of flags, the length in four bytes, the message.
  public init(envelope message: ByteBuffer, flags: UInt8) {
    self.init()
    self.reserveCapacity(message.readableBytes + 5)
    self.writeInteger(flags)
    self.writeInteger(UInt32(message.readableBytes))
    self.writeImmutableBuffer(message)
  }
}
