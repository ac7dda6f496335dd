internal import Connect
internal import ConnectChannels
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// What went wrong while connecting, in words that name the origin and the step.
extension Connector {
  func timedOut(_ step: String, after limit: Duration, advice: String = "") -> ConnectError {
    .ofConnection(.unavailable, "\(step) \(self.origin) timed out after \(limit)\(advice)")
  }

  /// The server does not speak HTTP/2, which is required.
  func noHTTP2(_ reason: String, cause: (any Error)? = nil) -> ConnectError {
    let need =
      self.configuration.version == .http2Only
      ? "the only version that the client's configuration allows" : "which gRPC needs"
    return .ofVersion(
      .unavailable,
      "\(self.origin) does not speak HTTP/2, \(need): \(reason); \(Advice.leaveHTTP2)",
      cause
    )
  }

  func describe(connectFailure error: any Error, to attempt: PooledConnection) -> ConnectError {
    switch error {
    case let error as ConnectError:
      return error
    case ChannelError.connectTimeout:
      return self.timedOut("connecting to\(self.proxyText)", after: attempt.timeLimit)
    default:
      let reason = "\(attempt.address): \(Self.text(error))"
      return self.unavailable("cannot connect to\(self.proxyText) \(self.origin) (\(reason))", error)
    }
  }

  /// The words before the origin in errors of the connection to its proxy; empty without a proxy.
  private var proxyText: String {
    self.route.map { " the proxy \($0.proxy) for" } ?? ""
  }

  /// A few words for a list of addresses; nil if the error is not of the address.
  func reason(of error: any Error, to attempt: PooledConnection) -> String? {
    switch error {
    // A list of addresses names the origin, but not the proxy.
    case _ where self.route != nil: nil
    case is ConnectError: nil
    case ChannelError.connectTimeout: "timed out after \(attempt.timeLimit)"
    default: Self.text(error)
    }
  }

  func describe(tlsFailure error: any Error) -> ConnectError {
    let peer = self.origin.description
    switch error {
    case NIOSSLError.unableToValidateCertificate, NIOSSLError.noCertificateToValidate:
      return .noServerCertificate(peer: peer, cause: error)
    case ChannelError.eof:
      return self.unavailable(
        "\(peer) closed the connection during the TLS handshake; \(Advice.noTLS)",
        error
      )
    case NIOSSLError.handshakeFailed(.sslError(let stack)) where stack == [.eofDuringHandshake]:
      return self.unavailable(
        "\(peer) closed the connection during the TLS handshake; \(Advice.noTLS)",
        error
      )
    case NIOSSLError.handshakeFailed(let cause):
      if cause.isNoCommonApplicationProtocol, self.version == .http2Only {
        return self.noHTTP2("it has refused h2 in the TLS handshake (ALPN)", cause: error)
      }
      let isFinal = TLSAlert.isFinal(cause)
      return .failedHandshake(peer: peer, reason: TLSAlert.text(cause), isFinal: isFinal, cause: error)
    case is NIOSSLExtraError:
      return .ofConnection(.unavailable, "TLS with \(peer) is not possible: \(error)", error, isFinal: true)
    default:
      let reason = error is IOError ? Self.text(error) : TLSAlert.text(error)
      return .failedHandshake(peer: peer, reason: reason, isFinal: TLSAlert.isFinal(error), cause: error)
    }
  }

  private func unavailable(_ message: String, _ cause: any Error) -> ConnectError {
    .ofConnection(.unavailable, message, cause)
  }

  static func text(_ error: any Error) -> String { SystemErrorText.of(error) }
}

/// What the system says of errors.
package enum SystemErrorText {
  /// The system's own words for an error number, else the error's description.
  package static func of(_ error: any Error) -> String {
    let cause = (error as? NIOConnectionError)?.connectionErrors.last?.error ?? error
    guard let error = cause as? IOError, let text = strerror(error.errnoCode) else {
      return String(describing: cause)
    }
    return String(cString: text)
  }
}

extension BoringSSLError {
  fileprivate var isNoCommonApplicationProtocol: Bool {
    TLSAlert.names(in: self).contains("TLSV1_ALERT_NO_APPLICATION_PROTOCOL")
  }
}
