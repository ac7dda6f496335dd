internal import CGnuTLS
internal import Connect
internal import ConnectNIO

/// What handshakes need of GnuTLS, made once of what a TLS configuration says: trusted authorities, the client's certificate, and
/// the choice of algorithms. Making it takes milliseconds.
///
/// `@unchecked Sendable`: GnuTLS's objects are only read after `init`, which GnuTLS allows on any thread.
final class GnuTLSCredentials: @unchecked Sendable {
  /// TLS 1.3 alone, as QUIC has it (RFC 9001, section 4.2), with the algorithms that libngtcp2 knows.
  private static let priorities = """
    NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:\
    -GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:+GROUP-SECP521R1:%DISABLE_TLS13_COMPAT_MODE
    """

  private(set) var certificates: gnutls_certificate_credentials_t?
  private(set) var priorities: gnutls_priority_t?
  /// The authorities that are trusted; nil if nothing is verified.
  private(set) var trusted: gnutls_x509_trust_list_t?
  let anchors: TrustAnchors?
  let keyLog: KeyLogFile?
  let tickets = SessionTickets()

  /// - Throws: ``HTTP3SetupError`` if GnuTLS cannot use it.
  init(_ material: TLSMaterial) throws {
    self.anchors = material.anchors
    self.keyLog = material.keyLog
    try Self.check(gnutls_certificate_allocate_credentials(&self.certificates))
    try Self.check(gnutls_priority_init(&self.priorities, Self.priorities, nil))
    if let client = material.clientCertificate {
      try client.chain.withDatum { chain in
        try client.privateKey.withDatum { key in
          try Self.check(
            gnutls_certificate_set_x509_key_mem(self.certificates, &chain, &key, GNUTLS_X509_FMT_PEM)
          )
        }
      }
    }
    guard material.verifiesServers else { return }
    if material.hasTrustSettings {
      throw HTTP3SetupError(
        reason: "HTTP/3 does not support trust roots in OpenSSL's form TRUSTED CERTIFICATE"
      )
    }
    try Self.check(gnutls_x509_trust_list_init(&self.trusted, 0))
    guard let anchors = material.anchors else {
      let count = gnutls_x509_trust_list_add_system_trust(self.trusted, 0, 0)
      guard count > 0 else { throw HTTP3SetupError(reason: "GnuTLS finds no trusted roots of the system") }
      return
    }
    // Any certificate can stand for itself, which ServerCertificateCheck looks at, but only an authority's for others.
    for anchor in anchors.all where anchor.isAuthority {
      var certificate = try Self.certificate(der: anchor.der)
      // The list owns it now.
      _ = gnutls_x509_trust_list_add_cas(self.trusted, &certificate, 1, 0)
    }
  }

  deinit {
    if let certificates = self.certificates { gnutls_certificate_free_credentials(certificates) }
    if let priorities = self.priorities { gnutls_priority_deinit(priorities) }
    if let trusted = self.trusted { gnutls_x509_trust_list_deinit(trusted, 1) }
  }

  static func check(_ result: Int32) throws {
    guard result >= 0 else { throw HTTP3SetupError(gnutls: result) }
  }

  /// The caller owns what is returned.
  static func certificate(der: [UInt8]) throws -> gnutls_x509_crt_t? {
    var certificate: gnutls_x509_crt_t?
    try self.check(gnutls_x509_crt_init(&certificate))
    let result = der.withDatum { gnutls_x509_crt_import(certificate, &$0, GNUTLS_X509_FMT_DER) }
    guard result >= 0 else {
      gnutls_x509_crt_deinit(certificate)
      throw HTTP3SetupError(gnutls: result)
    }
    return certificate
  }

  /// Whether the server's certificates, its own first, lead to a trusted authority.
  func verify(_ chain: [[UInt8]]) -> Bool {
    guard let trusted = self.trusted else { return false }
    var certificates: [gnutls_x509_crt_t?] = []
    defer { for certificate in certificates { gnutls_x509_crt_deinit(certificate) } }
    for der in chain {
      guard let certificate = try? Self.certificate(der: der) else { return false }
      certificates.append(certificate)
    }
    var status: UInt32 = 0
    let result = connect_gnutls_verify(trusted, &certificates, UInt32(certificates.count), &status)
    return result >= 0 && status == 0
  }
}

extension [UInt8] {
  /// The bytes as GnuTLS wants them, which does not change them.
  fileprivate func withDatum<R>(_ body: (inout gnutls_datum_t) throws -> R) rethrows -> R {
    try self.withUnsafeBufferPointer { bytes in
      var datum = gnutls_datum_t(
        data: UnsafeMutablePointer(mutating: bytes.baseAddress),
        size: UInt32(bytes.count)
      )
      return try body(&datum)
    }
  }
}
