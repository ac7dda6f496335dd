package import Connect
package import ConnectChannels

/// What the server of a connection has shown, and what came of it. A connection keeps it.
package final class PeerCertificates: Sendable {
  /// What the server has shown, its own certificate first, in DER.
  package let shown: [[UInt8]]
  /// The verified chain, from the server's own certificate to the trusted one, in DER. What was shown if any certificate is
  /// accepted.
  package let chain: [[UInt8]]
  /// The names in the server's own certificate.
  package let names: PresentedIdentifiers
  /// When the first certificate that counts expires, or a revocation list that was needed, in seconds since 1970.
  package let expiry: Int

  package init(shown: [[UInt8]], chain: [[UInt8]], names: PresentedIdentifiers, expiry: Int) {
    self.shown = shown
    self.chain = chain
    self.names = names
    self.expiry = expiry
  }

  package func info(version: String?, applicationProtocol: String?) -> HTTPConnectionInfo.TLS {
    HTTPConnectionInfo.TLS(
      version: version,
      applicationProtocol: applicationProtocol,
      certificates: self.shown,
      names: CertificateNames(self.names)
    )
  }
}

/// Two are equal if they are the same object.
extension PeerCertificates: Hashable {
  package static func == (one: PeerCertificates, other: PeerCertificates) -> Bool { one === other }

  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension CertificateNames {
  package init(_ names: PresentedIdentifiers) {
    self.init(
      dnsNames: names.dnsNames.map { String(decoding: $0, as: UTF8.self) },
      ipAddresses: names.addresses.compactMap { IPAddress(bytes: $0)?.description },
      uris: names.uris.map { String(decoding: $0, as: UTF8.self) }
    )
  }
}
