import NIOCore

/// Detects by a connection's first bytes whether its client speaks HTTP/2 (RFC 9113, section 3.4), and leaves the pipeline.
final class PrefaceDetector: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private static let preface = ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

  private let addHandlers: (_ isHTTP2: Bool) throws -> Void
  private var bytes = ByteBuffer()
  private var isKnown = false

  /// - Parameter addHandlers: Adds the version's handlers after this handler.
  init(addHandlers: @escaping (_ isHTTP2: Bool) throws -> Void) {
    self.addHandlers = addHandlers
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !self.isKnown else { return context.fireChannelRead(data) }
    self.bytes.writeImmutableBuffer(self.unwrapInboundIn(data))
    let count = min(self.bytes.readableBytes, Self.preface.readableBytes)
    let isHTTP2 = self.bytes.readableBytesView.prefix(count) == Self.preface.readableBytesView.prefix(count)
    guard !isHTTP2 || count == Self.preface.readableBytes else { return }
    self.isKnown = true
    do {
      try self.addHandlers(isHTTP2)
    } catch {
      return context.close(promise: nil)
    }
    context.fireChannelRead(self.wrapInboundOut(self.bytes))
    context.fireChannelReadComplete()
    self.bytes = ByteBuffer()
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
  }
}
