internal import CNIOBoringSSL

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Why a server's certificates are not to be trusted.
package struct CertificateRefusal: Error {
  private static let unknownAuthority = "no chain leads to a trusted authority (unknown CA)"

  /// In words, which continue a sentence about the server's own certificate.
  package let reason: String

  init(reason: String) {
    self.reason = reason
  }

  /// - Parameter fault: What BoringSSL found; nil for a certificate that would be trusted by itself.
  init(of own: Certificate, _ fault: CertificateVerifier.Fault?, by anchors: TrustAnchors, at now: Int) {
    let culprit = fault?.certificate.flatMap { $0 === own ? nil : $0 }
    self.reason =
      Self.dates(own, at: now).map { "it \($0)" }
      ?? Self.pin(own, anchors)
      ?? culprit.flatMap { culprit in
        Self.dates(culprit, at: now).map { "\(Self.role(of: culprit, above: own, anchors)) \($0)" }
      }
      ?? fault.flatMap { $0.isOfMissingIssuer ? nil : Self.meaning(of: $0.code, culprit) }
      ?? Self.namesake(own, anchors)
      ?? Self.fallback(own)
  }

  private static func pin(_ own: Certificate, _ anchors: TrustAnchors) -> String? {
    guard let anchor = anchors.anchor(equalTo: own), !anchor.fields.mayBeServer else { return nil }
    return "it is one of the trust roots, but its extended key usage does not include TLS servers"
  }

  /// What a certificate with wrong dates is to the server's own.
  private static func role(
    of culprit: Certificate,
    above own: Certificate,
    _ anchors: TrustAnchors
  ) -> String {
    let name = culprit.fields.subject
    guard anchors.anchor(equalTo: culprit) != nil else { return "the certificate of its issuer '\(name)'" }
    return own.fields.issuer == name
      ? "the trust root '\(name)' that has issued it" : "the trust root '\(name)' of its issuers"
  }

  /// What BoringSSL's errors mean, other than that there is no chain.
  ///
  /// - Parameter issuer: The certificate that is at fault; nil for the server's own.
  private static func meaning(of code: CInt, _ issuer: Certificate?) -> String? {
    let subject = issuer.map { "the certificate of its issuer '\($0.fields.subject)'" } ?? "it"
    switch Int32(code) {
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      // Trust roots with the issuer's name tell more.
      return issuer.map {
        "the certificate of its issuer '\($0.fields.subject)' has a signature that is not its issuer's"
      }
    case CertificateVerifier.Fault.weakSignature:
      return "\(subject) is signed with MD5 or SHA-1, which can be forged"
    case X509_V_ERR_INVALID_PURPOSE:
      return "\(subject) is not valid for a server: its extended key usage does not include TLS servers"
    case X509_V_ERR_INVALID_CA:
      return "\(subject) is no certificate authority's (basic constraints)"
    case X509_V_ERR_PATH_LENGTH_EXCEEDED:
      return "\(subject) allows fewer authorities below it (basic constraints)"
    case X509_V_ERR_NO_EXPLICIT_POLICY, X509_V_ERR_INVALID_POLICY_EXTENSION:
      return "the policy constraints of its chain are not met"
    case X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION,
      X509_V_ERR_NAME_CONSTRAINTS_WITHOUT_SANS:
      let names = issuer.map { "the names of its issuer '\($0.fields.subject)'" } ?? "its names"
      return "an authority of its chain may not vouch for \(names) (name constraints)"
    default:
      let text = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
      return "\(subject) cannot be verified: \(text)"
    }
  }

  /// What a trust root with the right name tells.
  private static func namesake(_ own: Certificate, _ anchors: TrustAnchors) -> String? {
    if anchors.all.contains(where: { $0.fields.subject == own.fields.subject }) {
      return """
        a trust root has its name, '\(own.fields.subject)', but is another certificate, and no chain leads to a trust \
        root (unknown CA)
        """
    }
    guard let issuer = anchors.all.first(where: { $0.fields.subject == own.fields.issuer })?.fields else {
      return nil
    }
    let name = issuer.subject
    if !issuer.isOfAuthority {
      return "its issuer '\(name)' is a trust root, but no certificate authority (basic constraints)"
    }
    if !issuer.maySignCertificates {
      return "its issuer '\(name)' is a trust root, but may not sign certificates (key usage)"
    }
    if !issuer.mayBeServer {
      return "its issuer '\(name)' is a trust root, but its extended key usage does not include TLS servers"
    }
    return "its issuer has the name of a trust root, '\(name)', but that has not signed it (unknown CA)"
  }

  private static func fallback(_ own: Certificate) -> String {
    own.fields.isSelfIssued
      ? "it is self-signed, '\(own.fields.subject)', and none of the trust roots (unknown CA)"
      : "\(self.unknownAuthority); its issuer is '\(own.fields.issuer)'"
  }

  private static func dates(_ certificate: Certificate, at now: Int) -> String? {
    switch certificate.validity(at: now) {
    case .valid: nil
    case .expired: "has expired: it was valid until \(self.date(certificate.notAfter))"
    case .notYetValid: "is not valid yet: it will be from \(self.date(certificate.notBefore))"
    }
  }

  /// For example `2030-12-31T23:59:59Z`.
  static func date(_ seconds: Int) -> String {
    var (seconds, fields) = (time_t(seconds), tm())
    guard gmtime_r(&seconds, &fields) != nil else { return "\(seconds) s since 1970" }
    func digits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let date = "\(fields.tm_year + 1900)-\(digits(fields.tm_mon + 1))-\(digits(fields.tm_mday))"
    return "\(date)T\(digits(fields.tm_hour)):\(digits(fields.tm_min)):\(digits(fields.tm_sec))Z"
  }
}
