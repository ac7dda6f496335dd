package import NIOCore

/// A message in a body of many: one byte of flags, four bytes of length (big-endian), the message.
///
/// Connect's streams, gRPC and gRPC-Web share it and give the flags different meanings.
/// <https://connectrpc.com/docs/protocol#streaming-request>
package struct Envelope: Equatable {
  /// The size of flags and length, in bytes.
  static let prefixLength = 5
  /// The message is compressed. The one flag that all protocols share.
  package static let compressedFlag: UInt8 = 0b0000_0001

  package var flags: UInt8
  package var message: ByteBuffer

  /// `message` with its prefix in front.
  ///
  /// Costs no copy if the buffer has room in front of its readable bytes (`ByteBuffer(withHeadroomFor:)`)
  /// and nobody else holds its storage; otherwise one.
  package static func encode(_ message: consuming ByteBuffer, flags: UInt8 = 0) -> ByteBuffer {
    let length = UInt32(clamping: message.readableBytes)
    let start = message.readerIndex - self.prefixLength
    guard start >= 0 else {
      var enveloped = ByteBuffer()
      enveloped.reserveCapacity(self.prefixLength + message.readableBytes)
      enveloped.writeInteger(flags)
      enveloped.writeInteger(length)
      enveloped.writeBuffer(&message)
      return enveloped
    }
    message.setInteger(flags, at: start)
    message.setInteger(length, at: start + 1)
    message.moveReaderIndex(to: start)
    return message
  }
}

extension ResponseEncoding {
  /// The message in an envelope.
  ///
  /// - Throws: ``ConnectError``: `internal` if the message is flagged as compressed, and the response has no encoding
  ///   or the bytes do not decompress. `resource_exhausted` if the message would be larger than the limit.
  func message(of envelope: Envelope, maximumSize: Int) throws(ConnectError) -> ByteBuffer {
    guard envelope.flags & Envelope.compressedFlag != 0 else { return envelope.message }
    guard self.pool != nil else {
      throw ConnectError(
        code: .internalError,
        message: "received compressed message, but the response has no \(self.header)"
      )
    }
    return try self.decompress(envelope.message, maximumSize: maximumSize)
  }
}
