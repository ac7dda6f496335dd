internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Logging
internal import NIOCore

/// One HTTP/3 connection to an origin: a channel handler around an ``HTTP3Session``, on a connected UDP socket.
///
/// ```
/// read:   channelRead -> session.receive -> events -> handlers, delegate
/// write:  calls change the session -> one flush per tick -> datagrams -> events
/// time:   one timer for all that libngtcp2 waits for
/// ```
///
/// Confined to the channel's event loop.
final class HTTP3Connection: MultiplexedConnection, HTTP3StreamOwner {
  /// A flush gives the channel about this many bytes at a time.
  static let writeSize = 64_000

  let session: HTTP3Session
  let state: ConnectionState
  let handshake: HTTP3Handshake
  let peerWatch: HTTP3PeerWatch
  private let socket: HTTP3Socket
  private let closeReasons: HTTP3CloseReasons

  /// Is told of a ticket for early data on the next connection.
  var onTicket: ((SessionTicket) -> Void)?
  /// Is told when the connection turns out to be of no use to later calls.
  var onUnfit: (() -> Void)?
  private var handledEvents: ContiguousArray<HTTP3Event> = []
  /// Streams whose handlers may write more as soon as the channel is writable.
  private var blockedWriters: [HTTP3Stream] = []

  private var timer = HTTP3Timer()

  /// - Parameter peer: The peer's name in errors.
  init(
    channel: any Channel,
    session: HTTP3Session,
    remoteAddress: SocketAddress,
    peer: String,
    keepalive: HTTP3Keepalive,
    logger: Logger
  ) {
    self.session = session
    self.state = ConnectionState(channel: channel, version: .http3, peer: peer, logger: logger)
    self.handshake = HTTP3Handshake(self.state)
    self.peerWatch = HTTP3PeerWatch(keepalive, session, self.handshake)
    self.socket = HTTP3Socket(self.state, to: remoteAddress)
    self.closeReasons = HTTP3CloseReasons(state: self.state, session: session, handshake: self.handshake)
    self.state.facts.remoteAddress = RemoteAddress.text(remoteAddress)
    self.peerWatch.connection = self
    self.handshake.connection = self
    self.handshake.follow(session.tls)
  }

  var context: ChannelHandlerContext? {
    get { self.socket.context }
    set { self.socket.context = newValue }
  }

  private var isOpen: Bool { self.state.phase == .active || self.state.phase == .connecting }

  /// The time as the session counts it.
  private var now: UInt64 { self.state.eventLoop.now.uptimeNanoseconds }

  // MARK: StreamConnection

  var hasServed: Bool {
    // Nobody has heard yet of what came in the same read as GOAWAY.
    if self.state.hasAnswered || self.session.http.events.contains(where: \.isHead) { return true }
    guard let id = self.session.http.goAwayID else { return false }
    return self.session.http.liveStreams.contains { $0.request.isHeaderSent && $0.id < id }
  }

  var renewalCount: Int? {
    // The first GOAWAY of two, which announces another one, has a very large identifier (RFC 9114, section 5.2).
    guard let id = self.session.http.goAwayID, id < 1 << 60 else { return nil }
    return Int(id / 4)
  }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.state.eventLoop.assertInEventLoop()
    let stream = HTTP3Stream(handler: handler, connection: self)
    stream.answerCountAtStart = self.peerWatch.answerCount
    if self.state.phase == .active, self.state.requestedClose == nil, !self.state.isDraining,
      self.session.ending == nil
    {
      self.session.http.submit(request, for: stream)
    } else {
      self.session.http.events.append(.failed(stream, .noConnection, .requestCancelled))
    }
    self.scheduleFlush()
    return stream
  }

  // MARK: HTTP3StreamOwner

  func callWasGivenUp(inSilenceSince answerCount: Int) {
    self.peerWatch.callWasGivenUp(inSilenceSince: answerCount)
  }
}

// MARK: - Writing

extension HTTP3Connection {
  func flush() {
    guard !self.state.isFlushing else { return }
    if let error = self.state.requestedClose {
      self.shutDown(error, sending: .noError)
      return
    }
    if self.isOpen { self.writeOutput() }
    self.handleEvents()
    self.closeIfFinished()
    if self.isOpen { self.updateTimer() }
  }

  private func writeOutput() {
    self.state.isFlushing = true
    defer { self.state.isFlushing = false }
    var isMore = true
    while isMore, self.state.channel.isWritable, self.session.ending == nil {
      isMore = self.session.fillOutput(limit: Self.writeSize, now: self.now)
      let isLast = !self.session.http.hasStreams
      guard self.socket.write(self.session.output.takeAll(isLast: isLast)) else { break }
      self.session.output.didFlush()
      self.peerWatch.didWrite()
    }
  }

  private func updateTimer() {
    let time = min(self.session.expiry ?? .max, self.peerWatch.giveUpTime ?? .max)
    self.timer.set(to: time == .max ? nil : time, on: self.state.eventLoop) { self.timerDidFire() }
  }

  private func timerDidFire() {
    self.timer.didFire()
    guard self.isOpen else { return }
    let now = self.now
    if let time = self.peerWatch.giveUpTime, time <= now { return self.peerWatch.giveUp() }
    if let expiry = self.session.expiry, expiry <= now { self.session.handleExpiry(now: now) }
    if self.session.ending != nil { self.endOfSession() } else { self.flush() }
  }
}

// MARK: - The end

extension HTTP3Connection {
  /// Closes the connection if nothing is left for it to do.
  private func closeIfFinished() {
    guard self.state.phase != .closed, !self.state.isHandlingEvents else { return }
    if self.session.ending != nil {
      self.endOfSession()
    } else if self.state.isDraining, !self.session.http.hasStreams {
      self.shutDown(nil, sending: .noError)
    }
  }

  /// The session has ended by itself or by the peer.
  private func endOfSession() {
    guard let ending = self.session.ending else { return }
    if ending == .idle, self.session.http.hasStreams {
      self.reportUnfit("nothing came until the idle timeout")
    }
    self.shutDown(self.closeReasons.error(of: ending), sending: .noError)
  }

  func shutDownWithChannel() { self.shutDown(self.closeReasons.lostChannel, sending: nil) }

  /// Ends the connection: says goodbye with `errorCode`, if the channel still works, fails the open streams, and tells the
  /// delegate.
  ///
  /// - Parameter error: Nil if everything was in order.
  func shutDown(_ error: ConnectError?, sending errorCode: HTTP3ErrorCode?) {
    guard !self.state.postpones({ self.shutDown(error, sending: errorCode) }) else { return }
    // Events that wait may complete streams; what comes of them must not be lost to the failure below.
    if !self.state.isFlushing { self.handleEvents() }
    guard self.state.phase != .closed else { return }

    let isChannelUsable = self.isOpen
    let wasReady = self.state.phase == .active
    let wasShakingHands = self.handshake.isGoingOn
    self.state.phase = .closed
    self.timer.cancel()
    self.handshake.stopTimer()
    self.blockedWriters = []
    let streams = self.session.http.liveStreams
    if let error, !streams.isEmpty, !self.state.hasAnswered, !wasShakingHands,
      self.state.requestedClose == nil
    {
      // Otherwise calls that would succeed over TCP might fail again and again over HTTP/3.
      self.reportUnfit(error.message ?? "it broke before the first response")
    }
    self.onUnfit = nil
    let (delegate, reason) = self.state.close(self, error, hasStreams: !streams.isEmpty)
    if isChannelUsable, let errorCode, let datagram = self.session.closingDatagram(errorCode, now: self.now) {
      self.socket.write(datagram)
      self.context?.flush()
    }
    for stream in streams {
      let isInnocent =
        !wasShakingHands && self.closeReasons.isInnocent(stream, among: streams.count, of: reason)
      // Early data may be processed twice.
      var failure = HTTPStreamFailure(
        error: isInnocent ? .brokenElsewhere(reason) : reason,
        isUnprocessed: wasShakingHands || !stream.request.isHeaderSent
      )
      failure.keepsTransparentRetry = wasShakingHands
      stream.detach()?.streamDidFail(failure)
      delegate?.connectionDidCloseStream(self)
    }
    self.session.invalidate()
    self.handleEvents()
    self.state.channel.close(promise: nil)
    if wasReady {
      delegate?.connectionDidClose(self, error: error)
    } else {
      self.handshake.onReady.take()?(.failure(reason))
    }
  }
}

// MARK: - The channel

extension HTTP3Connection {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>
  typealias OutboundOut = AddressedEnvelope<ByteBuffer>

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    guard self.state.phase == .idle else { return }
    self.state.phase = .connecting
    self.scheduleFlush()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard self.isOpen else { return }
    self.state.isReading = true
    let now = self.now
    var isFromPeer = false
    self.socket.didRead(self.unwrapInboundIn(data)) { datagram, ecn in
      if self.session.receive(datagram, ecn: ecn, now: now) { isFromPeer = true }
    }
    if isFromPeer { self.peerWatch.willHandleAnswer() }
    self.handleEvents()
    if isFromPeer { self.peerWatch.didHandleAnswer() }
    if self.session.ending != nil { self.endOfSession() }
  }

  /// Errors of a socket that stays open are told here, too: above all that nobody has the port (ICMP). A server that
  /// has left its port has lost its connections.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.state.channelError = error
    if error is IOError { self.shutDownWithChannel() }
  }
}

// MARK: - Events

extension HTTP3Connection {
  /// Acts on the session's events, including those that this causes.
  func handleEvents() {
    guard !self.state.isHandlingEvents else { return }
    self.state.isHandlingEvents = true
    while !self.session.http.events.isEmpty {
      // Reported first: a handler that starts a stream when it hears of an end must not get this connection again.
      if self.session.http.goAwayID != nil { self.state.reportWillClose(self) }
      var events = ContiguousArray<HTTP3Event>()
      swap(&events, &self.handledEvents)
      swap(&events, &self.session.http.events)
      // Taken out one by one, from the end, so that none is copied.
      events.reverse()
      while let event = events.popLast() { self.handle(event) }
      swap(&events, &self.handledEvents)
    }
    self.state.didHandleEvents()
  }

  private func handle(_ event: HTTP3Event) {
    switch event {
    case .early:
      if self.handshake.becomeReady() { self.reportRoom() }
    case .established:
      // The peer may have broken the connection in the same datagram.
      if self.session.ending == nil { self.didEstablish() }
    case .ticket(let ticket):
      self.onTicket?(ticket)
    case .started(let stream):
      self.peerWatch.updateKeepalive()
      guard let handler = stream.handler, !stream.hasStarted else { return }
      stream.hasStarted = true
      handler.streamDidStart(on: self.state.facts.infoForNextStream(isEarly: stream.request.isEarly))
    case .head(let stream, let head):
      guard !self.state.looksForAltSvc || self.look(at: head, of: stream) else { return }
      if head.status == 425, stream.request.isEarly {
        stream.detach()?.streamDidFail(.tooEarly)
        self.session.http.reset(stream, errorCode: .requestCancelled)
        return
      }
      self.state.hasAnswered = true
      stream.handler?.streamDidReceive(head)
    case .bytes(let stream):
      let bytes = stream.response.takeInbox()
      if bytes.readableBytes > 0 { stream.handler?.streamDidReceive(bytes) }
    case .end(let stream, let trailers):
      guard let handler = stream.detach() else { return }
      self.session.http.settleRequest(of: stream)
      handler.streamDidEnd(trailers: trailers)
    case .failed(let stream, let failure, let errorCode):
      stream.detach()?.streamDidFail(failure)
      self.session.http.reset(stream, errorCode: errorCode)
      if stream.id < 0 { self.state.reportClosedStream(of: self) }
    case .reset(let stream, let errorCode):
      stream.detach()?.streamDidFail(HTTPStreamFailure(resetting: stream, errorCode))
      self.session.http.reset(stream, errorCode: .requestCancelled)
    case .closed(let stream):
      // A response without its end was reported before, in whatever way the stream was closed.
      stream.detach()?.streamDidFail(.malformed(stream))
      self.peerWatch.updateKeepalive()
      self.reportRoom()
      self.state.reportClosedStream(of: self)
    case .drained(let stream):
      self.didDrain(stream)
    case .room:
      self.reportRoom()
    case .goAway:
      self.didReceiveGoAway()
    }
  }

  private func didEstablish() {
    if self.handshake.didComplete() { self.reportRoom() }
    self.session.http.releaseEarly()
    if let roundTrip = self.session.roundTrip {
      self.state.delegate?.connection(self, roundTrip: .nanoseconds(Int64(clamping: roundTrip)))
    }
    self.state.delegate?.connectionIsProven(self)
    self.peerWatch.updateKeepalive()
    self.reportRoom()
  }

  /// Reads what a response says about HTTP/3 at the origin.
  ///
  /// - Returns: False if the server does not serve the origin here (421, RFC 9110, section 15.5.20). Calls then go back
  ///   to where HTTP/3 was found (RFC 7838, section 6).
  private func look(at head: HTTPResponseHead, of stream: HTTP3Stream) -> Bool {
    if head.headers.contains("alt-svc") {
      self.state.delegate?.connection(self, didReceiveAltSvc: head.headers)
    }
    guard head.status == 421 else {
      if !self.state.hasAnswered { self.state.delegate?.connectionIsFit(self) }
      return true
    }
    self.reportUnfit("421 Misdirected Request")
    self.state.reportWillClose(self)
    stream.detach()?.streamDidFail(.misdirected)
    self.session.http.reset(stream, errorCode: .requestCancelled)
    return false
  }

  func reportUnfit(_ reason: String) {
    self.onUnfit?()
    self.state.delegate?.connectionIsUnfit(self, reason)
  }

  /// QUIC counts all streams that there ever were. The streams that can be open at the same time are those that are
  /// open and those that may still be opened.
  private func reportRoom() {
    self.state.report(self, canServe: self.session.http.streams.count + self.session.streamRoom)
  }

  private func didDrain(_ stream: HTTP3Stream) {
    guard let handler = stream.handler, stream.request.state != .ending, !stream.request.outbound.isWaiting
    else { return }
    if self.state.channel.isWritable {
      handler.streamDidBecomeWritable()
    } else {
      self.blockedWriters.append(stream)
    }
  }

  func didBecomeWritable() {
    for stream in self.blockedWriters { self.session.http.events.append(.drained(stream)) }
    self.blockedWriters.removeAll(keepingCapacity: true)
  }

  private func didReceiveGoAway() {
    guard let id = self.session.http.goAwayID else { return }
    self.state.logger.debug("HTTP/3 server is going away", metadata: ["peer": "\(self.state.peer)"])
    self.state.reportWillClose(self)
    var failure = HTTPStreamFailure.goAway
    failure.keepsTransparentRetry = self.hasServed
    for stream in self.session.http.liveStreams where stream.id >= id || !stream.request.isHeaderSent {
      stream.detach()?.streamDidFail(failure)
      self.session.http.reset(stream, errorCode: .requestCancelled)
    }
  }
}
