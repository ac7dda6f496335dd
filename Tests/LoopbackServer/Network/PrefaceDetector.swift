internal import NIOCore

/// Distinguishes HTTP/2 with prior knowledge from HTTP/1.1 by the connection's first bytes, then leaves the pipeline.
///
/// RFC 9113, section 3.4.
final class PrefaceDetector: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  private let configure: (RequestRecord.Version) throws -> Void
  private var received = ByteBuffer()
  private var isDone = false

  /// - Parameter configure: Adds the version's handlers behind this one.
  init(configure: @escaping (RequestRecord.Version) throws -> Void) {
    self.configure = configure
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !self.isDone else {
      context.fireChannelRead(data)
      return
    }
    var bytes = self.unwrapInboundIn(data)
    self.received.writeBuffer(&bytes)
    let start = self.received.readableBytesView.prefix(Self.preface.count)
    guard Self.preface.starts(with: start) else {
      self.finish(context, .http1)
      return
    }
    if start.count == Self.preface.count { self.finish(context, .http2) }
  }

  private func finish(_ context: ChannelHandlerContext, _ version: RequestRecord.Version) {
    self.isDone = true
    do {
      try self.configure(version)
      context.fireChannelRead(self.wrapInboundOut(self.received))
      context.fireChannelReadComplete()
      context.pipeline.syncOperations.removeHandler(self, promise: nil)
    } catch {
      context.close(promise: nil)
    }
  }
}
