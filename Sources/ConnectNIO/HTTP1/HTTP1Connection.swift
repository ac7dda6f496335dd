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

  enum Occupancy {
    /// Before the handler was added.
    case new
    case idle
    case busy(HTTP1Stream)
    /// Takes no streams; the channel is about to be closed, or being closed.
    case closing
    case closed
  }

  let state: ConnectionState
  let configuration: NIOHTTPClient.Configuration.HTTP1
  private let authority: String
  var context: ChannelHandlerContext?

  var occupancy = Occupancy.new
  var isReadWithheld = false
  /// TLS ended without its close_notify: the end of the connection proves nothing.
  var sawUncleanShutdown = false

  /// - Parameter peer: The server, for errors; nil for the origin.
  init(
    channel: any Channel,
    origin: Origin,
    peer: String? = nil,
    configuration: NIOHTTPClient.Configuration.HTTP1,
    delegate: any StreamConnectionDelegate,
    logger: Logger
  ) {
    self.state = ConnectionState(
      channel: channel,
      version: .http1,
      peer: peer ?? origin.description,
      delegate: delegate,
      logger: logger
    )
    self.authority = origin.authority
    self.configuration = configuration
  }

  /// The stream that the connection serves.
  var stream: HTTP1Stream? {
    if case .busy(let stream) = self.occupancy { stream } else { nil }
  }

  // MARK: - StreamConnection

  var hasServed: Bool { self.state.hasAnswered }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    let stream = HTTP1Stream(request, handler: handler, connection: self)
    guard case .idle = self.occupancy, let context = self.context else {
      self.refuse(stream, .connectionLost(self.state.peer), isUnprocessed: true)
      return stream
    }
    let head: HTTPRequestHead
    do {
      head = try HTTP1Messages.head(of: request, authority: self.authority)
    } catch {
      self.refuse(stream, error, isUnprocessed: false)
      return stream
    }
    self.occupancy = .busy(stream)
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
    self.state.isDraining = true
    guard case .idle = self.occupancy else { return }
    self.occupancy = .closing
    self.later { self.context?.close(promise: nil) }
  }

  func close(failing error: ConnectError) {
    self.state.isDraining = true
    self.later { self.end(failing: error) }
  }

  /// Fails a stream that was not started. The connection stays as it is.
  private func refuse(_ stream: HTTP1Stream, _ error: ConnectError, isUnprocessed: Bool) {
    self.later {
      self.state.delegate?.connectionDidCloseStream(self)
      stream.takeHandler()?.streamDidFail(HTTPStreamFailure(error: error, isUnprocessed: isUnprocessed))
    }
  }

  private func later(_ work: @escaping () -> Void) {
    self.state.eventLoop.assumeIsolated().execute(work)
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
    guard self.isReadWithheld, self.isServing(stream), self.hasRoom(for: stream) else { return }
    self.isReadWithheld = false
    self.later { self.context?.read() }
  }

  /// HTTP/1.1 has no other way to give up a request than to give up the connection.
  func cancelled(_ stream: HTTP1Stream) {
    guard self.isServing(stream) else { return }
    self.occupancy = .closing
    self.later {
      self.state.delegate?.connectionWillClose(self)
      self.state.delegate?.connectionDidCloseStream(self)
      self.context?.close(promise: nil)
    }
  }

  private func isServing(_ stream: HTTP1Stream) -> Bool { self.stream === stream }

  /// Whether the call may get more of the response's body.
  func hasRoom(for stream: HTTP1Stream) -> Bool {
    stream.unconsumed < max(self.configuration.responseWindow, 1)
  }

  // MARK: - Writing

  private func scheduleFlush() {
    guard !self.state.isFlushScheduled else { return }
    self.state.isFlushScheduled = true
    self.later { self.flush() }
  }

  private func flush() {
    self.state.isFlushScheduled = false
    guard let stream = self.stream else { return }
    if !stream.hasStarted {
      stream.hasStarted = true
      stream.handler?.streamDidStart(on: self.state.facts.infoForNextStream())
      guard self.isServing(stream) else { return }
    }
    stream.isFlushed = true
    self.context?.flush()
    self.tellIfWritable()
  }

  func tellIfWritable() {
    guard let stream = self.stream, stream.awaitsWritability, !self.state.isFlushScheduled,
      self.context?.channel.isWritable == true
    else { return }
    stream.awaitsWritability = false
    stream.handler?.streamDidBecomeWritable()
  }

  // MARK: - Reading

  /// Whether `bytes` that have come from the peer are for the decoder. If they are no part of a response
  /// that is due, the connection is given up.
  func accepts(_ bytes: ByteBuffer) -> Bool {
    switch self.occupancy {
    case .busy(let stream):
      if stream.response.awaitsHead, let error = ConnectError.foreignAnswer(bytes, from: self.state.peer) {
        self.end(failing: error)
        return false
      }
      guard stream.isFlushed else {
        self.end(failing: .invalidHTTP1(self.state.peer, "it answered before the request was sent"))
        return false
      }
      return stream.response.accepts(bytes.readableBytes)
    case .new, .idle:
      self.end(failing: .invalidHTTP1(self.state.peer, "it answered without a request"))
      return false
    case .closing, .closed:
      return false
    }
  }

  /// Delivers one part of a response. What comes after the call has lost interest is dropped.
  func receive(_ part: HTTPClientResponsePart, for stream: HTTP1Stream) {
    let limit = self.configuration.maxHeaderListSize
    do throws(ConnectError) {
      switch (part, stream.response.progress) {
      case (.head(let head), .awaitingHead):
        try stream.response.begin(head, headerListLimit: limit, peer: self.state.peer)
        self.state.hasAnswered = true
        let headers = HTTP1Messages.headers(head.headers)
        if self.state.looksForAltSvc, headers.contains("alt-svc") {
          self.state.delegate?.connection(self, didReceiveAltSvc: headers)
        }
        stream.handler?.streamDidReceive(
          Connect.HTTPResponseHead(status: Int(head.status.code), headers: headers)
        )
      case (.body(let bytes), .receivingBody):
        guard bytes.readableBytes > 0 else { return }
        stream.unconsumed += bytes.readableBytes
        stream.response.missingLength? -= bytes.readableBytes
        stream.handler?.streamDidReceive(bytes)
      case (.end(let trailers), .receivingBody):
        try stream.response.complete(trailers, headerListLimit: limit)
      default:
        stream.response.allowsReuse = false
      }
    } catch {
      self.end(failing: error)
    }
  }

  /// Tells of the end of a response that is complete.
  ///
  /// - Parameter isLast: Whether the connection is of no further use.
  func deliverEnd(isLast: Bool = false) {
    guard let stream = self.stream, case .complete(let trailers) = stream.response.progress else { return }
    if self.sawUncleanShutdown, stream.response.endsWithConnection {
      let reason = "TLS ended without a close_notify, so the response may be cut short"
      self.end(failing: self.lost(stream, reason))
      return
    }
    let isReusable =
      !isLast && stream.request == .finished && stream.response.allowsReuse && !self.state.isDraining
      && self.context?.channel.isActive == true
    self.occupancy = isReusable ? .idle : .closing
    // The pool first: a call that the handler starts finds the connection free.
    if !isReusable { self.state.delegate?.connectionWillClose(self) }
    self.state.delegate?.connectionDidCloseStream(self)
    stream.takeHandler()?.streamDidEnd(trailers: trailers)
    if !isReusable {
      self.context?.close(promise: nil)
    } else if self.isReadWithheld {
      self.isReadWithheld = false
      self.context?.read()
    }
  }

  // MARK: - Failing

  /// Fails the stream, if there is one, and closes the channel.
  func end(failing error: ConnectError) {
    switch self.occupancy {
    case .closed:
      return
    case .busy(let stream):
      self.occupancy = .closing
      self.state.delegate?.connectionWillClose(self)
      self.state.delegate?.connectionDidCloseStream(self)
      stream.takeHandler()?.streamDidFail(
        HTTPStreamFailure(error: error, isUnprocessed: !stream.isFlushed)
      )
    case .new, .idle:
      self.occupancy = .closing
      self.state.delegate?.connectionWillClose(self)
    case .closing:
      break
    }
    self.context?.close(promise: nil)
  }

  /// - Parameter isExplained: Whether `reason` is all that there is to say.
  func lost(_ stream: HTTP1Stream, _ reason: String, isExplained: Bool = false) -> ConnectError {
    let moment =
      switch (stream.response.awaitsHead, stream.isFlushed) {
      case (false, _): "in the middle of the response"
      case (true, true): "before the response"
      case (true, false): "before the request was sent"
      }
    let message = "the connection to \(self.state.peer) was lost \(moment): \(reason)"
    // Later on, the server has shown that it speaks HTTP/1.1.
    guard stream.response.awaitsHead, stream.isFlushed, !self.hasServed, !isExplained else {
      return ConnectError(code: .unavailable, message: message)
    }
    return .ofConnection(.unavailable, "\(message)\(Advice.http1Refused(by: self.state.peer))")
  }
}
