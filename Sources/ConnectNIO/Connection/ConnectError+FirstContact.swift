package import Connect
internal import NIOCore

/// The errors of a connection to a server that speaks another protocol than the client. New users meet these errors
/// first. They say what the server seems to speak, and what to set.
extension ConnectError {
  /// An error of a connection, to which the call adds which request it was for.
  ///
  /// - Parameter isFinal: See ``ConnectError/isFinal``.
  package static func ofConnection(
    _ code: Code,
    _ message: String,
    _ cause: (any Swift.Error)? = nil,
    isFinal: Bool = false
  ) -> ConnectError {
    var error = ConnectError(code: code, message: message, exception: cause)
    error.unnamed = .connection
    error.isFinal = isFinal
    return error
  }

  /// The same, for a server that speaks another version of HTTP than was required.
  ///
  /// - Parameter isFinal: Whether that is certain.
  static func ofVersion(
    _ code: Code,
    _ message: String,
    _ cause: (any Swift.Error)? = nil,
    isFinal: Bool = true
  ) -> ConnectError {
    var error = self.ofConnection(code, message, cause, isFinal: isFinal)
    error.unnamed = .version
    return error
  }

  /// The server has answered a request of HTTP/1.1 with HTTP/2.
  static func answeredInHTTP2(_ peer: String) -> ConnectError {
    self.ofVersion(
      .internalError,
      """
      \(peer) speaks HTTP/2, and the client has spoken HTTP/1.1: for a gRPC server, set networkProtocol to .grpc; \
      for another, make the client with NIOHTTPClient(configuration: .init(version: .http2Only))
      """
    )
  }

  /// The server has answered cleartext with TLS.
  static func answeredInTLS(_ peer: String) -> ConnectError {
    self.ofConnection(
      .internalError,
      "\(peer) speaks TLS, and the client has used none: begin the host with https://",
      isFinal: true
    )
  }

  /// The server has answered HTTP/2 with HTTP/1, which began with `bytes`.
  static func answeredInHTTP1(_ peer: String, _ bytes: ByteBuffer) -> ConnectError {
    let bytes = bytes.readableBytesView
    let status = ResponseText.line(
      String(decoding: bytes.prefix { $0 != 0x0d && $0 != 0x0a }, as: UTF8.self)[...]
    )
    let answer = "\(peer) does not speak HTTP/2 on this port: it has answered '\(status)'"
    if ResponseText.asksForTLS(String(decoding: bytes, as: UTF8.self)) {
      let message = "\(answer) and expects TLS: begin the host with https://"
      return self.ofConnection(.unavailable, message, isFinal: true)
    }
    return self.ofVersion(.unavailable, "\(answer); \(Advice.leaveHTTP2)")
  }

  /// The server has answered HTTP/2 with `bytes`, which are no protocol that is known.
  static func answeredInUnknown(_ peer: String, _ bytes: ByteBuffer) -> ConnectError {
    let start = bytes.readableBytesView.prefix(16)
    let isText = start.allSatisfy { (0x20..<0x7f).contains($0) || (0x09...0x0d).contains($0) }
    let shown =
      isText
      ? "'\(ResponseText.excerpt(of: bytes.readableBytesView.prefix(ResponseText.maximumBytes)))'"
      : start.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
    return self.ofVersion(
      .internalError,
      "\(peer) does not speak HTTP/2 on this port: it has answered \(shown); \(Advice.leaveHTTP2)"
    )
  }

  /// The connection has ended before the server had sent its HTTP/2 settings.
  ///
  /// - Parameter failure: What broke the connection; nil if the server has closed it in order.
  static func closedBeforeSettings(_ peer: String, failure: (any Swift.Error)? = nil) -> ConnectError {
    let what =
      if let failure {
        "the connection to \(peer) broke before the server had sent its HTTP/2 settings: \(TLSAlert.text(failure))"
      } else {
        "\(peer) closed the connection before it had sent its HTTP/2 settings"
      }
    let message = "\(what)\(Advice.http2Refused(by: peer))"
    // With TLS, the two have agreed on HTTP/2.
    return peer.hasPrefix("https://")
      ? self.ofConnection(.unavailable, message, failure)
      : self.ofVersion(.unavailable, message, failure, isFinal: false)
  }
}

/// What to try, in words that several errors share.
enum Advice {
  static let leaveHTTP2 = """
    for a server that speaks only HTTP/1.1, set networkProtocol to .connect or .grpcWeb, and leave the configuration's \
    version at .automatic, or set it to .http1Only with a connected socket
    """

  /// For a server that closes the connection in the TLS handshake.
  static let noTLS = "a server that does not speak TLS on this port (http://) may do this"

  /// For a server that closes the connection to a client of HTTP/2, or leaves it without an answer. Empty with TLS,
  /// where client and server have agreed on the version.
  static func http2Refused(by peer: String) -> String {
    self.refused(by: peer, "speaks only HTTP/1.1")
  }

  /// For a server that closes the connection to a client of HTTP/1.1. Empty with TLS.
  static func http1Refused(by peer: String) -> String {
    self.refused(by: peer, "speaks only HTTP/2 (networkProtocol .grpc, or version .http2Only)")
  }

  private static func refused(by peer: String, _ other: String) -> String {
    if peer.hasPrefix("https://") { return "" }
    let tls = peer.hasPrefix("http://") ? "expects TLS (https://), or that " : ""
    return "; a server that \(tls)\(other) may do this"
  }
}
