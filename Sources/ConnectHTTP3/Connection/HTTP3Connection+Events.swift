internal import Connect
internal import ConnectChannels
internal import Logging
internal import NIOCore

extension HTTP3Connection {
  /// Acts on the session's events, including those that this causes.
  func handleEvents() {
    guard !self.isHandlingEvents else { return }
    self.isHandlingEvents = true
    while !self.session.events.isEmpty {
      // Reported first: a handler that starts a stream when it hears of an end must not get this connection again.
      if self.session.goAwayID != nil { self.reportWillClose() }
      var events = ContiguousArray<HTTP3Event>()
      swap(&events, &self.handledEvents)
      swap(&events, &self.session.events)
      // Taken out one by one, from the end, so that none is copied.
      events.reverse()
      while let event = events.popLast() { self.handle(event) }
      swap(&events, &self.handledEvents)
    }
    self.isHandlingEvents = false
    if let shutDown = self.postponedShutDown {
      self.postponedShutDown = nil
      shutDown()
    }
  }

  private func handle(_ event: HTTP3Event) {
    switch event {
    case .early:
      self.becomeReady()
    case .established:
      // The peer may have broken the connection in the same datagram.
      if self.session.ending == nil { self.didEstablish() }
    case .ticket(let ticket):
      self.onTicket?(ticket)
    case .started(let stream):
      self.didStart(stream)
    case .head(let stream, let head):
      guard !self.looksForAltSvc || self.look(at: head, of: stream) else { return }
      if head.status == 425, stream.isEarly {
        self.fail(stream, .tooEarly)
        self.session.reset(stream, errorCode: .requestCancelled)
        return
      }
      self.hasAnswered = true
      stream.handler?.streamDidReceive(head)
    case .bytes(let stream):
      let bytes = stream.takeInbox()
      if bytes.readableBytes > 0 { stream.handler?.streamDidReceive(bytes) }
    case .end(let stream, let trailers):
      guard let handler = stream.detach() else { return }
      self.session.settleRequest(of: stream)
      handler.streamDidEnd(trailers: trailers)
    case .failed(let stream, let failure, let errorCode):
      self.fail(stream, failure)
      self.session.reset(stream, errorCode: errorCode)
      if stream.id < 0 { self.reportClosedStream() }
    case .reset(let stream, let errorCode):
      self.fail(stream, HTTPStreamFailure(resetting: stream, errorCode))
      self.session.reset(stream, errorCode: .requestCancelled)
    case .closed(let stream):
      // A response without its end was reported before, in whatever way the stream was closed.
      self.fail(stream, .malformed(stream))
      self.updateKeepalive()
      self.reportRoom()
      self.reportClosedStream()
    case .drained(let stream):
      self.didDrain(stream)
    case .room:
      self.reportRoom()
    case .goAway:
      self.didReceiveGoAway()
    }
  }

  private func becomeReady() {
    guard self.state == .connecting else { return }
    self.state = .active
    self.onReady.take()?(.success(()))
    self.reportRoom()
  }

  private func didEstablish() {
    self.isEstablished = true
    self.handshakeTimer.take()?.cancel()
    self.becomeReady()
    self.session.releaseEarly()
    if let roundTrip = self.session.roundTrip {
      self.delegate?.connection(self, roundTrip: .nanoseconds(Int64(clamping: roundTrip)))
    }
    self.delegate?.connectionIsProven(self)
    self.updateKeepalive()
    self.reportRoom()
  }

  private func didStart(_ stream: HTTP3Stream) {
    self.updateKeepalive()
    guard let handler = stream.handler, !stream.hasStarted else { return }
    stream.hasStarted = true
    let info = HTTPConnectionInfo(
      version: .http3,
      isReused: self.hasServedStream,
      remoteAddress: self.remoteText,
      setup: self.hasServedStream ? nil : self.setup,
      isEarlyData: stream.isEarly
    )
    self.hasServedStream = true
    handler.streamDidStart(on: info)
  }

  /// Reads what a response says about HTTP/3 at the origin.
  ///
  /// - Returns: False if the server does not serve the origin here (421, RFC 9110, section 15.5.20). Calls then go back
  ///   to where HTTP/3 was found (RFC 7838, section 6).
  private func look(at head: HTTPResponseHead, of stream: HTTP3Stream) -> Bool {
    if head.headers.contains("alt-svc") {
      self.delegate?.connection(self, didReceiveAltSvc: head.headers)
    }
    guard head.status == 421 else {
      if !self.hasAnswered { self.delegate?.connectionIsFit(self) }
      return true
    }
    self.reportUnfit("421 Misdirected Request")
    self.reportWillClose()
    self.fail(stream, .misdirected)
    self.session.reset(stream, errorCode: .requestCancelled)
    return false
  }

  func fail(_ stream: HTTP3Stream, _ failure: HTTPStreamFailure) {
    guard let handler = stream.detach() else { return }
    handler.streamDidFail(failure)
  }

  private func reportClosedStream() {
    guard self.state != .closed else { return }
    self.delegate?.connectionDidCloseStream(self)
  }

  func reportUnfit(_ reason: String) {
    self.onUnfit?()
    self.delegate?.connectionIsUnfit(self, reason)
  }

  func reportWillClose() {
    guard !self.isDraining, self.state == .active else { return }
    self.isDraining = true
    self.delegate?.connectionWillClose(self)
  }

  /// QUIC counts all streams that there ever were. The streams that can be open at the same time are those that are
  /// open and those that may still be opened.
  private func reportRoom() {
    let count = self.session.streams.count + self.session.streamRoom
    guard count != self.servedStreams, !self.isDraining, self.state == .active else { return }
    self.servedStreams = count
    self.delegate?.connection(self, canServe: count)
  }

  private func didDrain(_ stream: HTTP3Stream) {
    guard let handler = stream.handler, stream.request != .ending, !stream.outbound.isWaiting else { return }
    if self.channel.isWritable {
      handler.streamDidBecomeWritable()
    } else {
      self.blockedWriters.append(stream)
    }
  }

  func didBecomeWritable() {
    for stream in self.blockedWriters { self.session.events.append(.drained(stream)) }
    self.blockedWriters.removeAll(keepingCapacity: true)
  }

  private func didReceiveGoAway() {
    guard let id = self.session.goAwayID else { return }
    self.logger.debug("HTTP/3 server is going away", metadata: ["peer": "\(self.peer)"])
    self.reportWillClose()
    var failure = HTTPStreamFailure.goAway
    failure.keepsTransparentRetry = self.hasServed
    for stream in self.session.liveStreams where stream.id >= id || !stream.isHeaderSent {
      self.fail(stream, failure)
      self.session.reset(stream, errorCode: .requestCancelled)
    }
  }
}
