internal import Connect
internal import NIOCore

extension HTTP2Connection: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = Never
  typealias OutboundIn = Never
  typealias OutboundOut = ByteBuffer

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if context.channel.isActive { self.start() }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.shutDown(self.lostConnectionError, sending: nil)
    self.context = nil
  }

  func channelActive(context: ChannelHandlerContext) {
    self.start()
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.shutDown(self.lostConnectionError, sending: nil)
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard self.state == .active else { return }
    self.isReading = true
    let bytes = self.unwrapInboundIn(data)
    if self.servedStreams == nil, let error = self.foreignAnswer(continuedBy: bytes) {
      self.shutDown(error, sending: nil)
      return
    }
    if self.keepalive != nil { self.keepalive?.received(now: self.eventLoop.now) }
    self.readCount &+= 1
    let isIntact = self.session.receive(bytes)
    self.handleEvents()
    if self.peerTest.timer != nil { self.peerHasAnswered() }
    if !isIntact { self.shutDown(self.brokenSessionError, sending: nil) }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    self.isReading = false
    self.flush()
    context.fireChannelReadComplete()
  }

  func read(context: ChannelHandlerContext) {
    if self.state == .active, self.isReadToBeHeld {
      self.isReadHeld = true
    } else {
      context.read()
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable {
      self.didBecomeWritable()
      // Writing brings us here, too, in the middle of a flush.
      self.scheduleFlush()
    }
    context.fireChannelWritabilityChanged()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.channelError = error
    context.close(promise: nil)
  }

  private func start() {
    guard self.state == .idle else { return }
    self.state = .active
    self.scheduleFlush()
    self.startKeepalive()
  }
}
