internal import Connect
internal import NIOCore

/// Stands between the socket (or TLS) and NIO's decoder, and lets through only bytes of a response that is due.
///
/// By itself, the decoder keeps half a response head that comes behind a response or while the connection is idle. It
/// would take this half for the beginning of the next request's answer. So heads are passed on without what follows
/// them. The connection then knows how long the response is before it sees more.
///
/// The decoder bounds only names and values of fields. This also bounds what stands beside them, informational responses,
/// and chunks.
final class HTTP1ReadGuard: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private static let blankLine: UInt32 = 0x0d0a_0d0a

  private let connection: HTTP1Connection
  /// The most bytes of a head, with everything that it has beside fields.
  private let headLimit: Int
  /// The last four bytes that were let through.
  private var tail: UInt32 = 0
  /// How many bytes of the current head were let through.
  private var headBytes = 0
  /// How many heads have come for the current response.
  private var headCount = 0
  /// Nil if the body that is being received is not chunked.
  private var chunks: HTTP1Chunks?

  init(_ connection: HTTP1Connection) {
    self.connection = connection
    self.headLimit = HTTP1Messages.headLimit(connection.configuration.maxHeaderListSize)
  }

  private var awaitsHead: Bool { self.connection.stream?.response.awaitsHead == true }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = self.unwrapInboundIn(data)
    while bytes.readableBytes > 0, self.connection.accepts(bytes) {
      let isHead = self.awaitsHead
      let (count, fault) = isHead ? self.advanceBehindHead(in: bytes) : self.advance(over: bytes)
      if count > 0, let piece = bytes.readSlice(length: count) {
        context.fireChannelRead(self.wrapInboundOut(piece))
        self.connection.stream?.response.didDecode(
          isHead: isHead,
          endsWithBlankLine: self.tail == Self.blankLine
        )
      }
      if let fault = fault ?? (isHead ? self.didPassHead() : nil) {
        self.connection.end(failing: fault)
        return
      }
    }
  }

  /// The number of bytes up to the end of a head, or of all of them if it does not end there.
  private func advanceBehindHead(in bytes: ByteBuffer) -> (count: Int, fault: ConnectError?) {
    let bytes = bytes.readableBytesView
    var count = bytes.count
    for (index, byte) in zip(bytes.indices, bytes) {
      self.tail = self.tail << 8 | UInt32(byte)
      if self.tail == Self.blankLine {
        count = index + 1 - bytes.startIndex
        break
      }
    }
    self.headBytes += count
    guard self.headBytes > self.headLimit else { return (count, nil) }
    return (
      0, .headTooLarge(self.headLimit, headerListLimit: self.connection.configuration.maxHeaderListSize)
    )
  }

  /// Prepares for what follows the head, if the decoder has seen all of it.
  private func didPassHead() -> ConnectError? {
    if self.awaitsHead {
      // Either there is more to come of the head, or it was an informational one.
      guard self.tail == Self.blankLine else { return nil }
      self.headBytes = 0
      self.headCount += 1
      return self.headCount > InformationalResponses.limit ? InformationalResponses.error : nil
    }
    self.headBytes = 0
    self.headCount = 0
    let isChunked = self.connection.stream?.response.receivesChunks == true
    self.chunks = isChunked ? HTTP1Chunks(maximumTrailers: self.headLimit) : nil
    return nil
  }

  /// The number of bytes of a body that may be decoded.
  private func advance(over bytes: ByteBuffer) -> (count: Int, fault: ConnectError?) {
    let (count, fault) = self.chunks?.advance(over: bytes) ?? (bytes.readableBytes, nil)
    for byte in bytes.readableBytesView.prefix(count).suffix(4) { self.tail = self.tail << 8 | UInt32(byte) }
    // The decoder has not found the end of the body where its framing ends.
    let disagreement = count == 0 ? "its body goes on behind the last chunk" : nil
    return (count, (fault ?? disagreement).map { .invalidHTTP1(self.connection.state.peer, $0) })
  }
}
