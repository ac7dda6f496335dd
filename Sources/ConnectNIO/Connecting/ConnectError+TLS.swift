package import Connect
package import NIOSSL

/// The errors of TLS, over TCP and over QUIC.
extension ConnectError {
  package static func noServerCertificate(peer: String, cause: (any Swift.Error)? = nil) -> ConnectError {
    .ofConnection(.unavailable, "TLS: \(peer) has shown no certificate that can be checked", cause)
  }

  /// - Parameter name: What the certificate should be for.
  package static func serverNameMismatch(
    peer: String,
    name: String,
    certificate: NIOSSLCertificate?,
    cause: (any Swift.Error)? = nil
  ) -> ConnectError {
    let names = certificate.flatMap { CertificateNames.text($0) }
    let others = names.map { ", but for \($0)" } ?? "; it has no subject alternative names"
    return .ofConnection(
      .unavailable,
      "TLS: hostname mismatch: the certificate of \(peer) is not for '\(name)'\(others)",
      cause
    )
  }

  package static func refusedServerCertificate(
    peer: String,
    reason: String,
    cause: (any Swift.Error)? = nil
  ) -> ConnectError {
    .ofConnection(.unavailable, "TLS: the certificate of \(peer) was not accepted: \(reason)", cause)
  }

  package static func failedHandshake(
    peer: String,
    reason: String,
    cause: (any Swift.Error)? = nil
  ) -> ConnectError {
    .ofConnection(.unavailable, "the TLS handshake with \(peer) failed: \(reason)", cause)
  }

  package static func unusableTLSConfiguration(
    _ reason: String,
    cause: (any Swift.Error)? = nil
  ) -> ConnectError {
    ConnectError(
      code: .failedPrecondition,
      message: "the client's TLS configuration cannot be used: \(reason)",
      exception: cause
    )
  }
}
