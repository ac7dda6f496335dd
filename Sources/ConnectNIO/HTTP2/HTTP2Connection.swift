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
/// Handlers and the delegate are called in `handleEvents()` and in `shutDown(_:sending:)` only. Both run as the event
/// loop's own work, never below a function that a call or the pool has called.
///
/// Confined to the channel's event loop.
final class HTTP2Connection: StreamConnection {
  enum State {
    /// In no pipeline, or the channel is not connected yet.
    case idle
    case active
    case closed
  }

  /// A flush writes to the channel whenever it has gathered about this many bytes.
  static let writeSize = 128 << 10
  /// With this many answers waiting for a channel that is not writable, nothing more is read. libnghttp2 gives up the
  /// connection at 1,000.
  static let heldAnswerLimit = 256

  let session: HTTP2Session
  let configuration: HTTP2Configuration
  let eventLoop: any EventLoop
  let channel: any Channel
  let logger: Logger
  /// The origin, for errors.
  let peer: String

  /// Held until the connection is closed.
  var delegate: (any StreamConnectionDelegate)?
  var context: ChannelHandlerContext?
  var state = State.idle

  /// Between `channelRead` and `channelReadComplete`, which flushes.
  var isReading = false
  var isFlushScheduled = false
  var isFlushing = false
  var isHandlingEvents = false
  var handledEvents: ContiguousArray<HTTP2Event> = []
  /// Streams whose handlers may write more as soon as the channel is writable.
  var blockedWriters: [HTTP2Stream] = []
  /// Whether a read was asked for and held back.
  var isReadHeld = false

  /// The number last reported with `canServe`.
  var servedStreams: Int?
  /// What the peer has sent before its settings, or the beginning of that.
  var firstBytes = ByteBuffer()
  /// No more streams: the pool has said so, or it was told so.
  var isDraining = false
  /// What to end the connection with in the next flush.
  var requestedClose: ConnectError?
  /// A shutdown that was asked for while events were being handled, and waits until they all have been.
  var postponedShutDown: (() -> Void)?
  /// The last error of the channel, which explains why it is closed afterwards.
  var channelError: (any Error)?
  var hasServedStream = false
  /// Whether any response has begun.
  var hasAnswered = false
  /// Whether the delegate wants to hear of `alt-svc` fields.
  var looksForAltSvc = false
  /// How long the steps to open this connection took.
  var setup: HTTPConnectionInfo.Setup?
  lazy var remoteAddress: String? = self.channel.remoteAddress.flatMap { RemoteAddress.text($0) }

  /// How often something was received.
  var readCount = 0
  var peerTest: HTTP2PeerTest
  /// When the ping was sent that has no answer yet.
  var pingTime: NIODeadline?
  /// Nil without keepalive. Each call reads it, so exclusivity is not checked at run time.
  @exclusivity(unchecked) var keepalive: HTTP2Keepalive?
  var keepaliveTask: Scheduled<Void>?
  /// The factor by which the connections to this server ping more slowly than configured.
  let keepalivePace: NIOLoopBoundBox<Int>?

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
    self.channel = channel
    self.eventLoop = channel.eventLoop
    self.configuration = configuration
    self.keepalivePace = keepalivePace
    self.peerTest = HTTP2PeerTest(configuration)
    self.delegate = delegate
    self.logger = logger
    self.peer = peer ?? "\(scheme)://\(authority)"
    self.session = HTTP2Session(configuration: configuration, scheme: scheme, authority: authority)
  }

  // MARK: StreamConnection

  var hasServed: Bool {
    // Nobody has heard yet of what came in the same read as GOAWAY.
    if self.hasAnswered || self.session.events.contains(where: \.isHead) { return true }
    guard let goAway = self.session.goAway, goAway.errorCode == .noError else { return false }
    return self.session.liveStreams.contains { $0.isHeaderSent && $0.id <= goAway.lastStreamID }
  }

  var renewalCount: Int? {
    guard let goAway = self.session.goAway, goAway.errorCode == .noError, goAway.lastStreamID < Int32.max
    else {
      return nil
    }
    return (Int(goAway.lastStreamID) + 1) / 2
  }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.eventLoop.assertInEventLoop()
    let stream = HTTP2Stream(handler: handler, connection: self)
    stream.readCountAtStart = self.readCount
    if self.state != .closed, self.requestedClose == nil, !self.isDraining {
      self.session.submit(request, for: stream)
      if let keepalive = self.keepalive, keepalive.isResting { self.wakeKeepalive() }
      if self.peerTest.isResting { self.watchForSilence() }
    } else {
      self.session.events.append(.failed(stream, .noConnection))
    }
    self.scheduleFlush()
    return stream
  }

  func drain() {
    self.isDraining = true
    self.scheduleFlush()
  }

  func close(failing error: ConnectError) {
    guard self.requestedClose == nil else { return }
    self.requestedClose = error
    self.scheduleFlush()
  }
}

// MARK: - Writing

extension HTTP2Connection {
  /// Schedules the writing of everything that was submitted in this tick. It is written at the end of the current read,
  /// or else once the event loop gets to it.
  func scheduleFlush() {
    guard !self.isReading, !self.isFlushScheduled else { return }
    self.isFlushScheduled = true
    self.eventLoop.assumeIsolated().execute {
      self.isFlushScheduled = false
      self.flush()
    }
  }

  /// Writes what the session wants to send as far as the channel takes it, then acts on what came of it.
  func flush() {
    guard !self.isFlushing else { return }
    if let error = self.requestedClose {
      self.shutDown(error, sending: .noError)
      return
    }
    if self.state == .active { self.writeOutput() }
    self.handleEvents()
    self.closeIfFinished()
    if self.state == .active, self.channel.isWritable, self.session.wantsWrite { self.scheduleFlush() }
  }

  private func writeOutput() {
    self.isFlushing = true
    defer { self.isFlushing = false }
    // A session that ends itself may do so at once: else its streams would wait for a peer that does not read.
    var isLast = self.session.isTerminating
    while self.state == .active, self.channel.isWritable || isLast {
      isLast = false
      guard self.session.fillOutput(limit: Self.writeSize) else {
        self.requestedClose = self.brokenSessionError
        self.scheduleFlush()
        return
      }
      let isMoreWaiting = self.session.output.byteCount >= Self.writeSize
      self.passOutputToChannel()
      guard isMoreWaiting else { break }
    }
    if self.isReadHeld, self.state == .active, !self.isReadToBeHeld {
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
  }

  /// Whether the peer makes us queue answers (to PING and SETTINGS) that it does not read.
  ///
  /// Frames of the streams themselves do not count: up to HEADERS, WINDOW_UPDATE and RST_STREAM each. If reading
  /// stopped for them, a peer that is blocked writing could never read them.
  var isReadToBeHeld: Bool {
    !self.channel.isWritable
      && self.session.queuedFrames > Self.heldAnswerLimit + 3 * self.session.liveCount
  }
}

// MARK: - Events

extension HTTP2Connection {
  /// Acts on the session's events, including those that this causes.
  func handleEvents() {
    guard !self.isHandlingEvents else { return }
    self.isHandlingEvents = true
    while !self.session.events.isEmpty {
      // Reported first: a handler that starts a stream when it hears of an end must not get this connection again.
      if self.session.goAway != nil, self.servedStreams != nil { self.reportWillClose() }
      var events = ContiguousArray<HTTP2Event>()
      swap(&events, &self.handledEvents)
      swap(&events, &self.session.events)
      // Taken out one by one, from the end, so that none is copied.
      events.reverse()
      while !events.isEmpty { self.handle(events.removeLast()) }
      swap(&events, &self.handledEvents)
    }
    self.isHandlingEvents = false
    if let shutDown = self.postponedShutDown {
      self.postponedShutDown = nil
      shutDown()
    }
  }

  private func handle(_ event: consuming HTTP2Event) {
    switch consume event {
    case .started(let stream):
      guard let handler = stream.handler else { return }
      let info = HTTPConnectionInfo(
        version: .http2,
        isReused: self.hasServedStream,
        remoteAddress: self.remoteAddress,
        setup: self.hasServedStream ? nil : self.setup
      )
      self.hasServedStream = true
      handler.streamDidStart(on: info)
      if !self.session.takesRequests { self.reportWillClose() }
    case .head(let stream, let head):
      self.hasAnswered = true
      self.peerTest.isSpent = false
      if self.looksForAltSvc, head.headers.contains("alt-svc") {
        self.delegate?.connection(self, didReceiveAltSvc: head.headers)
      }
      stream.handler?.streamDidReceive(head)
    case .bytes(let stream, let bytes):
      self.peerTest.isSpent = false
      stream.handler?.streamDidReceive(bytes)
    case .end(let stream, let trailers):
      guard let handler = stream.detach() else { return }
      self.session.settleRequest(of: stream)
      handler.streamDidEnd(trailers: trailers)
    case .failed(let stream, let failure):
      self.fail(stream, failure)
      self.session.reset(stream, errorCode: .cancel)
      if stream.id == 0 { self.reportClosedStream() }
    case .closed(let stream, let errorCode):
      if stream.handler != nil {
        var failure = HTTPStreamFailure(closing: stream, errorCode: errorCode, goAway: self.session.goAway)
        if failure.isUnprocessed, !stream.isResetByPeer { failure.keepsTransparentRetry = self.hasServed }
        self.fail(stream, failure)
      }
      self.reportClosedStream()
    case .drained(let stream):
      self.didDrain(stream)
    case .settings:
      self.didReceiveSettings()
    case .goAway:
      self.didReceiveGoAway()
    case .pong:
      self.didReceivePong()
    }
  }

  func fail(_ stream: HTTP2Stream, _ failure: HTTPStreamFailure) {
    guard let handler = stream.detach() else { return }
    handler.streamDidFail(failure)
  }

  private func reportClosedStream() {
    guard self.state != .closed else { return }
    self.delegate?.connectionDidCloseStream(self)
  }

  private func reportWillClose() {
    guard !self.isDraining, self.state != .closed else { return }
    self.isDraining = true
    self.delegate?.connectionWillClose(self)
  }

  private func didDrain(_ stream: HTTP2Stream) {
    guard let handler = stream.handler, stream.request == .open, stream.outbound.isEmpty else { return }
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

  private func didReceiveSettings() {
    let count = self.session.maxConcurrentStreams
    guard count != self.servedStreams, !self.isDraining, self.state == .active else { return }
    // The server may have broken the protocol, or gone away, in the same read: such a connection is no use to calls.
    guard self.session.takesRequests, self.session.fatalError == nil else { return }
    self.servedStreams = count
    self.firstBytes = ByteBuffer()
    self.delegate?.connection(self, canServe: count)
  }

  private func didReceiveGoAway() {
    guard let goAway = self.session.goAway else { return }
    self.logger.debug("HTTP/2 server is going away", metadata: ["reason": "\(goAway)"])
    self.slowDownKeepalive(after: goAway)
    self.reportWillClose()
    // libnghttp2 has closed the streams that were sent and are too late, and keeps those that wait.
    var failure = HTTPStreamFailure.noConnection
    failure.keepsTransparentRetry = self.hasServed
    for stream in self.session.liveStreams where !stream.isHeaderSent {
      self.fail(stream, failure)
      self.session.reset(stream, errorCode: .cancel)
    }
  }
}
