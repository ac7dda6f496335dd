internal import NIOCore
internal import NIOHTTP2

/// Starts the pipeline of an HTTP/2 stream. Writes RST_STREAM on request, and reports resets by the client.
final class StreamResetHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  /// Outbound: a request to reset the stream. Inbound: the client has reset the stream.
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
