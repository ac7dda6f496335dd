internal import Connect
package import NIOSSL

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Verifies the server of a connection. A second handshake follows if another way of verification may suit the server's
/// certificate. Confined to the connection's event loop.
package final class ServerVerification {
  private let contexts: TLSContexts
  private let origin: Origin
  /// The current way to verify, and those that are left.
  private var ways: ArraySlice<TLSContexts.Verification>
  private var verifier: PartialChainVerifier?
  private var isRefused = false
  /// The server's own certificate, as far as it is known.
  private(set) var certificate: NIOSSLCertificate?

  init(of origin: Origin, _ contexts: TLSContexts) {
    self.origin = origin
    self.contexts = contexts
    self.ways = contexts.verifications(of: origin)[...]
  }

  /// The TLS handler of the next handshake.
  func makeHandler(serverHostname: String?) throws -> NIOSSLClientHandler {
    self.verifier = nil
    self.isRefused = false
    self.certificate = nil
    guard let way = self.ways.first, let context = self.contexts.context(way) else {
      throw RefusedCertificateError()
    }
    switch (way, self.contexts.anchors) {
    case (.partialChain, let anchors?):
      let verifier = PartialChainVerifier(anchors)
      self.verifier = verifier
      return try verifier.makeHandler(context, serverHostname: serverHostname)
    case (.standard, _), (.partialChain, nil):
      return try NIOSSLClientHandler(context: context, serverHostname: serverHostname)
    }
  }

  /// Whether the certificate of a finished handshake is to be trusted.
  func accepts(_ certificate: NIOSSLCertificate) -> Bool {
    self.verifier?.accepts(certificate) ?? true
  }

  func succeeded() {
    guard let way = self.ways.first else { return }
    self.contexts.verified(self.origin, by: way)
  }

  func failed(_ error: any Error, _ certificate: NIOSSLCertificate?) {
    self.certificate = certificate
    self.isRefused =
      error is RefusedCertificateError || TLSAlert.names(in: error).contains("CERTIFICATE_VERIFY_FAILED")
  }

  /// Goes on to the other way to verify if the certificate was refused and the other way might accept it.
  func hasAnotherWay() -> Bool {
    guard self.isRefused, let other = self.ways.dropFirst().first else { return false }
    switch other {
    case .standard:
      break
    case .partialChain:
      guard let anchors = self.contexts.anchors, let certificate = self.certificate,
        anchors.anchor(equalTo: certificate) != nil || anchors.all.contains(where: \.isIntermediate)
      else { return false }
    }
    self.ways = self.ways.dropFirst()
    return true
  }
}

/// A finished handshake whose certificate is not to be trusted.
struct RefusedCertificateError: Error {}

// MARK: - Reasons

extension ServerVerification {
  static let unknownAuthority = "no chain leads to a trusted authority (unknown CA)"

  /// Why the certificate was refused, in words. BoringSSL says through NIOSSL only that it was.
  var refusal: String {
    Self.refusal(of: self.certificate, anchors: self.contexts.anchors, faulty: self.verifier?.faulty)
  }

  /// Why a server's certificate was refused, in words.
  ///
  /// - Parameters:
  ///   - anchors: What is trusted; nil for the system's roots.
  ///   - faulty: The certificate of an issuer in which a fault was found.
  package static func refusal(
    of certificate: NIOSSLCertificate?,
    anchors trusted: TrustAnchors?,
    faulty: NIOSSLCertificate?
  ) -> String {
    guard let certificate, let fields = Self.fields(certificate) else { return Self.unknownAuthority }
    if let problem = Self.dates(certificate) { return "it \(problem)" }
    let anchors = trusted?.all ?? []
    if let own = trusted?.anchor(equalTo: certificate), !own.fields.mayBeServer {
      return "it is one of the trust roots, but its extended key usage does not include TLS servers"
    }
    if let faulty, let name = Self.fields(faulty)?.subject {
      if let problem = Self.dates(faulty) { return "the certificate of its issuer '\(name)' \(problem)" }
      if Self.fields(faulty)?.hasPolicyConstraints == true {
        return
          "'\(name)' has policy constraints, which are not supported below a trust root that is not self-signed"
      }
    }
    if anchors.contains(where: { $0.fields.subject == fields.subject }) {
      return """
        a trust root has its name, '\(fields.subject)', but is another certificate, and no chain leads to a trust \
        root (unknown CA)
        """
    }
    let issuers = anchors.filter { $0.fields.subject == fields.issuer }
    if let issuer = issuers.first { return Self.reason(issuer) }
    if fields.isSelfIssued {
      return "it is self-signed, '\(fields.subject)', and none of the trust roots (unknown CA)"
    }
    return "\(Self.unknownAuthority); its issuer is '\(fields.issuer)'"
  }

  /// Why a certificate that names this issuer was refused.
  private static func reason(_ issuer: TrustAnchors.Anchor) -> String {
    let name = issuer.fields.subject
    if let problem = self.dates(issuer.certificate) {
      return "the trust root '\(name)' that has issued it \(problem)"
    }
    if !issuer.fields.isOfAuthority {
      return "its issuer '\(name)' is a trust root, but no certificate authority (basic constraints)"
    }
    if !issuer.fields.maySignCertificates {
      return "its issuer '\(name)' is a trust root, but may not sign certificates (key usage)"
    }
    if !issuer.fields.mayBeServer {
      return "its issuer '\(name)' is a trust root, but its extended key usage does not include TLS servers"
    }
    return """
      its issuer has the name of a trust root, '\(name)', but that has not signed it, or it is not valid for a server \
      (unknown CA)
      """
  }

  private static func fields(_ certificate: NIOSSLCertificate) -> CertificateFields? {
    (try? certificate.toDERBytes()).flatMap { CertificateFields(der: $0) }
  }

  private static func dates(_ certificate: NIOSSLCertificate) -> String? {
    switch certificate.validity {
    case .valid: nil
    case .expired: "has expired: it was valid until \(self.text(certificate.notValidAfter))"
    case .notYetValid: "is not valid yet: it will be from \(self.text(certificate.notValidBefore))"
    }
  }

  /// For example `2030-12-31T23:59:59Z`.
  private static func text(_ seconds: time_t) -> String {
    var (seconds, fields) = (seconds, tm())
    guard gmtime_r(&seconds, &fields) != nil else { return "\(seconds) s since 1970" }
    func digits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let date = "\(fields.tm_year + 1900)-\(digits(fields.tm_mon + 1))-\(digits(fields.tm_mday))"
    return "\(date)T\(digits(fields.tm_hour)):\(digits(fields.tm_min)):\(digits(fields.tm_sec))Z"
  }
}
