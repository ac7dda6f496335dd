internal import Connect
internal import ConnectNIO

/// Why a connection ends, as an error of its calls.
struct HTTP3CloseReasons {
  let state: ConnectionState
  let session: HTTP3Session
  let handshake: HTTP3Handshake
  private var peer: String { self.state.peer }
  private var isShakingHands: Bool { self.handshake.isGoingOn }

  /// Why the channel has failed.
  var lostChannel: ConnectError {
    guard let error = self.state.channelError else { return self.state.closedError }
    let text = SystemErrorText.of(error)
    if self.isShakingHands {
      let address = self.state.facts.remoteAddress.map { "\($0): " } ?? ""
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
  func error(of ending: HTTP3Ending) -> ConnectError? {
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
      guard isConnecting || self.session.http.hasStreams else { return nil }
      return self.unavailable(
        "the HTTP/3 connection broke: nothing came from \(self.peer) until its idle timeout"
      )
    case .tls(let alert, let libraryError):
      guard libraryError == 0 else {
        let reason = LibraryText.tls(libraryError)
        return .failedHandshake(peer: self.peer, reason: reason, isFinal: false)
      }
      return self.failedHandshake(alert)
    case .transport(let error):
      let message = "\(self.peer) broke QUIC: \(LibraryText.transport(error))"
      return isConnecting
        ? .ofConnection(.unavailable, message) : ConnectError(code: .internalError, message: message)
    case .http(let error):
      return ConnectError(
        code: .internalError,
        message: "\(self.peer) broke the HTTP/3 protocol: \(LibraryText.http(error))"
      )
    case .closed:
      return nil
    }
  }

  private func closedInOrder(_ reason: String) -> ConnectError? {
    if self.isShakingHands {
      return .ofConnection(.unavailable, "\(self.peer) closed the HTTP/3 connection\(Self.suffix(reason))")
    }
    guard self.session.http.hasStreams else { return nil }
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

  /// Whether the connection has ended since one of the peers broke the protocol, and not in the response to this stream.
  ///
  /// libnghttp3 tells the stream. If that is none of a request, or not known, no stream is to blame. Then all calls may be
  /// made again, unless there is only one: it would meet the same peer, and nobody has disturbed it.
  func isInnocent(_ stream: HTTP3Stream, among count: Int, of error: ConnectError) -> Bool {
    guard error.code == .internalError else { return false }
    if let id = self.session.http.brokenStreamID, id & 3 == 0 { return stream.id != id }
    return count > 1
  }
}
