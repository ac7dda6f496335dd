internal import NIOCore

/// Stands between the socket (or TLS) and NIO's decoder, and lets through only bytes of a response that is due.
///
/// By itself, the decoder keeps half a response head that comes behind a response or while the connection is idle. It
/// would take this half for the beginning of the next request's answer. So heads are passed on without what follows
/// them. The connection then knows how long the response is before it sees more.
final class HTTP1ReadGuard: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private static let blankLine: UInt32 = 0x0d0a_0d0a

  private let connection: HTTP1Connection
  /// The last four bytes that were let through.
  private var tail: UInt32 = 0

  init(_ connection: HTTP1Connection) {
    self.connection = connection
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = self.unwrapInboundIn(data)
    while bytes.readableBytes > 0, self.connection.accepts(bytes) {
      let isHead = self.connection.awaitsHead
      let count = isHead ? self.advanceBehindHead(in: bytes) : self.advance(over: bytes)
      guard let piece = bytes.readSlice(length: count) else { return }
      context.fireChannelRead(self.wrapInboundOut(piece))
      self.connection.didDecode(isHead: isHead, endsWithBlankLine: self.tail == Self.blankLine)
    }
  }

  /// The number of bytes up to the end of a head, or of all of them if it does not end there.
  private func advanceBehindHead(in bytes: ByteBuffer) -> Int {
    let bytes = bytes.readableBytesView
    for (index, byte) in zip(bytes.indices, bytes) {
      self.tail = self.tail << 8 | UInt32(byte)
      if self.tail == Self.blankLine { return index + 1 - bytes.startIndex }
    }
    return bytes.count
  }

  private func advance(over bytes: ByteBuffer) -> Int {
    for byte in bytes.readableBytesView.suffix(4) { self.tail = self.tail << 8 | UInt32(byte) }
    return bytes.readableBytes
  }
}
