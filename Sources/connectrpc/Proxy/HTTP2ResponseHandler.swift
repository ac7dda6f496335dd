import NIOCore
import NIOHPACK
import NIOHTTP2

/// Writes to an HTTP/2 stream what HTTP/1.1 cannot express: resets, and responses that are trailers alone.
final class HTTP2ResponseHandler: ChannelOutboundHandler {
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  /// An event that resets the stream, with an HTTP/2 error code.
  struct Reset: Sendable {
    var code: UInt32
  }

  /// Headers with a gRPC status. They are held back, since they probably are the end of the stream, too ("Trailers-Only"):
  /// gRPC's clients accept a status in the headers of no other response.
  private var statusHeaders: HTTP2Frame.FramePayload.Headers?

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let payload = self.unwrapOutboundIn(data)
    if case .headers(let headers) = payload, !headers.endStream, promise == nil, self.statusHeaders == nil,
      headers.headers.contains(name: "grpc-status")
    {
      self.statusHeaders = headers
      return
    }
    if case .data(let data) = payload, data.endStream, data.data.readableBytes == 0,
      var headers = self.statusHeaders.take()
    {
      headers.endStream = true
      return context.write(self.wrapOutboundOut(.headers(headers)), promise: promise)
    }
    self.writeStatusHeaders(context)
    context.write(data, promise: promise)
  }

  func triggerUserOutboundEvent(
    context: ChannelHandlerContext,
    event: Any,
    promise: EventLoopPromise<Void>?
  ) {
    guard let reset = event as? Reset else {
      return context.triggerUserOutboundEvent(event, promise: promise)
    }
    self.writeStatusHeaders(context)
    let code = HTTP2ErrorCode(networkCode: Int(reset.code))
    context.writeAndFlush(self.wrapOutboundOut(.rstStream(code)), promise: promise)
  }

  private func writeStatusHeaders(_ context: ChannelHandlerContext) {
    guard let headers = self.statusHeaders.take() else { return }
    context.write(self.wrapOutboundOut(.headers(headers)), promise: nil)
  }
}
