internal import Connect
internal import ConnectChannels
internal import NIOCore
internal import NIOSSL

/// Why a connection ends, as an error of its calls.
struct HTTP2CloseReasons {
  private let state: ConnectionState
  private var peer: String { self.state.peer }
  private let session: HTTP2Session
  /// What the peer has sent before its settings, or the beginning of that.
  private var firstBytes = ByteBuffer()

  init(_ state: ConnectionState, _ session: HTTP2Session) {
    self.state = state
    self.session = session
  }

  /// Why the channel has become inactive.
  var lostConnection: ConnectError? {
    if let error = self.unknownAnswerError { return error }
    if let error = self.state.channelError {
      if self.state.servedStreams == nil, case NIOSSLError.uncleanShutdown = error {
        return ConnectError(
          code: .unavailable,
          message: """
            \(self.peer) cut the connection right after the TLS handshake: \
            it may require a client certificate, or not accept the one it was shown
            """,
          exception: error
        )
      }
      if self.state.servedStreams == nil, TLSAlert.names(in: error).isEmpty {
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
      if self.session.streams.count == 0 { return self.goAway }
      return ConnectError(
        code: .unavailable,
        message:
          "\(self.peer) closed the HTTP/2 connection before the response was complete (GOAWAY, \(goAway))"
      )
    }
    if self.state.servedStreams == nil {
      return .closedBeforeSettings(self.peer)
    }
    guard self.session.streams.count > 0 else { return nil }
    return ConnectError(
      code: .unavailable,
      message: "\(self.peer) closed the HTTP/2 connection before the response was complete"
    )
  }

  /// The error of a connection that the server has ended by GOAWAY; nil if it did so in order.
  var goAway: ConnectError? {
    guard let goAway = self.session.goAway, goAway.errorCode != .noError else { return nil }
    let code = Code(http2ErrorCode: goAway.errorCode.rawValue)
    return ConnectError(code: code, message: "\(self.peer) ended the HTTP/2 connection: \(goAway)")
  }

  /// Why the session has nothing more to do; nil if everything was in order.
  var finishedSession: ConnectError? {
    if self.session.sentGoAway?.errorCode ?? .noError == .noError, self.session.goAway != nil {
      return self.goAway
    }
    return self.brokenSession
  }

  /// Why the session cannot go on.
  var brokenSession: ConnectError {
    if let error = self.unknownAnswerError { return error }
    if let sent = self.session.sentGoAway, sent.errorCode != .noError {
      return ConnectError(code: .internalError, message: "\(self.peer) broke the HTTP/2 protocol: \(sent)")
    }
    if self.session.failure?.isHeaderBlockEndless == true {
      let limit = self.session.configuration.maxHeaderListSize
      return ConnectError(
        code: .resourceExhausted,
        message:
          "\(self.peer) sent a header list that is far over the limit of \(limit) bytes (maxHeaderListSize)"
      )
    }
    let reason = self.session.failure?.reason ?? "unknown reason"
    return ConnectError(
      code: .internalError,
      message: "the HTTP/2 session with \(self.peer) failed: \(reason)"
    )
  }

  /// Whether the connection has ended since the peer broke the protocol, and not in the response to this stream.
  ///
  /// The broken frame tells the stream. If it is of the connection, or not known, no stream is to blame. Then all calls may
  /// be made again, unless there is only one: it would meet the same peer, and nobody has disturbed it.
  func isInnocent(_ stream: HTTP2Stream, of error: ConnectError) -> Bool {
    // The peer has broken the protocol, or libnghttp2 cannot go on for another reason.
    let isBroken = self.session.failure != nil || (self.session.sentGoAway?.errorCode ?? .noError) != .noError
    guard self.state.servedStreams != nil, isBroken, error.code != .unavailable else { return false }
    // The frame came for a stream whose response is complete.
    if !stream.isHeaderSent || self.session.sentGoAway?.errorCode == .streamClosed { return true }
    if let id = self.session.frameStreamID, id != 0 { return stream.id != id }
    return self.session.streams.count > 1
  }

  // MARK: Servers that do not speak HTTP/2

  /// Takes note of what the peer sends before its settings.
  ///
  /// - Returns: The error, if that shows that the peer speaks another protocol.
  mutating func foreignAnswer(continuedBy bytes: ByteBuffer) -> ConnectError? {
    let room = max(0, ResponseText.maximumBytes - self.firstBytes.readableBytes)
    self.firstBytes.writeBytes(bytes.readableBytesView.prefix(room))
    return switch PeerProtocol(self.firstBytes) {
    case .http1: .answeredInHTTP1(self.peer, self.firstBytes)
    case .tls: .answeredInTLS(self.peer)
    case .http2, nil: nil
    }
  }

  /// The peer has sent its settings.
  mutating func didReceiveSettings() { self.firstBytes = ByteBuffer() }

  /// The error of a session that is over without settings of the peer, if what came instead was no HTTP/2. A frame
  /// begins with its length, and the first one is short.
  private var unknownAnswerError: ConnectError? {
    guard self.state.servedStreams == nil, let first = self.firstBytes.readableBytesView.first, first != 0
    else {
      return nil
    }
    return .answeredInUnknown(self.peer, self.firstBytes)
  }
}
