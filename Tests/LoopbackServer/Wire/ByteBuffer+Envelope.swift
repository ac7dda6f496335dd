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

  /// The next enveloped message, if all of it is there.
  mutating func readEnvelope(limit: Int) throws -> (flags: UInt8, message: ByteBuffer)? {
    guard let flags = self.getInteger(at: self.readerIndex, as: UInt8.self),
      let length = self.getInteger(at: self.readerIndex + 1, as: UInt32.self)
    else { return nil }
    guard length <= limit else {
      throw RPCFailure(.resourceExhausted, "message is larger than \(limit) bytes")
    }
    guard self.readableBytes >= 5 + Int(length) else { return nil }
    self.moveReaderIndex(forwardBy: 5)
    return self.readSlice(length: Int(length)).map { (flags, $0) }
  }
}
