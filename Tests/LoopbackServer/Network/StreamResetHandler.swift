internal import NIOCore
internal import NIOHTTP2

/// Starts the pipeline of an HTTP/2 stream: writes RST_STREAM on request and tells of the client's.
final class StreamResetHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  /// Outbound, an order to reset the stream; inbound, the news that the client has done so.
  struct Reset: Sendable {
    /// An HTTP/2 error code.
    var code: UInt32
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .rstStream(let code) = self.unwrapInboundIn(data) {
      context.fireUserInboundEventTriggered(Reset(code: UInt32(code.networkCode)))
    }
    context.fireChannelRead(data)
  }

  func triggerUserOutboundEvent(
    context: ChannelHandlerContext,
    event: Any,
    promise: EventLoopPromise<Void>?
  ) {
    guard let reset = event as? Reset else {
      context.triggerUserOutboundEvent(event, promise: promise)
      return
    }
    let code = HTTP2ErrorCode(networkCode: Int(reset.code))
    context.writeAndFlush(self.wrapOutboundOut(.rstStream(code)), promise: promise)
  }
}
