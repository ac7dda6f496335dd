package import Connect

/// The errors of TLS, over TCP and over QUIC. Those of certificates and of configurations are final: a repetition meets the
/// same certificate, or the same configuration.
extension ConnectError {
  package static func noServerCertificate(peer: String, cause: (any Swift.Error)? = nil) -> ConnectError {
    .ofConnection(.unavailable, "TLS: \(peer) has shown no certificate that can be checked", cause).asFinal
  }

  /// - Parameters:
  ///   - name: What the certificate should be for, with quotation marks.
  ///   - names: What it is for; nil for nothing.
  package static func serverNameMismatch(peer: String, name: String, names: String?) -> ConnectError {
    let others = names.map { ", but for \($0)" } ?? "; it has no subject alternative names"
    return .ofConnection(
      .unavailable,
      "TLS: hostname mismatch: the certificate of \(peer) is not for \(name)\(others)"
    ).asFinal
  }

  package static func refusedServerCertificate(peer: String, reason: String) -> ConnectError {
    .ofConnection(.unavailable, "TLS: the certificate of \(peer) was not accepted: \(reason)").asFinal
  }

  /// - Parameter cause: What the program's own verifier has thrown.
  static func refusedByServerVerifier(peer: String, _ cause: any Swift.Error) -> ConnectError {
    let text = (cause as? ConnectError)?.message ?? String(describing: cause)
    return .ofConnection(
      .unavailable,
      "TLS: the certificate of \(peer) was not accepted: the client's own verifier (serverVerifier) says: \(text)",
      cause
    ).asFinal
  }

  /// - Parameter isFinal: See ``ConnectError/isFinal``.
  package static func failedHandshake(
    peer: String,
    reason: String,
    isFinal: Bool,
    cause: (any Swift.Error)? = nil
  ) -> ConnectError {
    let message = "the TLS handshake with \(peer) failed: \(reason)"
    return .ofConnection(.unavailable, message, cause, isFinal: isFinal)
  }

  package static func unusableTLSConfiguration(
    _ reason: String,
    cause: (any Swift.Error)? = nil
  ) -> ConnectError {
    ConnectError(
      code: .failedPrecondition,
      message: "the client's TLS configuration cannot be used: \(reason)",
      exception: cause
    ).asFinal
  }
}
