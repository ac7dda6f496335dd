internal import Connect
internal import ConnectNIO
internal import NIOSSL

/// Judges the certificates that a server shows, as `ConnectNIO` does for TLS over TCP and in the same words.
struct ServerCertificateCheck {
  /// What the server's own certificate has to name.
  enum Identity {
    case name(String)
    /// An IP address in network byte order, and as text.
    case address([UInt8], String)

    var text: String {
      switch self {
      case .name(let name): name
      case .address(_, let text): text
      }
    }
  }

  let credentials: GnuTLSCredentials
  let identity: Identity
  /// The origin, for errors.
  let peer: String

  /// - Parameter chain: What the server has shown, its own certificate first, in DER.
  /// - Returns: The error of a server that is not to be trusted.
  func problem(with chain: [[UInt8]]) -> ConnectError? {
    guard let der = chain.first, let certificate = try? NIOSSLCertificate(bytes: der, format: .der) else {
      return .noServerCertificate(peer: self.peer)
    }
    if let refusal = self.refusal(of: certificate, chain) {
      return .refusedServerCertificate(peer: self.peer, reason: refusal)
    }
    let isNamed =
      switch self.identity {
      case .name(let name): CertificateNames.has(certificate, name: name)
      case .address(let address, _): CertificateNames.has(certificate, address: address)
      }
    guard isNamed else {
      return .serverNameMismatch(peer: self.peer, name: self.identity.text, certificate: certificate)
    }
    return nil
  }

  /// When the first of these certificates expires, in seconds since 1970.
  static func expiry(of chain: [[UInt8]]) -> Int {
    chain.compactMap { try? NIOSSLCertificate(bytes: $0, format: .der).notValidAfter }.min() ?? .max
  }

  private func refusal(of certificate: NIOSSLCertificate, _ chain: [[UInt8]]) -> String? {
    let anchors = self.credentials.anchors
    if let own = anchors?.anchor(equalTo: certificate) {
      if own.fields.mayBeServer, certificate.validity == .valid { return nil }
      return ServerVerification.refusal(of: certificate, anchors: anchors, faulty: nil)
    }
    let issuers = chain.dropFirst().compactMap { try? NIOSSLCertificate(bytes: $0, format: .der) }
    // GnuTLS does not look at policies. A client that cannot process them has to refuse the certificate (RFC 5280,
    // section 4.2.1.11).
    let faulty = issuers.first { $0.validity != .valid || $0.hasPolicyConstraints }
    if faulty?.hasPolicyConstraints != true, self.credentials.verify(chain) { return nil }
    return ServerVerification.refusal(of: certificate, anchors: anchors, faulty: faulty)
  }
}
