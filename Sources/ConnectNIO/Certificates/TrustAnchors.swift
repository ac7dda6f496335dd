/// The certificates that are trusted (RFC 5280, section 6.1.1, calls them trust anchors).
package struct TrustAnchors: Sendable {
  package let all: [Certificate]
  /// Those whose signatures count.
  let authorities: [Certificate]
  /// Whether OpenSSL's additions say what a certificate is trusted for. Then only a self-signed authority is trusted.
  let haveTrustSettings: Bool
  private let byDER: [[UInt8]: Certificate]

  package init(_ certificates: [Certificate], haveTrustSettings: Bool = false) {
    self.all = certificates
    // BoringSSL believes what a trusted certificate has signed, even if the certificate is no authority's. Such
    // certificates are left out: the certificate of one server must not vouch for another.
    self.authorities = certificates.filter(\.fields.vouchesForServers)
    self.haveTrustSettings = haveTrustSettings
    self.byDER = Dictionary(certificates.map { ($0.der, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The certificates in a text; nil as for ``Certificate/all(inPEM:skipsUnreadable:)``.
  package init?(pem text: [UInt8], skipsUnreadable: Bool = false) {
    guard let certificates = Certificate.all(inPEM: text, skipsUnreadable: skipsUnreadable) else {
      return nil
    }
    self.init(
      certificates,
      haveTrustSettings: String(decoding: text, as: UTF8.self).contains("BEGIN TRUSTED CERTIFICATE")
    )
  }

  /// The anchor that is this very certificate, byte for byte.
  package func anchor(equalTo certificate: Certificate) -> Certificate? {
    self.byDER[certificate.der]
  }
}
