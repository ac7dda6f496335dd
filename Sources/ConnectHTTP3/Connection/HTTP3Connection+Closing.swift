internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Logging
internal import NIOCore

extension HTTP3Connection {
  /// Closes the connection if nothing is left for it to do.
  func closeIfFinished() {
    guard self.state != .closed, !self.isHandlingEvents else { return }
    if self.session.ending != nil {
      self.endOfSession()
    } else if self.isDraining, !self.session.hasStreams {
      self.shutDown(nil, sending: .noError)
    }
  }

  /// The session has ended by itself or by the peer.
  func endOfSession() {
    guard let ending = self.session.ending else { return }
    if ending == .idle, self.session.hasStreams {
      self.reportUnfit("nothing came until the idle timeout")
    }
    self.shutDown(self.error(of: ending), sending: .noError)
  }

  /// Ends the connection: says goodbye with `errorCode`, if the channel still works, fails the open streams, and tells the
  /// delegate.
  ///
  /// - Parameter error: Nil if everything was in order.
  func shutDown(_ error: ConnectError?, sending errorCode: HTTP3ErrorCode?) {
    guard !self.isHandlingEvents else {
      if self.postponedShutDown == nil {
        self.postponedShutDown = { self.shutDown(error, sending: errorCode) }
      }
      return
    }
    // Events that wait may complete streams; what comes of them must not be lost to the failure below.
    if !self.isFlushing { self.handleEvents() }
    guard self.state != .closed else { return }

    let isChannelUsable = self.state == .active || self.state == .connecting
    let wasReady = self.state == .active
    let wasShakingHands = self.isShakingHands
    self.state = .closed
    self.isReading = false
    self.timer.cancel()
    self.handshakeTimer.take()?.cancel()
    self.blockedWriters = []
    let streams = self.session.liveStreams
    if let error, !streams.isEmpty, !self.hasAnswered, !wasShakingHands, self.requestedClose == nil {
      // Otherwise calls that would succeed over TCP might fail again and again over HTTP/3.
      self.reportUnfit(error.message ?? "it broke before the first response")
    }
    let delegate = self.delegate
    self.delegate = nil
    self.onUnfit = nil
    if let error {
      self.logger.debug("HTTP/3 connection failed", metadata: ["error": "\(String(reflecting: error))"])
    }
    // A handler that starts a new stream when it hears of its end must not be given this connection again.
    if !streams.isEmpty, !self.isDraining { delegate?.connectionWillClose(self) }
    self.isDraining = true
    if isChannelUsable, let errorCode, let datagram = self.session.closingDatagram(errorCode, now: self.now) {
      self.write(datagram)
      self.context?.flush()
    }
    let reason =
      error ?? ConnectError(code: .unavailable, message: "the HTTP/3 connection to \(self.peer) was closed")
    for stream in streams {
      let isInnocent = !wasShakingHands && self.isInnocent(stream, among: streams.count, of: reason)
      // Early data may be processed twice.
      var failure = HTTPStreamFailure(
        error: isInnocent ? .brokenElsewhere(reason) : reason,
        isUnprocessed: wasShakingHands || !stream.isHeaderSent
      )
      failure.keepsTransparentRetry = wasShakingHands
      self.fail(stream, failure)
      delegate?.connectionDidCloseStream(self)
    }
    self.session.invalidate()
    self.handleEvents()
    self.channel.close(promise: nil)
    if wasReady {
      delegate?.connectionDidClose(self, error: error)
    } else {
      self.onReady.take()?(.failure(reason))
    }
  }

  /// Whether the connection has ended since one of the peers broke the protocol, and not in the response to this stream.
  ///
  /// libnghttp3 tells the stream. If that is none of a request, or not known, no stream is to blame. Then all calls may be
  /// made again, unless there is only one: it would meet the same peer, and nobody has disturbed it.
  private func isInnocent(_ stream: HTTP3Stream, among count: Int, of error: ConnectError) -> Bool {
    guard error.code == .internalError else { return false }
    if let id = self.session.brokenStreamID, id & 3 == 0 { return stream.id != id }
    return count > 1
  }

  /// Gives up the handshake, with `error`, if it is not complete at `deadline`.
  func limitHandshake(to deadline: NIODeadline, _ error: @escaping () -> ConnectError) {
    self.handshakeTimer?.cancel()
    self.handshakeTimer = self.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
      self?.giveUpHandshake(error())
    }
  }

  func giveUpHandshake(_ error: ConnectError) {
    guard self.isShakingHands else { return }
    self.shutDown(error, sending: .noError)
  }

  /// Gives up a connection that takes no requests yet.
  func abandon() {
    self.onReady = nil
    self.giveUpHandshake(ConnectError(code: .canceled, message: "the attempt to connect was given up"))
  }

  // MARK: Errors

  /// Why the channel has failed.
  var lostChannelError: ConnectError {
    guard let error = self.channelError else {
      return ConnectError(code: .unavailable, message: "the HTTP/3 connection to \(self.peer) was closed")
    }
    let text = SystemErrorText.of(error)
    if self.isShakingHands {
      let address = self.remoteText.map { "\($0): " } ?? ""
      return .ofConnection(
        .unavailable,
        "cannot connect to \(self.peer) over HTTP/3 (\(address)\(text))",
        error
      )
    }
    return ConnectError(
      code: .unavailable,
      message: "the HTTP/3 connection to \(self.peer) broke: \(text)",
      exception: error
    )
  }

  /// What an ending of the session means for its calls; nil if everything was in order.
  private func error(of ending: HTTP3Ending) -> ConnectError? {
    if let problem = self.session.tls.problem { return problem }
    let isConnecting = self.isShakingHands
    switch ending {
    case .closedByPeer(.noError, let reason):
      return self.closedInOrder(reason)
    case .closedByPeer(let code, let reason):
      return ConnectError(
        code: Code(code),
        message: "\(self.peer) ended the HTTP/3 connection: \(code)\(Self.suffix(reason))"
      )
    case .brokenByPeer(let code, let reason):
      return self.error(ofQUIC: code, reason)
    case .statelessReset:
      return self.unavailable(
        "the HTTP/3 connection broke: \(self.peer) knows nothing of it (stateless reset)"
      )
    case .noCommonVersion:
      return .ofConnection(.unavailable, "\(self.peer) does not speak QUIC version 1", isFinal: true)
    case .idle:
      guard isConnecting || self.session.hasStreams else { return nil }
      return self.unavailable(
        "the HTTP/3 connection broke: nothing came from \(self.peer) until its idle timeout"
      )
    case .tls(let alert, let libraryError):
      guard libraryError == 0 else {
        let reason = HTTP3Session.text(tls: libraryError)
        return .failedHandshake(peer: self.peer, reason: reason, isFinal: false)
      }
      return self.failedHandshake(alert)
    case .transport(let error):
      let message = "\(self.peer) broke QUIC: \(HTTP3Session.text(transport: error))"
      return isConnecting
        ? .ofConnection(.unavailable, message) : ConnectError(code: .internalError, message: message)
    case .http(let error):
      return ConnectError(
        code: .internalError,
        message: "\(self.peer) broke the HTTP/3 protocol: \(HTTP3Session.text(http: error))"
      )
    case .closed:
      return nil
    }
  }

  private func closedInOrder(_ reason: String) -> ConnectError? {
    if self.isShakingHands {
      return .ofConnection(.unavailable, "\(self.peer) closed the HTTP/3 connection\(Self.suffix(reason))")
    }
    guard self.session.hasStreams else { return nil }
    return self.unavailable(
      "\(self.peer) closed the HTTP/3 connection before the response was complete\(Self.suffix(reason))"
    )
  }

  private func error(ofQUIC code: QUICErrorCode, _ reason: String) -> ConnectError? {
    let isConnecting = self.isShakingHands
    if let alert = code.alert {
      guard !isConnecting else { return self.failedHandshake(alert) }
      let text = TLSAlert.text(alert: alert)
      var broken = self.unavailable("the HTTP/3 connection to \(self.peer) broke: \(text)")
      broken.isFinal = TLSAlert.isFinal(alert: alert)
      return broken
    }
    if isConnecting {
      return .ofConnection(
        .unavailable,
        "\(self.peer) refused the QUIC connection: \(code)\(Self.suffix(reason))"
      )
    }
    switch code {
    case .noError:
      return self.closedInOrder(reason)
    case .internalError, .connectionRefused:
      return self.unavailable("\(self.peer) ended the QUIC connection: \(code)\(Self.suffix(reason))")
    default:
      return ConnectError(
        code: .internalError,
        message: "\(self.peer) ended the QUIC connection: \(code)\(Self.suffix(reason))"
      )
    }
  }

  private func failedHandshake(_ alert: UInt8) -> ConnectError {
    .failedHandshake(
      peer: self.peer,
      reason: TLSAlert.text(alert: alert),
      isFinal: TLSAlert.isFinal(alert: alert)
    )
  }

  private func unavailable(_ message: String) -> ConnectError {
    ConnectError(code: .unavailable, message: message)
  }

  private static func suffix(_ reason: String) -> String {
    reason.isEmpty ? "" : ": \(PeerText.value(reason))"
  }
}
