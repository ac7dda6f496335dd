internal import Connect
internal import ConnectChannels
internal import Logging
internal import NIOCore
internal import NIOHTTP1

/// An HTTP/1.1 connection: one request and its response at a time.
///
/// It is the last handler of the channel, behind an ``HTTP1ReadGuard`` and NIOHTTP1's encoder and decoder, and confined
/// to the channel's event loop. Functions that the call or the pool calls only write. Flushing, closing and callbacks
/// follow later from the event loop, so that no caller is re-entered.
///
/// The response's body is held back by not reading. `read` is passed on only while the call has fewer than
/// `responseWindow` unconsumed bytes.
final class HTTP1Connection: ChannelDuplexHandler, StreamConnection {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  enum State {
    /// Before the handler was added.
    case new
    case idle
    case busy(HTTP1Stream)
    /// Takes no streams; the channel is about to be closed, or being closed.
    case closing
    case closed
  }

  private let eventLoop: any EventLoop
  private let authority: String
  let peer: String
  private let remoteAddress: String?
  let configuration: NIOHTTPClient.Configuration.HTTP1
  let responseWindow: Int
  private let logger: Logger
  var delegate: (any StreamConnectionDelegate)?
  var context: ChannelHandlerContext?

  var state = State.new
  private var isDraining = false
  private var streamsServed = 0
  private var isFlushScheduled = false
  var isReadWithheld = false
  /// Whether the delegate wants to hear of `alt-svc` fields.
  var looksForAltSvc = false
  /// How long the steps to open this connection took.
  var setup: HTTPConnectionInfo.Setup?
  /// TLS ended without its close_notify: the end of the connection proves nothing.
  var sawUncleanShutdown = false

  init(
    channel: any Channel,
    origin: Origin,
    configuration: NIOHTTPClient.Configuration.HTTP1,
    delegate: any StreamConnectionDelegate,
    logger: Logger
  ) {
    self.eventLoop = channel.eventLoop
    self.authority = origin.authority
    self.peer = origin.description
    self.remoteAddress = channel.remoteAddress.flatMap { RemoteAddress.text($0) }
    self.configuration = configuration
    self.responseWindow = max(configuration.responseWindow, 1)
    self.delegate = delegate
    self.logger = logger
  }

  // MARK: - StreamConnection

  private(set) var hasServed = false

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    let stream = HTTP1Stream(request, handler: handler, connection: self)
    guard case .idle = self.state, let context = self.context else {
      self.refuse(stream, .connectionLost(self.peer), isUnprocessed: true)
      return stream
    }
    let head: HTTPRequestHead
    do {
      head = try HTTP1Messages.head(of: request, authority: self.authority)
    } catch {
      self.refuse(stream, error, isUnprocessed: false)
      return stream
    }
    self.state = .busy(stream)
    context.write(self.wrapOutboundOut(.head(head)), promise: nil)
    if case .complete(let bytes) = request.body {
      if bytes.readableBytes > 0 {
        context.write(self.wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
      }
      context.write(self.wrapOutboundOut(.end(nil)), promise: nil)
    }
    self.scheduleFlush()
    return stream
  }

  func drain() {
    self.isDraining = true
    guard case .idle = self.state else { return }
    self.state = .closing
    self.later { self.context?.close(promise: nil) }
  }

  func close(failing error: ConnectError) {
    self.isDraining = true
    self.later { self.end(failing: error) }
  }

  /// Fails a stream that was not started. The connection stays as it is.
  private func refuse(_ stream: HTTP1Stream, _ error: ConnectError, isUnprocessed: Bool) {
    self.later {
      self.delegate?.connectionDidCloseStream(self)
      stream.takeHandler()?.streamDidFail(HTTPStreamFailure(error: error, isUnprocessed: isUnprocessed))
    }
  }

  private func later(_ work: @escaping () -> Void) {
    self.eventLoop.assumeIsolated().execute(work)
  }

  // MARK: - Called by the stream

  func write(_ bytes: ByteBuffer, for stream: HTTP1Stream) {
    guard self.isServing(stream), let context = self.context else { return }
    if bytes.readableBytes > 0 {
      context.write(self.wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
    }
    stream.awaitsWritability = true
    self.scheduleFlush()
  }

  func finish(trailers: Headers, for stream: HTTP1Stream) {
    guard self.isServing(stream), let context = self.context else { return }
    stream.request = .finished
    stream.awaitsWritability = false
    context.write(self.wrapOutboundOut(.end(HTTP1Messages.trailers(trailers))), promise: nil)
    self.scheduleFlush()
  }

  func didConsume(_ stream: HTTP1Stream) {
    guard self.isReadWithheld, self.isServing(stream),
      stream.unconsumed < self.responseWindow
    else { return }
    self.isReadWithheld = false
    self.later { self.context?.read() }
  }

  /// HTTP/1.1 has no other way to give up a request than to give up the connection.
  func cancelled(_ stream: HTTP1Stream) {
    guard self.isServing(stream) else { return }
    self.state = .closing
    self.later {
      self.delegate?.connectionWillClose(self)
      self.delegate?.connectionDidCloseStream(self)
      self.context?.close(promise: nil)
    }
  }

  private func isServing(_ stream: HTTP1Stream) -> Bool {
    if case .busy(let current) = self.state { current === stream } else { false }
  }

  // MARK: - Writing

  private func scheduleFlush() {
    guard !self.isFlushScheduled else { return }
    self.isFlushScheduled = true
    self.later { self.flush() }
  }

  private func flush() {
    self.isFlushScheduled = false
    guard case .busy(let stream) = self.state else { return }
    if !stream.hasStarted {
      stream.hasStarted = true
      let info = HTTPConnectionInfo(
        version: .http1,
        isReused: self.streamsServed > 0,
        remoteAddress: self.remoteAddress,
        setup: self.streamsServed > 0 ? nil : self.setup
      )
      self.streamsServed += 1
      stream.handler?.streamDidStart(on: info)
      guard self.isServing(stream) else { return }
    }
    stream.isFlushed = true
    self.context?.flush()
    self.tellIfWritable()
  }

  func tellIfWritable() {
    guard case .busy(let stream) = self.state, stream.awaitsWritability, !self.isFlushScheduled,
      self.context?.channel.isWritable == true
    else { return }
    stream.awaitsWritability = false
    stream.handler?.streamDidBecomeWritable()
  }

  // MARK: - Reading

  var awaitsHead: Bool {
    if case .busy(let stream) = self.state, case .awaitingHead = stream.response { true } else { false }
  }

  /// Whether a body follows that is chunked.
  var receivesChunks: Bool {
    if case .busy(let stream) = self.state, case .receivingBody = stream.response {
      stream.isChunked
    } else {
      false
    }
  }

  /// Whether `bytes` that have come from the peer are for the decoder. If they are no part of a response
  /// that is due, the connection is given up.
  func accepts(_ bytes: ByteBuffer) -> Bool {
    switch self.state {
    case .busy(let stream):
      if case .awaitingHead = stream.response, let error = self.foreignAnswer(bytes) {
        self.end(failing: error)
        return false
      }
      guard stream.isFlushed else {
        self.end(failing: .invalidHTTP1(self.peer, "it answered before the request was sent"))
        return false
      }
      if case .complete = stream.response {
        // More than was asked for. The response that is complete still counts.
        stream.allowsReuse = false
        return false
      }
      if let missing = stream.missingLength, bytes.readableBytes > missing { stream.allowsReuse = false }
      return true
    case .new, .idle:
      self.end(failing: .invalidHTTP1(self.peer, "it answered without a request"))
      return false
    case .closing, .closed:
      return false
    }
  }

  /// The error of an answer in another protocol; nil for `bytes` that may be of a response of HTTP/1.1.
  private func foreignAnswer(_ bytes: ByteBuffer) -> ConnectError? {
    // Other protocols begin with a control character, which no head has.
    guard let first = bytes.getInteger(at: bytes.readerIndex, as: UInt8.self), first < 0x20 else {
      return nil
    }
    return switch PeerProtocol(bytes) {
    case .http2: .answeredInHTTP2(self.peer)
    case .tls: .answeredInTLS(self.peer)
    case .http1, nil: nil
    }
  }

  /// Checks, once the decoder has seen a piece, that a head or body that ended in the piece ended with the piece. If
  /// not, the decoder may hold the beginning of something that nobody asked for.
  ///
  /// - Parameters:
  ///   - isHead: Whether the piece was to be of a head.
  ///   - endsWithBlankLine: Whether its last bytes were a blank line, which ends heads and chunked bodies.
  func didDecode(isHead: Bool, endsWithBlankLine: Bool) {
    guard case .busy(let stream) = self.state, !endsWithBlankLine else { return }
    switch stream.response {
    case .awaitingHead: break
    case .receivingBody: if isHead { stream.allowsReuse = false }
    case .complete: if isHead || stream.missingLength != 0 { stream.allowsReuse = false }
    }
  }

  /// Delivers one part of a response. What comes after the call has lost interest is dropped.
  func receive(_ part: HTTPClientResponsePart, for stream: HTTP1Stream) {
    switch (part, stream.response) {
    case (.head(let head), .awaitingHead):
      guard head.status.code != 101 else {
        self.end(failing: .invalidHTTP1(self.peer, "it switched protocols without being asked"))
        return
      }
      guard self.accept(head.headers) else { return }
      switch HTTP1Messages.framing(of: head) {
      case .length(let length): stream.missingLength = length
      case .chunked: stream.isChunked = true
      case .untilClose: stream.endsWithConnection = true
      case .unclear(let reason):
        self.end(failing: .invalidHTTP1(self.peer, reason))
        return
      }
      self.hasServed = true
      stream.response = .receivingBody
      stream.allowsReuse = head.isKeepAlive && !stream.endsWithConnection
      let headers = HTTP1Messages.headers(head.headers)
      if self.looksForAltSvc, headers.contains("alt-svc") {
        self.delegate?.connection(self, didReceiveAltSvc: headers)
      }
      stream.handler?.streamDidReceive(
        Connect.HTTPResponseHead(status: Int(head.status.code), headers: headers)
      )
    case (.body(let bytes), .receivingBody):
      guard bytes.readableBytes > 0 else { return }
      stream.unconsumed += bytes.readableBytes
      stream.missingLength? -= bytes.readableBytes
      stream.handler?.streamDidReceive(bytes)
    case (.end(let trailers), .receivingBody):
      guard self.accept(trailers) else { return }
      stream.response = .complete(trailers: HTTP1Messages.headers(trailers))
    default:
      stream.allowsReuse = false
    }
  }

  /// Checks the size of a list of fields. False if the stream has failed because of it.
  private func accept(_ headers: HTTPHeaders?) -> Bool {
    let size = HTTP1Messages.size(of: headers)
    let limit = self.configuration.maxHeaderListSize
    guard size > limit else { return true }
    self.end(failing: HTTPStreamFailure.headerListTooLarge(size: size, limit: limit).error)
    return false
  }

  /// Tells of the end of a response that is complete.
  ///
  /// - Parameter isLast: Whether the connection is of no further use.
  func deliverEnd(isLast: Bool = false) {
    guard case .busy(let stream) = self.state, case .complete(let trailers) = stream.response else { return }
    if self.sawUncleanShutdown, stream.endsWithConnection {
      let reason = "TLS ended without a close_notify, so the response may be cut short"
      self.end(failing: self.lost(stream, reason))
      return
    }
    let isReusable =
      !isLast && stream.request == .finished && stream.allowsReuse && !self.isDraining
      && self.context?.channel.isActive == true
    self.state = isReusable ? .idle : .closing
    // The pool first: a call that the handler starts finds the connection free.
    if !isReusable { self.delegate?.connectionWillClose(self) }
    self.delegate?.connectionDidCloseStream(self)
    stream.takeHandler()?.streamDidEnd(trailers: trailers)
    if isReusable {
      self.resumeReading()
    } else {
      self.context?.close(promise: nil)
    }
  }

  private func resumeReading() {
    guard self.isReadWithheld else { return }
    self.isReadWithheld = false
    self.context?.read()
  }

  // MARK: - Failing

  /// Fails the stream, if there is one, and closes the channel.
  func end(failing error: ConnectError) {
    switch self.state {
    case .closed:
      return
    case .busy(let stream):
      self.state = .closing
      self.delegate?.connectionWillClose(self)
      self.delegate?.connectionDidCloseStream(self)
      stream.takeHandler()?.streamDidFail(
        HTTPStreamFailure(error: error, isUnprocessed: !stream.isFlushed)
      )
    case .new, .idle:
      self.state = .closing
      self.delegate?.connectionWillClose(self)
    case .closing:
      break
    }
    self.context?.close(promise: nil)
  }

  /// - Parameter isExplained: Whether `reason` is all that there is to say.
  func lost(_ stream: HTTP1Stream, _ reason: String, isExplained: Bool = false) -> ConnectError {
    let moment: String
    switch stream.response {
    case .awaitingHead: moment = stream.isFlushed ? "before the response" : "before the request was sent"
    case .receivingBody, .complete: moment = "in the middle of the response"
    }
    let message = "the connection to \(self.peer) was lost \(moment): \(reason)"
    // Later on, the server has shown that it speaks HTTP/1.1.
    guard case .awaitingHead = stream.response, stream.isFlushed, self.streamsServed == 1, !isExplained
    else {
      return ConnectError(code: .unavailable, message: message)
    }
    return .ofConnection(.unavailable, "\(message)\(Advice.http1Refused(by: self.peer))")
  }
}
