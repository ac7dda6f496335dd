internal import Connect
internal import NIOCore

extension HTTP3Connection: ChannelInboundHandler {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>
  typealias OutboundOut = AddressedEnvelope<ByteBuffer>

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    guard self.state == .idle else { return }
    self.state = .connecting
    self.scheduleFlush()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.shutDown(self.lostChannelError, sending: nil)
    self.context = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.shutDown(self.lostChannelError, sending: nil)
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard self.state == .active || self.state == .connecting else { return }
    self.isReading = true
    let envelope = self.unwrapInboundIn(data)
    let ecn = envelope.metadata?.ecnState.bits ?? 0
    let now = self.now
    self.readCount += 1
    UDPSocket.coalesceDatagrams(of: self.channel, afterReads: self.readCount)
    var isFromPeer = false
    envelope.data.withUnsafeReadableBytes { bytes in
      // The system may have put several datagrams into one buffer (generic receive offload).
      let size = max(envelope.metadata?.segmentSize ?? bytes.count, 1)
      var rest = bytes[...]
      while !rest.isEmpty {
        let datagram = UnsafeRawBufferPointer(rebasing: rest.prefix(size))
        if self.session.receive(datagram, ecn: ecn, now: now) { isFromPeer = true }
        rest = rest.dropFirst(size)
      }
    }
    if isFromPeer { self.answerCount += 1 }
    self.handleEvents()
    if isFromPeer, self.watch.isSuspect { self.peerHasAnswered() }
    if self.session.ending != nil { self.endOfSession() }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    self.isReading = false
    self.flush()
    context.fireChannelReadComplete()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable {
      self.didBecomeWritable()
      // Writing brings us here, too, in the middle of a flush.
      self.scheduleFlush()
    }
    context.fireChannelWritabilityChanged()
  }

  /// Errors of a socket that stays open are told here, too: above all that nobody has the port (ICMP). A server that
  /// has left its port has lost its connections.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.channelError = error
    if error is IOError { self.shutDown(self.lostChannelError, sending: nil) }
  }
}
