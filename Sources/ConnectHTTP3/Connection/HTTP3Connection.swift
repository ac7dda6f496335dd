internal import Connect
internal import ConnectChannels
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
/// Handlers and the delegate are called in `handleEvents()` and in `shutDown(_:sending:)` only. Both run as the event
/// loop's own work, never below a function that a call or the pool has called.
///
/// Confined to the channel's event loop.
final class HTTP3Connection: StreamConnection, HTTP3StreamOwner {
  enum State {
    /// In no pipeline yet.
    case idle
    /// Before the end of the handshake, and without early data.
    case connecting
    /// Takes requests. With early data, it does so before the end of the handshake.
    case active
    case closed
  }

  /// A flush gives the channel about this many bytes at a time.
  static let writeSize = 64_000

  let session: HTTP3Session
  let care: HTTP3ConnectionCare
  let eventLoop: any EventLoop
  let channel: any Channel
  let remoteAddress: SocketAddress
  let logger: Logger
  /// The origin, for errors.
  let peer: String

  /// Is told once that the connection takes requests, or why it never will. After a failure, nobody hears of the connection
  /// any more.
  var onReady: ((Result<Void, ConnectError>) -> Void)?
  /// Is told of a ticket for early data on the next connection.
  var onTicket: ((SessionTicket) -> Void)?
  /// Is told when the connection turns out to be of no use to later calls.
  var onUnfit: (() -> Void)?
  /// Whether the handshake is complete.
  var isEstablished = false
  /// Ends a handshake that takes too long.
  var handshakeTimer: Scheduled<Void>?
  /// Held until the connection is closed.
  var delegate: (any StreamConnectionDelegate)?
  var context: ChannelHandlerContext?
  var state = State.idle

  /// Between `channelRead` and `channelReadComplete`, which flushes.
  var isReading = false
  var isFlushScheduled = false
  var isFlushing = false
  /// Whether the system was given many datagrams in one write.
  private var hasCutDatagrams = false
  /// How many probes of the path wait to be written.
  private var unsentProbes = 0
  var isHandlingEvents = false
  var handledEvents: ContiguousArray<HTTP3Event> = []
  /// Streams whose handlers may write more as soon as the channel is writable.
  var blockedWriters: [HTTP3Stream] = []

  /// The number last reported with `canServe`.
  var servedStreams: Int?
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
  let remoteText: String?

  /// How often the channel was read.
  var readCount = 0
  /// How often something was received that certainly comes from the peer.
  var answerCount = 0
  var timer = HTTP3Timer()
  var watch = HTTP3PeerWatch()

  /// - Parameter peer: The peer's name in errors.
  init(
    channel: any Channel,
    session: HTTP3Session,
    remoteAddress: SocketAddress,
    remoteText: String?,
    peer: String,
    care: HTTP3ConnectionCare,
    logger: Logger
  ) {
    self.channel = channel
    self.eventLoop = channel.eventLoop
    self.session = session
    self.remoteAddress = remoteAddress
    self.remoteText = remoteText
    self.peer = peer
    self.care = care
    self.logger = logger
  }

  var isShakingHands: Bool { self.state != .closed && !self.isEstablished }

  /// The time as the session counts it.
  var now: UInt64 { self.eventLoop.now.uptimeNanoseconds }

  // MARK: StreamConnection

  var hasServed: Bool {
    // Nobody has heard yet of what came in the same read as GOAWAY.
    if self.hasAnswered || self.session.events.contains(where: \.isHead) { return true }
    guard let id = self.session.goAwayID else { return false }
    return self.session.liveStreams.contains { $0.isHeaderSent && $0.id < id }
  }

  var renewalCount: Int? {
    // The first GOAWAY of two, which announces another one, has a very large identifier (RFC 9114, section 5.2).
    guard let id = self.session.goAwayID, id < 1 << 60 else { return nil }
    return Int(id / 4)
  }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.eventLoop.assertInEventLoop()
    let stream = HTTP3Stream(handler: handler, connection: self)
    stream.answerCountAtStart = self.answerCount
    if self.state == .active, self.requestedClose == nil, !self.isDraining {
      self.session.submit(request, for: stream)
    } else {
      self.session.events.append(.failed(stream, .noConnection, .requestCancelled))
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

  // MARK: HTTP3StreamOwner

  func requestDidChange(_ stream: HTTP3Stream) {
    self.session.requestBodyDidChange(stream)
    self.scheduleFlush()
  }

  func consume(_ count: Int, of stream: HTTP3Stream) {
    self.session.consume(count, of: stream)
    self.scheduleFlush()
  }

  func cancel(_ stream: HTTP3Stream) {
    if self.session.dropHeld(stream) {
      self.session.events.append(.closed(stream))
    } else {
      self.session.reset(stream, errorCode: .requestCancelled)
    }
    self.scheduleFlush()
  }
}

// MARK: - Writing

extension HTTP3Connection {
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

  /// Writes what the session wants to send as far as the network takes it, then acts on what came of it.
  func flush() {
    guard !self.isFlushing else { return }
    if let error = self.requestedClose {
      self.shutDown(error, sending: .noError)
      return
    }
    self.writeOutput()
    self.handleEvents()
    self.closeIfFinished()
    self.updateTimer()
  }

  private func writeOutput() {
    guard self.state == .active || self.state == .connecting else { return }
    self.isFlushing = true
    defer { self.isFlushing = false }
    var isMore = true
    while isMore, self.channel.isWritable, self.session.ending == nil {
      let now = self.now
      isMore = self.session.fillOutput(limit: Self.writeSize, now: now)
      let datagrams = self.session.output.takeAll(isLast: !self.session.hasStreams)
      guard !datagrams.isEmpty else { break }
      for item in datagrams { self.write(item) }
      self.context?.flush()
      if self.watch.isQuick, self.session.unansweredSince != nil { self.didProbe() }
    }
  }

  private func write(_ item: HTTP3Output.Datagrams) {
    guard !item.isProbe else { return self.writeProbe(item) }
    let metadata = item.metadata
    guard item.segmentSize != nil, !self.hasCutDatagrams else { return self.write(item.bytes, metadata) }
    // If the system cuts the first ones, it cuts all.
    self.hasCutDatagrams = true
    let promise = self.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenFailure { error in
      SegmentationOffload.didFail(error)
      self.channelError = self.channelError ?? error
    }
    self.write(item.bytes, metadata, promise: promise)
  }

  /// Writes a probe: a datagram that tries whether the path takes larger ones. If the system refuses it, nobody
  /// acknowledges it, as on a path that drops it.
  private func writeProbe(_ item: HTTP3Output.Datagrams) {
    // Earlier datagrams are flushed first: what is flushed together is sent with the same options of the socket.
    self.context?.flush()
    UDPSocket.willSendProbe(on: self.channel)
    self.unsentProbes += 1
    let promise = self.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { _ in
      self.unsentProbes -= 1
      if self.unsentProbes == 0 { UDPSocket.didSendProbe(on: self.channel) }
    }
    self.write(item.bytes, item.metadata, promise: promise)
    self.context?.flush()
  }

  func write(
    _ bytes: ByteBuffer,
    _ metadata: AddressedEnvelope<ByteBuffer>.Metadata? = nil,
    promise: EventLoopPromise<Void>? = nil
  ) {
    guard let context = self.context else {
      promise?.succeed()
      return
    }
    let envelope = AddressedEnvelope(remoteAddress: self.remoteAddress, data: bytes, metadata: metadata)
    context.write(self.wrapOutboundOut(envelope), promise: promise)
  }
}

extension HTTP3Output.Datagrams {
  fileprivate var metadata: AddressedEnvelope<ByteBuffer>.Metadata {
    AddressedEnvelope<ByteBuffer>.Metadata(
      ecnState: NIOExplicitCongestionNotificationState(bits: self.ecn),
      packetInfo: nil,
      segmentSize: self.segmentSize
    )
  }
}

extension NIOExplicitCongestionNotificationState {
  /// - Parameter bits: As in the header of IP (RFC 3168, section 5).
  init(bits: UInt32) {
    self =
      switch bits & 3 {
      case 1: .transportCapableFlag1
      case 2: .transportCapableFlag0
      case 3: .congestionExperienced
      default: .transportNotCapable
      }
  }

  var bits: UInt32 {
    switch self {
    case .transportNotCapable: 0
    case .transportCapableFlag1: 1
    case .transportCapableFlag0: 2
    case .congestionExperienced: 3
    }
  }
}
