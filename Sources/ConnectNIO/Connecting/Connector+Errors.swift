internal import Connect
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
  func timedOut(_ step: String) -> ConnectError {
    ConnectError(
      code: .unavailable,
      message: "\(step) \(self.origin) timed out after \(self.configuration.timeouts.connect)"
    )
  }

  /// The server does not speak HTTP/2, without which nothing goes.
  func noHTTP2(_ reason: String, cause: (any Error)? = nil) -> ConnectError {
    let need =
      self.configuration.version == .http2Only
      ? "the only version that the client's configuration allows" : "which gRPC needs"
    return ConnectError(
      code: .unavailable,
      message: "\(self.origin) does not speak HTTP/2, \(need): \(reason)",
      exception: cause
    )
  }

  func describe(connectFailure error: any Error) -> ConnectError {
    switch error {
    case let error as ConnectError:
      return error
    case ChannelError.connectTimeout:
      return self.timedOut("connecting to")
    case let error as NIOConnectionError:
      return self.describe(error)
    default:
      return self.unavailable("cannot connect to \(self.origin): \(Self.text(error))", error)
    }
  }

  private func describe(_ error: NIOConnectionError) -> ConnectError {
    let failures = error.connectionErrors
    if failures.isEmpty, let cause = error.dnsAError ?? error.dnsAAAAError {
      return self.unavailable("cannot resolve the name of \(self.origin): \(Self.text(cause))", error)
    }
    if !failures.isEmpty, failures.allSatisfy({ Self.isTimeout($0.error) }) {
      return self.timedOut("connecting to")
    }
    var reasons: [String] = []
    for failure in failures {
      let target = RemoteAddress.text(failure.target) ?? "\(failure.target)"
      reasons.append("\(target): \(Self.text(failure.error))")
    }
    return self.unavailable("cannot connect to \(self.origin) (\(reasons.joined(separator: "; ")))", error)
  }

  func describe(tlsFailure error: any Error, certificate: NIOSSLCertificate?) -> ConnectError {
    let peer = self.origin.description
    switch error {
    case let error as NIOSSLExtraError where error == .failedToValidateHostname:
      let name = self.configuration.tls.serverName ?? self.origin.host
      return self.unavailable(
        "TLS: hostname mismatch: the certificate of \(peer) is not for '\(name)'",
        error
      )
    case NIOSSLError.unableToValidateCertificate, NIOSSLError.noCertificateToValidate:
      return self.unavailable("TLS: \(peer) has shown no certificate that can be checked", error)
    case ChannelError.eof:
      return self.unavailable("\(peer) closed the connection during the TLS handshake", error)
    case NIOSSLError.handshakeFailed(.sslError(let stack)) where stack == [.eofDuringHandshake]:
      return self.unavailable("\(peer) closed the connection during the TLS handshake", error)
    case NIOSSLError.handshakeFailed(let cause):
      let text = String(describing: cause)
      if text.contains("CERTIFICATE_VERIFY_FAILED") {
        let reason = Self.whyUntrusted(certificate)
        return self.unavailable("TLS: the certificate of \(peer) was not accepted: \(reason)", error)
      }
      if cause.isNoCommonApplicationProtocol, self.version == .http2Only {
        return self.noHTTP2("it has refused h2 in the TLS handshake (ALPN)", cause: error)
      }
      let names = TLSAlert.names(in: cause).joined(separator: ", ")
      let reason = TLSAlert.meaning(of: cause) ?? (names.isEmpty ? text : names)
      return self.unavailable("the TLS handshake with \(peer) failed: \(reason)", error)
    case is NIOSSLExtraError:
      return self.unavailable("TLS with \(peer) is not possible: \(error)", error)
    default:
      return self.unavailable("the TLS handshake with \(peer) failed: \(Self.text(error))", error)
    }
  }

  private func unavailable(_ message: String, _ cause: any Error) -> ConnectError {
    ConnectError(code: .unavailable, message: message, exception: cause)
  }

  private static func isTimeout(_ error: any Error) -> Bool {
    if case ChannelError.connectTimeout = error { true } else { false }
  }

  /// BoringSSL says through NIOSSL only that verification failed. The certificate's dates tell one cause; the
  /// usual other one is its issuer.
  private static func whyUntrusted(_ certificate: NIOSSLCertificate?) -> String {
    let untrusted = "no chain leads to a trusted authority (unknown CA), or it is not valid"
    guard let certificate else { return untrusted }
    let now = time(nil)
    if certificate.notValidAfter < now { return "it has expired" }
    if certificate.notValidBefore > now { return "it is not valid yet" }
    return untrusted
  }

  /// The system's own words for an error number, else the error's description.
  private static func text(_ error: any Error) -> String {
    guard let error = error as? IOError, let text = strerror(error.errnoCode) else {
      return String(describing: error)
    }
    return String(cString: text)
  }
}

extension BoringSSLError {
  fileprivate var isNoCommonApplicationProtocol: Bool {
    TLSAlert.names(in: self).contains("TLSV1_ALERT_NO_APPLICATION_PROTOCOL")
  }
}
