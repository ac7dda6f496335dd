internal import CGnuTLS
internal import CNgtcp2
internal import Connect
internal import ConnectNIO

/// The TLS of one QUIC connection, on GnuTLS. libngtcp2's helper drives it.
///
/// Confined to the connection's event loop.
final class GnuTLSSession {
  private static let applicationProtocol = "h3"
  /// More certificates than these are not looked at.
  private static let maximumChain: UInt32 = 16

  let handle: gnutls_session_t
  /// Must live as long as the session.
  private let credentials: GnuTLSCredentials
  private let check: ServerCertificateCheck?
  /// Why the server is not trusted.
  private(set) var problem: ConnectError?

  /// - Parameters:
  ///   - serverName: What the server is asked for (SNI); nil for an IP address.
  ///   - check: Judges the server; nil if any is taken.
  /// - Throws: ``HTTP3SetupError`` if GnuTLS refuses.
  init(_ credentials: GnuTLSCredentials, serverName: String?, check: ServerCertificateCheck?) throws {
    self.credentials = credentials
    self.check = check
    var handle: gnutls_session_t?
    try GnuTLSCredentials.check(connect_gnutls_client_init(&handle))
    guard let handle else { throw HTTP3SetupError(reason: "GnuTLS: no session") }
    self.handle = handle
    try GnuTLSCredentials.check(ngtcp2_crypto_gnutls_configure_client_session(handle))
    try GnuTLSCredentials.check(gnutls_priority_set(handle, credentials.priorities))
    try GnuTLSCredentials.check(
      gnutls_credentials_set(
        handle,
        GNUTLS_CRD_CERTIFICATE,
        credentials.certificates.map { UnsafeMutableRawPointer($0) }
      )
    )
    let name = Self.applicationProtocol
    try GnuTLSCredentials.check(connect_gnutls_set_alpn(handle, name, UInt32(name.utf8.count)))
    if let serverName {
      try GnuTLSCredentials.check(
        gnutls_server_name_set(handle, GNUTLS_NAME_DNS, serverName, serverName.utf8.count)
      )
    }
    guard check != nil else { return }
    gnutls_session_set_verify_function(handle) { handle in
      guard
        let reference = gnutls_session_get_ptr(handle)?.assumingMemoryBound(to: ngtcp2_crypto_conn_ref.self),
        let session = sessionPointed(to: reference.pointee.user_data)
      else { return GNUTLS_E_CERTIFICATE_ERROR }
      return session.tls.verify() ? 0 : GNUTLS_E_CERTIFICATE_ERROR
    }
  }

  deinit {
    gnutls_deinit(self.handle)
  }

  /// Lets GnuTLS's callbacks find the QUIC connection. The memory has to stay until ``detach()``.
  func attach(_ reference: UnsafeMutablePointer<ngtcp2_crypto_conn_ref>) {
    gnutls_session_set_ptr(self.handle, UnsafeMutableRawPointer(reference))
  }

  func detach() {
    gnutls_session_set_ptr(self.handle, nil)
  }

  /// Whether the server wants to know who the client is. Known when the handshake is complete.
  var wasAskedForCertificate: Bool { gnutls_certificate_client_get_request_status(self.handle) != 0 }

  private func verify() -> Bool {
    var count: UInt32 = 0
    var chain: [[UInt8]] = []
    if let certificates = gnutls_certificate_get_peers(self.handle, &count) {
      chain = (0..<Int(min(count, Self.maximumChain))).map { index in
        Array(UnsafeBufferPointer(start: certificates[index].data, count: Int(certificates[index].size)))
      }
    }
    self.problem = self.check?.problem(with: chain)
    return self.problem == nil
  }
}
