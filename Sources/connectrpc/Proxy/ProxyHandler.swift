import NIOCore
import NIOHTTP1

/// The last handler of an HTTP/1.1 connection or an HTTP/2 stream: makes a ``ProxiedCall`` of each request. On HTTP/1.1,
/// NIO's handler of pipelining delivers a request only when the previous response is over.
final class ProxyHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = Never
  typealias OutboundOut = HTTPServerResponsePart

  private let isHTTP2: Bool
  private let target: ProxyTarget
  private var call: ProxiedCall?
  private var owesRead = false

  init(isHTTP2: Bool, _ target: ProxyTarget) {
    self.isHTTP2 = isHTTP2
    self.target = target
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch self.unwrapInboundIn(data) {
    case .head(let head):
      let call = ProxiedCall(
        head,
        isHTTP2: self.isHTTP2,
        self.target,
        ProxyResponse(context, isHTTP2: self.isHTTP2, isKeepAlive: head.isKeepAlive)
      ) { self.releaseRead(context) }
      self.call = call
      // The client holds the body back until then (RFC 9110, section 10.1.1).
      if !self.isHTTP2,
        head.headers[canonicalForm: "expect"].contains(where: { $0.lowercased() == "100-continue" })
      {
        let head = HTTPResponseHead(version: head.version, status: .continue)
        context.writeAndFlush(self.wrapOutboundOut(.head(head)), promise: nil)
      }
      call.start()
    case .body(let bytes): self.call?.receive(bytes)
    case .end(let trailers): self.call?.finish(trailers)
    }
  }

  /// Stops reading while the client's data waits for the target.
  func read(context: ChannelHandlerContext) {
    if self.call?.isFull == true { self.owesRead = true } else { context.read() }
  }

  private func releaseRead(_ context: ChannelHandlerContext) {
    guard self.owesRead, self.call?.isFull != true else { return }
    self.owesRead = false
    context.read()
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.call?.cancel()
    self.call = nil
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.call?.cancel()
    context.close(promise: nil)
  }
}
