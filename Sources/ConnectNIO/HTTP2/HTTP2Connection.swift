internal import Connect
internal import ConnectChannels
internal import Logging
internal import NIOCore

/// One HTTP/2 connection to an origin: a channel handler around an ``HTTP2Session``.
///
/// It is put at the end of a pipeline that carries the bytes of HTTP/2. This is after TLS has agreed on `h2`, or
/// directly on a cleartext socket to a server that is known to speak HTTP/2. From then on it closes the channel by
/// itself.
///
/// ```
/// read:   channelRead -> session.receive -> events -> handlers, delegate
/// write:  calls change the session's queues -> one flush per tick -> channel -> events
/// ```
///
/// Confined to the channel's event loop.
final class HTTP2Connection: MultiplexedConnection {
  /// A flush writes to the channel whenever it has gathered this many bytes, which the last frame (16 KiB by default) may
  /// exceed. NIO's TLS handler keeps a buffer as large as the largest write: with this, 64 KiB.
  private let writeSize: Int
  /// With this many answers waiting for a channel that is not writable, nothing more is read. libnghttp2 gives up the
  /// connection at 1,000.
  static let heldAnswerLimit = 256

  let session: HTTP2Session
  let state: ConnectionState
  let peerWatch: HTTP2PeerWatch
  private var farewell = HTTP2Farewell()
  private var closeReasons: HTTP2CloseReasons
  var context: ChannelHandlerContext?

  private var handledEvents: ContiguousArray<HTTP2Event> = []
  /// Streams whose handlers may write more as soon as the channel is writable.
  private var blockedWriters: [HTTP2Stream] = []
  /// Whether a read was asked for and held back.
  private(set) var isReadHeld = false

  /// - Parameters:
  ///   - channel: The channel that the handler is going to be added to.
  ///   - scheme: The value of `:scheme`, `http` or `https`.
  ///   - authority: The value of `:authority`.
  ///   - peer: The peer's name in errors; scheme and authority if it is nil.
  init(
    channel: any Channel,
    scheme: String,
    authority: String,
    peer: String? = nil,
    configuration: HTTP2Configuration = .defaults,
    keepalivePace: NIOLoopBoundBox<Int>? = nil,
    delegate: (any StreamConnectionDelegate)?,
    logger: Logger
  ) {
    self.session = HTTP2Session(configuration: configuration, scheme: scheme, authority: authority)
    self.writeSize = scheme == "https" ? 44 << 10 : 128 << 10
    self.state = ConnectionState(
      channel: channel,
      version: .http2,
      peer: peer ?? "\(scheme)://\(authority)",
      delegate: delegate,
      logger: logger
    )
    self.peerWatch = HTTP2PeerWatch(
      configuration,
      keepalivePace: keepalivePace,
      eventLoop: channel.eventLoop
    )
    self.closeReasons = HTTP2CloseReasons(self.state, self.session)
  }

  // MARK: StreamConnection

  var hasServed: Bool {
    // Nobody has heard yet of what came in the same read as GOAWAY.
    if self.state.hasAnswered || self.session.events.contains(where: \.isHead) { return true }
    guard let goAway = self.session.goAway, goAway.errorCode == .noError else { return false }
    return self.session.streams.all.contains { $0.isHeaderSent && $0.id <= goAway.lastStreamID }
  }

  var renewalCount: Int? {
    guard let goAway = self.session.goAway, goAway.errorCode == .noError, goAway.lastStreamID < Int32.max
    else {
      return nil
    }
    return (Int(goAway.lastStreamID) + 1) / 2
  }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.state.eventLoop.assertInEventLoop()
    let stream = HTTP2Stream(handler: handler, connection: self)
    stream.readCountAtStart = self.peerWatch.readCount
    if self.state.phase != .closed, self.state.requestedClose == nil, !self.state.isDraining {
      self.session.submit(request, for: stream)
      self.peerWatch.streamWillStart()
    } else {
      self.session.events.append(.failed(stream, .noConnection))
    }
    self.scheduleFlush()
    return stream
  }
}

// MARK: - Writing

extension HTTP2Connection {
  func flush() {
    guard !self.state.isFlushing else { return }
    if let error = self.state.requestedClose {
      self.shutDown(error, sending: .noError)
      return
    }
    if self.state.phase == .active { self.writeOutput() }
    self.handleEvents()
    self.closeIfFinished()
    if self.state.phase == .active, self.state.channel.isWritable, self.session.wantsWrite {
      self.scheduleFlush()
    }
  }

  private func writeOutput() {
    self.state.isFlushing = true
    defer { self.state.isFlushing = false }
    // A session that ends itself may do so at once: else its streams would wait for a peer that does not read.
    var isLast = self.session.isTerminating
    while self.state.phase == .active, self.state.channel.isWritable || isLast {
      isLast = false
      guard self.session.fillOutput(limit: self.writeSize) else {
        self.state.requestedClose = self.closeReasons.brokenSession
        self.scheduleFlush()
        return
      }
      let isMoreWaiting = self.session.output.byteCount >= self.writeSize
      self.passOutputToChannel()
      guard isMoreWaiting else { break }
    }
    if self.isReadHeld, self.state.phase == .active, !self.isReadToBeHeld {
      self.isReadHeld = false
      self.context?.read()
    }
  }

  func passOutputToChannel() {
    guard self.session.output.byteCount > 0, let context = self.context else { return }
    let (pieces, last) = self.session.output.takeAll()
    for piece in pieces { context.write(self.wrapOutboundOut(piece), promise: nil) }
    if last.readableBytes > 0 { context.write(self.wrapOutboundOut(last), promise: nil) }
    context.flush()
    self.session.output.giveBack(consume pieces, consume last)
  }

  /// Whether the peer makes us queue answers (to PING and SETTINGS) that it does not read.
  ///
  /// Frames of the streams themselves do not count: up to HEADERS, WINDOW_UPDATE and RST_STREAM each. If reading
  /// stopped for them, a peer that is blocked writing could never read them.
  var isReadToBeHeld: Bool {
    !self.state.channel.isWritable
      && (self.session.handle?.queuedFrames ?? 0) > Self.heldAnswerLimit + 3 * self.session.streams.count
  }
}

// MARK: - Events

extension HTTP2Connection {
  /// Acts on the session's events, including those that this causes.
  func handleEvents() {
    guard !self.state.isHandlingEvents else { return }
    self.state.isHandlingEvents = true
    while !self.session.events.isEmpty {
      // Reported first: a handler that starts a stream when it hears of an end must not get this connection again.
      if self.session.goAway != nil, self.state.servedStreams != nil { self.state.reportWillClose(self) }
      var events = ContiguousArray<HTTP2Event>()
      swap(&events, &self.handledEvents)
      swap(&events, &self.session.events)
      // Taken out one by one, from the end, so that none is copied.
      events.reverse()
      while !events.isEmpty { self.handle(events.removeLast()) }
      swap(&events, &self.handledEvents)
    }
    self.state.didHandleEvents()
  }

  private func handle(_ event: consuming HTTP2Event) {
    switch consume event {
    case .started(let stream):
      guard let handler = stream.handler else { return }
      handler.streamDidStart(on: self.state.facts.infoForNextStream())
      if !self.session.takesRequests { self.state.reportWillClose(self) }
    case .head(let stream, let head):
      self.state.hasAnswered = true
      self.peerWatch.didReceiveResponse()
      if self.state.looksForAltSvc, head.headers.contains("alt-svc") {
        self.state.delegate?.connection(self, didReceiveAltSvc: head.headers)
      }
      stream.handler?.streamDidReceive(head)
    case .bytes(let stream, let bytes):
      self.peerWatch.didReceiveResponse()
      stream.handler?.streamDidReceive(bytes)
    case .end(let stream, let trailers):
      guard let handler = stream.detach() else { return }
      self.session.settleRequest(of: stream)
      handler.streamDidEnd(trailers: trailers)
    case .failed(let stream, let failure):
      stream.detach()?.streamDidFail(failure)
      self.session.reset(stream, errorCode: .cancel)
      if stream.id == 0 { self.state.reportClosedStream(of: self) }
    case .closed(let stream, let errorCode):
      if stream.handler != nil {
        var failure = HTTPStreamFailure(closing: stream, errorCode: errorCode, goAway: self.session.goAway)
        if failure.isUnprocessed, !stream.isResetByPeer { failure.keepsTransparentRetry = self.hasServed }
        stream.detach()?.streamDidFail(failure)
      }
      self.state.reportClosedStream(of: self)
    case .drained(let stream):
      self.didDrain(stream)
    case .settings:
      self.didReceiveSettings()
    case .goAway:
      self.didReceiveGoAway()
    case .pong:
      self.peerWatch.didReceivePong()
    }
  }

  private func didDrain(_ stream: HTTP2Stream) {
    guard let handler = stream.handler, stream.request == .open, stream.outbound.isEmpty else { return }
    if self.state.channel.isWritable {
      handler.streamDidBecomeWritable()
    } else {
      self.blockedWriters.append(stream)
    }
  }

  func didBecomeWritable() {
    for stream in self.blockedWriters { self.session.events.append(.drained(stream)) }
    self.blockedWriters.removeAll(keepingCapacity: true)
  }

  private func didReceiveSettings() {
    // The server may have broken the protocol, or gone away, in the same read: such a connection is no use to calls.
    guard self.session.takesRequests, self.session.failure == nil else { return }
    self.state.report(self, canServe: self.session.handle?.maxConcurrentStreams ?? 0)
    if self.state.servedStreams != nil { self.closeReasons.didReceiveSettings() }
  }

  private func didReceiveGoAway() {
    guard let goAway = self.session.goAway else { return }
    self.state.logger.debug("HTTP/2 server is going away", metadata: ["reason": "\(goAway)"])
    self.peerWatch.slowDown(after: goAway)
    self.farewell.begin(for: self, after: goAway)
    self.state.reportWillClose(self)
    // libnghttp2 has closed the streams that were sent and are too late, and keeps those that wait.
    var failure = HTTPStreamFailure.noConnection
    failure.keepsTransparentRetry = self.hasServed
    for stream in self.session.streams.all where !stream.isHeaderSent {
      stream.detach()?.streamDidFail(failure)
      self.session.reset(stream, errorCode: .cancel)
    }
  }
}

// MARK: - The end

extension HTTP2Connection {
  /// Closes the connection if nothing is left for it to do.
  private func closeIfFinished() {
    guard self.state.phase != .closed, !self.state.isHandlingEvents else { return }
    if self.state.isDraining, self.session.streams.count == 0 {
      self.shutDown(self.closeReasons.goAway, sending: .noError)
    } else if self.state.phase == .active, self.session.handle?.wantsRead != true, !self.session.wantsWrite {
      self.shutDown(self.closeReasons.finishedSession, sending: nil)
    }
  }

  func shutDownWithChannel() { self.shutDown(self.closeReasons.lostConnection, sending: nil) }

  /// Ends the connection: says goodbye with `errorCode`, if the channel still works, fails the open streams, and
  /// tells the delegate.
  ///
  /// - Parameter error: Nil if everything was in order.
  func shutDown(_ error: ConnectError?, sending errorCode: HTTP2ErrorCode?) {
    guard !self.state.postpones({ self.shutDown(error, sending: errorCode) }) else { return }
    // Events that wait may complete streams; what comes of them must not be lost to the failure below.
    if !self.state.isFlushing { self.handleEvents() }
    guard self.state.phase != .closed else { return }

    let isChannelUsable = self.state.phase == .active
    self.peerWatch.stop()
    self.blockedWriters = []
    let streams = self.session.streams.all
    let (delegate, reason) = self.state.close(self, error, hasStreams: !streams.isEmpty)
    if isChannelUsable, let errorCode { self.sayGoodbye(errorCode) }
    for stream in streams.reversed() {
      let error = self.closeReasons.isInnocent(stream, of: reason) ? .brokenElsewhere(reason) : reason
      stream.detach()?.streamDidFail(HTTPStreamFailure(error: error, isUnprocessed: !stream.isHeaderSent))
      delegate?.connectionDidCloseStream(self)
    }
    self.session.invalidate()
    self.handleEvents()
    self.state.channel.close(promise: nil)
    delegate?.connectionDidClose(self, error: error)
  }

  private func sayGoodbye(_ errorCode: HTTP2ErrorCode) {
    self.state.isFlushing = true
    defer { self.state.isFlushing = false }
    self.session.handle?.terminate(errorCode)
    // Nothing but the GOAWAY and what precedes it is left, so the channel may take it writable or not.
    if self.session.fillOutput(limit: self.writeSize) { self.passOutputToChannel() }
  }
}

// MARK: - The channel

extension HTTP2Connection: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = Never
  typealias OutboundIn = Never
  typealias OutboundOut = ByteBuffer

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if context.channel.isActive { self.start() }
  }

  func channelActive(context: ChannelHandlerContext) {
    self.start()
    context.fireChannelActive()
  }

  private func start() {
    guard self.state.phase == .idle else { return }
    self.state.phase = .active
    self.scheduleFlush()
    self.peerWatch.start(for: self)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard self.state.phase == .active else { return }
    self.state.isReading = true
    let bytes = self.unwrapInboundIn(data)
    if self.state.servedStreams == nil, let error = self.closeReasons.foreignAnswer(continuedBy: bytes) {
      self.shutDown(error, sending: nil)
      return
    }
    self.peerWatch.willRead()
    let isIntact = self.session.receive(bytes)
    self.handleEvents()
    self.peerWatch.didRead()
    if !isIntact { self.shutDown(self.closeReasons.brokenSession, sending: nil) }
  }

  func read(context: ChannelHandlerContext) {
    if self.state.phase == .active, self.isReadToBeHeld {
      self.isReadHeld = true
    } else {
      context.read()
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .inputClosed? = event as? NIOCore.ChannelEvent { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.state.channelError = error
    context.close(promise: nil)
  }
}
