internal import NIOCore
internal import NIOHTTP2

/// Starts the pipeline of an HTTP/2 stream and writes RST_STREAM on request.
final class StreamResetHandler: ChannelOutboundHandler {
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  struct Reset: Sendable {
    var code: UInt32
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

extension Error {
  /// The code with which the client reset the stream, if that is what this error says.
  var resetCode: UInt32? {
    (self as? NIOHTTP2Errors.StreamClosed).map { UInt32($0.errorCode.networkCode) }
  }
}
