internal import Connect
internal import ConnectChannels
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

extension HTTP1Connection {
  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if context.channel.isActive { self.becomeReady() }
  }

  func channelActive(context: ChannelHandlerContext) {
    self.becomeReady()
    context.fireChannelActive()
  }

  private func becomeReady() {
    guard case .new = self.occupancy else { return }
    self.occupancy = .idle
    self.state.delegate?.connection(self, canServe: 1)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
  }

  func read(context: ChannelHandlerContext) {
    if let stream = self.stream, !self.hasRoom(for: stream) {
      self.isReadWithheld = true
    } else {
      context.read()
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // Nothing is decoded in other states: see `HTTP1ReadGuard`.
    guard let stream = self.stream else { return }
    self.receive(self.unwrapInboundIn(data), for: stream)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    self.deliverEnd()
    context.fireChannelReadComplete()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    self.tellIfWritable()
    context.fireChannelWritabilityChanged()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if case NIOSSLError.uncleanShutdown = error {
      // What it means depends on what has arrived: see `deliverEnd` and `channelInactive`.
      self.sawUncleanShutdown = true
      return
    }
    self.deliverEnd(isLast: true)
    guard let stream = self.stream else {
      self.end(failing: .invalidHTTP1(self.state.peer, String(describing: error)))
      return
    }
    switch error {
    case HTTPParserError.invalidEOFState:
      self.end(failing: self.lost(stream, "the peer closed it"))
    case HTTPParserError.headerOverflow:
      let limit = self.configuration.maxHeaderListSize
      self.end(
        failing: ConnectError(
          code: .resourceExhausted,
          message: """
            the response's header list has more than \(HTTP1Messages.parserLimit(limit)) bytes, \
            the limit is \(limit)
            """,
          exception: error
        )
      )
    case is HTTPParserError, is NIOHTTPDecoderError:
      self.end(failing: .invalidHTTP1(self.state.peer, String(describing: error), error))
    default:
      var failure = self.lost(
        stream,
        TLSAlert.text(error),
        isExplained: !TLSAlert.names(in: error).isEmpty
      )
      failure.exception = error
      failure.isFinal = TLSAlert.isFinal(error)
      self.end(failing: failure)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.deliverEnd(isLast: true)
    if let stream = self.stream { self.end(failing: self.lost(stream, "the peer closed it")) }
    self.occupancy = .closed
    self.state.delegate?.connectionDidClose(self, error: nil)
    self.state.delegate = nil
    context.fireChannelInactive()
  }
}
