internal import Connect
package import NIOSSL

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// The certificates that a configuration names as trusted (RFC 5280, section 6.1.1, calls them trust anchors).
package struct TrustAnchors: Sendable {
  package struct Anchor: Sendable {
    package let certificate: NIOSSLCertificate
    package let der: [UInt8]
    package let fields: CertificateFields

    init(_ certificate: NIOSSLCertificate) throws {
      self.certificate = certificate
      self.der = try certificate.toDERBytes()
      guard let fields = CertificateFields(der: self.der) else { throw NIOSSLError.failedToLoadCertificate }
      self.fields = fields
    }

    /// Whether the servers whose certificates it has signed are to be trusted.
    package var isAuthority: Bool {
      self.fields.isOfAuthority && self.fields.maySignCertificates && self.fields.mayBeServer
    }

    /// An authority to which chains lead without anything special.
    var isRoot: Bool { self.isAuthority && self.fields.isSelfIssued }

    /// An authority that another one has certified. BoringSSL wants the issuer's certificate, too, by default.
    var isIntermediate: Bool { self.isAuthority && !self.fields.isSelfIssued }
  }

  package let all: [Anchor]
  private let byDER: [[UInt8]: Int]

  package init(_ certificates: [NIOSSLCertificate]) throws {
    self.all = try certificates.map { try Anchor($0) }
    self.byDER = Dictionary(
      zip(self.all.map(\.der), self.all.indices),
      uniquingKeysWith: { first, _ in first }
    )
  }

  /// The anchor that is this very certificate, byte for byte.
  package func anchor(equalTo certificate: NIOSSLCertificate) -> Anchor? {
    guard let der = try? certificate.toDERBytes() else { return nil }
    return self.byDER[der].map { self.all[$0] }
  }
}

extension NIOSSLCertificate {
  package enum Validity {
    case valid, expired, notYetValid
  }

  /// By the wall clock, and with the bounds that BoringSSL has.
  package var validity: Validity {
    let now = time(nil)
    if self.notValidAfter <= now { return .expired }
    return self.notValidBefore > now ? .notYetValid : .valid
  }

  /// Whether it has policy constraints (RFC 5280, section 4.2.1.11).
  package var hasPolicyConstraints: Bool {
    (try? self.toDERBytes()).flatMap { CertificateFields(der: $0) }?.hasPolicyConstraints == true
  }
}
