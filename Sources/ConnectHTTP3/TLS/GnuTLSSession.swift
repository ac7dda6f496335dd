internal import CGnuTLS
internal import CNgtcp2
internal import Connect
internal import ConnectNIO
internal import NIOCore

/// The TLS of one QUIC connection, on GnuTLS. libngtcp2's helper drives it.
///
/// Confined to the connection's event loop.
final class GnuTLSSession {
  private static let applicationProtocol = "h3"
  /// More certificates than these are not looked at.
  private static let maximumChain: UInt32 = 16

  /// Nil once the session was closed.
  private(set) var handle: gnutls_session_t?
  /// Must live as long as the session.
  private let credentials: GnuTLSCredentials
  private let check: ServerCertificateCheck?
  /// Why the server is not trusted.
  private(set) var problem: ConnectError?

  /// - Parameters:
  ///   - serverName: What the server is asked for (SNI); nil for an IP address.
  ///   - check: Judges the server; nil if any server is accepted.
  /// - Throws: ``HTTP3SetupError`` if GnuTLS refuses.
  init(_ credentials: GnuTLSCredentials, serverName: String?, check: ServerCertificateCheck?) throws {
    self.credentials = credentials
    self.check = check
    var handle: gnutls_session_t?
    try GnuTLSCredentials.check(connect_gnutls_client_init(&handle))
    guard let handle else { throw HTTP3SetupError(reason: "GnuTLS cannot create a TLS session") }
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
    // Set in any case, else GnuTLS would do as the environment variable SSLKEYLOGFILE says.
    gnutls_session_set_keylog_function(handle) { handle, label, secret in
      if let session = sessionPointed(to: handle), let label, let secret {
        session.tls.logKey(String(cString: label), secret.pointee)
      }
      return 0
    }
    guard check != nil else { return }
    gnutls_session_set_verify_function(handle) { handle in
      guard let session = sessionPointed(to: handle) else { return GNUTLS_E_CERTIFICATE_ERROR }
      return session.tls.verify() ? 0 : GNUTLS_E_CERTIFICATE_ERROR
    }
  }

  deinit {
    self.close()
  }

  /// Lets go of what handshakes need, some 20 kB. ``problem`` stays.
  func close() {
    if let handle = self.handle { gnutls_deinit(handle) }
    self.handle = nil
  }

  /// Lets GnuTLS's callbacks find the QUIC connection. The memory has to stay until ``detach()``.
  func attach(_ reference: UnsafeMutablePointer<ngtcp2_crypto_conn_ref>) {
    gnutls_session_set_ptr(self.handle, UnsafeMutableRawPointer(reference))
  }

  func detach() {
    if let handle = self.handle { gnutls_session_set_ptr(handle, nil) }
  }

  /// Whether the server wants to know who the client is. Known when the handshake is complete.
  var wasAskedForCertificate: Bool {
    self.handle.map { gnutls_certificate_client_get_request_status($0) != 0 } ?? false
  }

  /// Appends one line to the file for secrets, if there is one.
  private func logKey(_ label: String, _ secret: gnutls_datum_t) {
    guard let file = self.credentials.keyLog, let handle = self.handle else { return }
    var (client, server) = (gnutls_datum_t(), gnutls_datum_t())
    gnutls_session_get_random(handle, &client, &server)
    file.append(ByteBuffer(string: "\(label) \(client.hexadecimal) \(secret.hexadecimal)\n"))
  }

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

/// The session that GnuTLS's callbacks are about; nil before ``GnuTLSSession/attach(_:)``.
private func sessionPointed(to handle: gnutls_session_t?) -> HTTP3Session? {
  let reference = gnutls_session_get_ptr(handle)?.assumingMemoryBound(to: ngtcp2_crypto_conn_ref.self)
  return reference.flatMap { sessionPointed(to: $0.pointee.user_data) }
}

extension gnutls_datum_t {
  fileprivate var hexadecimal: String {
    UnsafeBufferPointer(start: self.data, count: Int(self.size)).map { byte in
      let digits = String(byte, radix: 16)
      return byte < 16 ? "0\(digits)" : digits
    }.joined()
  }
}
