internal import Connect
internal import ConnectChannels
internal import Logging
internal import NIOCore
internal import NIOSSL

extension HTTP2Connection {
  /// Closes the connection if nothing is left for it to do.
  func closeIfFinished() {
    guard self.state != .closed, !self.isHandlingEvents else { return }
    if self.isDraining, self.session.liveCount == 0 {
      self.shutDown(self.goAwayError, sending: .noError)
    } else if self.state == .active, !self.session.wantsRead, !self.session.wantsWrite {
      self.shutDown(self.finishedSessionError, sending: nil)
    }
  }

  /// Ends the connection: says goodbye with `errorCode`, if the channel still works, fails the open streams, and
  /// tells the delegate.
  ///
  /// - Parameter error: Nil if everything was in order.
  func shutDown(_ error: ConnectError?, sending errorCode: HTTP2ErrorCode?) {
    guard !self.isHandlingEvents else {
      if self.postponedShutDown == nil {
        self.postponedShutDown = { self.shutDown(error, sending: errorCode) }
      }
      return
    }
    // Events that wait may complete streams; what comes of them must not be lost to the failure below.
    if !self.isFlushing { self.handleEvents() }
    guard self.state != .closed else { return }

    let isChannelUsable = self.state == .active
    self.state = .closed
    self.isReading = false
    self.keepaliveTask?.cancel()
    self.keepaliveTask = nil
    self.peerTest.timer.take()?.cancel()
    self.peerTest.look.take()?.cancel()
    self.blockedWriters = []
    let delegate = self.delegate
    self.delegate = nil
    if let error {
      self.logger.debug("HTTP/2 connection failed", metadata: ["error": "\(String(reflecting: error))"])
    }

    let streams = self.session.liveStreams
    // A handler that starts a new stream when it hears of its end must not be given this connection again.
    if !streams.isEmpty, !self.isDraining { delegate?.connectionWillClose(self) }
    self.isDraining = true
    if isChannelUsable, let errorCode { self.sayGoodbye(errorCode) }
    let reason =
      error ?? ConnectError(code: .unavailable, message: "the HTTP/2 connection to \(self.peer) was closed")
    for stream in streams.reversed() {
      let error = self.isInnocent(stream, of: reason) ? .brokenElsewhere(reason) : reason
      self.fail(stream, HTTPStreamFailure(error: error, isUnprocessed: !stream.isHeaderSent))
      delegate?.connectionDidCloseStream(self)
    }
    self.session.invalidate()
    self.handleEvents()
    self.channel.close(promise: nil)
    delegate?.connectionDidClose(self, error: error)
  }

  /// Whether the connection has ended since the peer broke the protocol, and not in the response to this stream.
  ///
  /// The broken frame tells the stream. If it is of the connection, or not known, no stream is to blame. Then all calls may
  /// be made again, unless there is only one: it would meet the same peer, and nobody has disturbed it.
  private func isInnocent(_ stream: HTTP2Stream, of error: ConnectError) -> Bool {
    guard self.servedStreams != nil, self.session.isBroken, error.code != .unavailable else { return false }
    // The frame came for a stream whose response is complete.
    if !stream.isHeaderSent || self.session.sentGoAway?.errorCode == .streamClosed { return true }
    if let id = self.session.frameStreamID, id != 0 { return stream.id != id }
    return self.session.liveCount > 1
  }

  private func sayGoodbye(_ errorCode: HTTP2ErrorCode) {
    self.isFlushing = true
    defer { self.isFlushing = false }
    self.session.terminate(errorCode)
    // Nothing but the GOAWAY and what precedes it is left, so the channel may take it writable or not.
    if self.session.fillOutput(limit: Self.writeSize) { self.passOutputToChannel() }
  }

  /// Why the channel has become inactive.
  var lostConnectionError: ConnectError? {
    if let error = self.unknownAnswerError { return error }
    if let error = self.channelError {
      if self.servedStreams == nil, case NIOSSLError.uncleanShutdown = error {
        return ConnectError(
          code: .unavailable,
          message: """
            \(self.peer) cut the connection right after the TLS handshake: \
            it may require a client certificate, or not accept the one it was shown
            """,
          exception: error
        )
      }
      if self.servedStreams == nil, TLSAlert.names(in: error).isEmpty {
        return .closedBeforeSettings(self.peer, failure: error)
      }
      var broken = ConnectError(
        code: .unavailable,
        message: "the HTTP/2 connection to \(self.peer) broke: \(TLSAlert.text(error))",
        exception: error
      )
      broken.isFinal = TLSAlert.isFinal(error)
      return broken
    }
    if let goAway = self.session.goAway {
      if self.session.liveCount == 0 { return self.goAwayError }
      return ConnectError(
        code: .unavailable,
        message:
          "\(self.peer) closed the HTTP/2 connection before the response was complete (GOAWAY, \(goAway))"
      )
    }
    if self.servedStreams == nil {
      return .closedBeforeSettings(self.peer)
    }
    guard self.session.liveCount > 0 else { return nil }
    return ConnectError(
      code: .unavailable,
      message: "\(self.peer) closed the HTTP/2 connection before the response was complete"
    )
  }

  /// The error of a connection that the server has ended by GOAWAY; nil if it did so in order.
  private var goAwayError: ConnectError? {
    guard let goAway = self.session.goAway, goAway.errorCode != .noError else { return nil }
    let code = Code(http2ErrorCode: goAway.errorCode.rawValue)
    return ConnectError(code: code, message: "\(self.peer) ended the HTTP/2 connection: \(goAway)")
  }

  /// Why the session has nothing more to do; nil if everything was in order.
  private var finishedSessionError: ConnectError? {
    if self.session.sentGoAway?.errorCode ?? .noError == .noError, self.session.goAway != nil {
      return self.goAwayError
    }
    return self.brokenSessionError
  }

  /// Why the session cannot go on.
  var brokenSessionError: ConnectError {
    if let error = self.unknownAnswerError { return error }
    if let sent = self.session.sentGoAway, sent.errorCode != .noError {
      return ConnectError(code: .internalError, message: "\(self.peer) broke the HTTP/2 protocol: \(sent)")
    }
    if self.session.isHeaderBlockEndless {
      let limit = self.session.configuration.maxHeaderListSize
      return ConnectError(
        code: .resourceExhausted,
        message:
          "\(self.peer) sent a header list that is far over the limit of \(limit) bytes (maxHeaderListSize)"
      )
    }
    let reason = self.session.fatalError ?? "unknown reason"
    return ConnectError(
      code: .internalError,
      message: "the HTTP/2 session with \(self.peer) failed: \(reason)"
    )
  }
}

// MARK: - Servers that do not speak HTTP/2

extension HTTP2Connection {
  /// Takes note of what the peer sends before its settings.
  ///
  /// - Returns: The error, if that shows that the peer speaks another protocol.
  func foreignAnswer(continuedBy bytes: ByteBuffer) -> ConnectError? {
    let room = max(0, ResponseText.maximumBytes - self.firstBytes.readableBytes)
    self.firstBytes.writeBytes(bytes.readableBytesView.prefix(room))
    return switch PeerProtocol(self.firstBytes) {
    case .http1: .answeredInHTTP1(self.peer, self.firstBytes)
    case .tls: .answeredInTLS(self.peer)
    case .http2, nil: nil
    }
  }

  /// The error of a session that is over without settings of the peer, if what came instead was no HTTP/2. A frame
  /// begins with its length, and the first one is short.
  private var unknownAnswerError: ConnectError? {
    guard self.servedStreams == nil, let first = self.firstBytes.readableBytesView.first, first != 0 else {
      return nil
    }
    return .answeredInUnknown(self.peer, self.firstBytes)
  }
}
