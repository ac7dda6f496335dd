package import Connect
package import ConnectChannels

/// Judges the certificates that a server shows, in the handshakes of TCP and of QUIC alike: whether they are to be trusted,
/// and whether they are this server's.
package struct ServerCertificateCheck: Sendable {
  private let verifier: CertificateVerifier
  private let identity: ReferenceIdentifier
  private let peer: String

  /// - Parameters:
  ///   - identity: What the server's own certificate has to name.
  ///   - peer: The origin, for errors.
  package init(_ verifier: CertificateVerifier, identity: ReferenceIdentifier, peer: String) {
    self.verifier = verifier
    self.identity = identity
    self.peer = peer
  }

  /// - Parameter chain: What the server has shown, its own certificate first, in DER.
  /// - Returns: When the first certificate that counts expires, in seconds since 1970.
  /// - Throws: The error of a server that is not to be trusted.
  package func check(_ chain: [[UInt8]]) throws(ConnectError) -> Int {
    let certificates = chain.compactMap { Certificate(der: $0) }
    guard certificates.count == chain.count, let own = certificates.first else {
      throw .noServerCertificate(peer: self.peer)
    }
    let expiry: Int
    do throws(CertificateRefusal) {
      expiry = try self.verifier.verify(own, issuers: Array(certificates.dropFirst()))
    } catch {
      throw .refusedServerCertificate(peer: self.peer, reason: error.reason)
    }
    guard self.identity.matches(own.fields.names) else {
      throw .serverNameMismatch(
        peer: self.peer,
        name: self.identity.description,
        names: own.fields.names.text
      )
    }
    return expiry
  }
}

extension PresentedIdentifiers {
  /// The names as text, for example `localhost, 127.0.0.1`; nil if there are none.
  package var text: String? {
    let names =
      self.dnsNames.map { CertificateName.readable(String(decoding: $0, as: UTF8.self)) }
      + self.addresses.compactMap { IPAddress(bytes: $0)?.description }
    guard !names.isEmpty else { return nil }
    let shown = names.prefix(10).joined(separator: ", ")
    return names.count > 10 ? "\(shown) and \(names.count - 10) more" : shown
  }
}
