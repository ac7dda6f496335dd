internal import CGnuTLS
internal import Connect
internal import ConnectNIO

/// What handshakes need of GnuTLS, made once of what a TLS configuration says: the client's certificate and the choice of
/// algorithms. Making it takes milliseconds.
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
  /// Which servers are trusted, as over TCP.
  let trust: ServerTrust
  let keyLog: KeyLogFile?
  let tickets = SessionTickets()

  /// - Throws: ``HTTP3SetupError`` if GnuTLS cannot use it.
  init(_ material: TLSMaterial) throws {
    self.trust = material.trust
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
  }

  deinit {
    if let certificates = self.certificates { gnutls_certificate_free_credentials(certificates) }
    if let priorities = self.priorities { gnutls_priority_deinit(priorities) }
  }

  static func check(_ result: Int32) throws {
    guard result >= 0 else { throw HTTP3SetupError(gnutls: result) }
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
