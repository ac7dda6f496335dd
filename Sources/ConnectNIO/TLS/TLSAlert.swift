internal import NIOSSL

/// What an error of TLS means, as far as BoringSSL gives it a name.
package enum TLSAlert {
  /// The names in BoringSSL's error stack, for example `WRONG_VERSION_NUMBER`; empty if `error` is not from there.
  static func names(in error: any Error) -> [String] {
    let stack: NIOBoringSSLErrorStack
    switch error {
    case NIOSSLError.handshakeFailed(let cause), NIOSSLError.shutdownFailed(let cause):
      return self.names(in: cause)
    case BoringSSLError.sslError(let errors), BoringSSLError.unknownError(let errors),
      BoringSSLError.invalidSNIName(let errors), BoringSSLError.failedToSetALPN(let errors):
      stack = errors
    default:
      return []
    }
    return stack.map { error in
      // "error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED at …"
      let text = error.description
      guard let last = text.split(separator: ":").first(where: { $0.contains(" at ") }),
        let name = last.split(separator: " ").first
      else { return text }
      return String(name)
    }
  }

  /// What to say of an error: which check has failed, or else the error's own name, without BoringSSL's source paths.
  package static func text(_ error: any Error) -> String {
    if let meaning = self.meaning(of: error) { return meaning }
    if case NIOSSLError.uncleanShutdown = error {
      return "the peer closed the connection without ending TLS (close_notify)"
    }
    let names = self.names(in: error)
    return names.isEmpty ? String(describing: error) : names.joined(separator: ", ")
  }

  /// Which check has failed, in words; nil if no word is known for it.
  ///
  /// With TLS 1.3, the handshake is over for the client before the server judges the client's certificate. These errors
  /// can therefore come at any time until the first response.
  static func meaning(of error: any Error) -> String? {
    for name in self.names(in: error) {
      if let meaning = self.meaning(ofName: name) { return "\(meaning) (\(name))" }
    }
    return nil
  }

  /// Whether client and server will not agree by a repetition either: on versions, certificates, or on speaking TLS.
  package static func isFinal(_ error: any Error) -> Bool { self.meaning(of: error) != nil }

  /// The same for an alert that the peer has sent.
  package static func isFinal(alert: UInt8) -> Bool {
    self.names[alert].flatMap { self.meaning(ofName: $0) } != nil
  }

  /// What to say of an alert of TLS (RFC 8446, section 6) that the peer has sent, in the same words.
  package static func text(alert: UInt8) -> String {
    guard let name = self.names[alert] else { return "TLS alert \(alert)" }
    return self.meaning(ofName: name).map { "\($0) (\(name))" } ?? name
  }

  /// BoringSSL's names of alerts that were received.
  private static let names: [UInt8: String] = [
    10: "SSLV3_ALERT_UNEXPECTED_MESSAGE",
    20: "SSLV3_ALERT_BAD_RECORD_MAC",
    40: "SSLV3_ALERT_HANDSHAKE_FAILURE",
    42: "SSLV3_ALERT_BAD_CERTIFICATE",
    43: "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    44: "SSLV3_ALERT_CERTIFICATE_REVOKED",
    45: "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    46: "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    47: "SSLV3_ALERT_ILLEGAL_PARAMETER",
    48: "TLSV1_ALERT_UNKNOWN_CA",
    49: "TLSV1_ALERT_ACCESS_DENIED",
    50: "TLSV1_ALERT_DECODE_ERROR",
    51: "TLSV1_ALERT_DECRYPT_ERROR",
    70: "TLSV1_ALERT_PROTOCOL_VERSION",
    71: "TLSV1_ALERT_INSUFFICIENT_SECURITY",
    80: "TLSV1_ALERT_INTERNAL_ERROR",
    109: "TLSV1_ALERT_MISSING_EXTENSION",
    110: "TLSV1_ALERT_UNSUPPORTED_EXTENSION",
    112: "TLSV1_ALERT_UNRECOGNIZED_NAME",
    116: "TLSV1_ALERT_CERTIFICATE_REQUIRED",
    120: "TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
  ]

  private static func meaning(ofName name: String) -> String? {
    switch name {
    case "TLSV1_ALERT_CERTIFICATE_REQUIRED":
      "the server requires a client certificate"
    case "SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
      "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "TLSV1_ALERT_DECRYPT_ERROR", "TLSV1_ALERT_ACCESS_DENIED":
      "the server has not accepted the client certificate, or wants one"
    case "SSLV3_ALERT_CERTIFICATE_REVOKED":
      "the server says that the client certificate has been revoked"
    case "SSLV3_ALERT_CERTIFICATE_EXPIRED":
      "the server says that the client certificate has expired"
    case "TLSV1_ALERT_UNKNOWN_CA":
      "the server does not trust the issuer of the client certificate (unknown CA)"
    case "SSLV3_ALERT_HANDSHAKE_FAILURE":
      "the server found no parameters in common, or requires a client certificate"
    case "TLSV1_ALERT_INSUFFICIENT_SECURITY":
      "the server wants stronger cryptography"
    case "TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL":
      "no common TLS version"
    case "TLSV1_ALERT_NO_APPLICATION_PROTOCOL":
      "no common version of HTTP (ALPN)"
    case "TLSV1_ALERT_UNRECOGNIZED_NAME":
      "the server does not know the name that it was asked for (SNI)"
    case "KEY_USAGE_BIT_INCORRECT":
      "the key usage of the server's certificate does not allow TLS: it lacks digitalSignature"
    case "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST":
      "the server does not speak TLS on this port; if that is meant, begin the host with http://"
    default:
      nil
    }
  }
}
