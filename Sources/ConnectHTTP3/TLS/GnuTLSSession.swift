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
  /// What libngtcp2's functions for TLS find the connection by.
  private let reference = UnsafeMutablePointer<ngtcp2_crypto_conn_ref>.allocate(capacity: 1)
  /// libngtcp2's connection; nil before and after.
  private var connection: OpaquePointer?
  private var onTicket: (() -> Void)?
  /// The program is asked about the server.
  var onQuestion: (() -> Void)?
  /// The program has decided about the server: TLS has to go on.
  var onDecision: (() -> Void)?
  /// Where the program is asked.
  private let eventLoop: any EventLoop
  /// Must live as long as the session.
  private let credentials: GnuTLSCredentials
  private let check: ServerCertificateCheck
  /// Why the server is not trusted.
  private(set) var problem: ConnectError?
  /// The program's part of the verification; nil before its turn, and if it has none.
  private(set) var decision: ServerDecision?
  /// The earlier session that this one goes on with.
  private(set) var ticket: SessionTicket?
  /// The server's certificates, once they are trusted; with a ticket, those of the earlier session until then.
  private(set) var certificates: PeerCertificates?
  /// Whether TLS has sent its last message of the handshake. libngtcp2 may say later that the handshake is complete.
  var isFinished = false
  /// Whether a ticket of the server is still to come that would be kept.
  private(set) var awaitsTicket: Bool
  /// How many seconds the newest ticket may be used.
  private(set) var ticketLifetime = 0

  /// - Parameters:
  ///   - serverName: What the server is asked for (SNI); nil for an IP address.
  ///   - check: Judges the server.
  ///   - eventLoop: Where the program is asked about the server.
  ///   - ticket: An earlier session to go on with. The server's certificate was judged then.
  ///   - keepsTicket: Whether a ticket is kept for the next connection.
  /// - Throws: ``HTTP3SetupError`` if GnuTLS refuses.
  init(
    _ credentials: GnuTLSCredentials,
    serverName: String?,
    check: ServerCertificateCheck,
    on eventLoop: any EventLoop,
    ticket: SessionTicket? = nil,
    keepsTicket: Bool = false
  ) throws {
    self.credentials = credentials
    self.check = check
    self.eventLoop = eventLoop
    self.awaitsTicket = keepsTicket
    var handle: gnutls_session_t?
    try GnuTLSCredentials.check(connect_gnutls_client_init(&handle, ticket == nil ? 0 : 1))
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
    if let ticket, gnutls_session_set_data(handle, ticket.tls, ticket.tls.count) == 0 {
      self.ticket = ticket
      self.certificates = ticket.certificates
    }
    if keepsTicket {
      gnutls_handshake_set_hook_function(
        handle,
        UInt32(GNUTLS_HANDSHAKE_NEW_SESSION_TICKET.rawValue),
        // Before the message is read, it is as it came; after that, GnuTLS has the ticket.
        Int32(GNUTLS_HOOK_BOTH)
      ) { handle, _, moment, _, message in
        guard let session = sessionPointed(to: handle) else { return 0 }
        if Int32(bitPattern: moment) == GNUTLS_HOOK_PRE {
          session.ticketLifetime = message?.pointee.ticketLifetime ?? 0
        } else {
          session.onTicket?()
        }
        return 0
      }
    }
    // Set in any case, else GnuTLS would do as the environment variable SSLKEYLOGFILE says.
    gnutls_session_set_keylog_function(handle) { handle, label, secret in
      if let session = sessionPointed(to: handle), let label, let secret {
        session.logKey(String(cString: label), secret.pointee)
      }
      return 0
    }
    gnutls_session_set_verify_function(handle) { handle in
      sessionPointed(to: handle)?.verify() ?? GNUTLS_E_CERTIFICATE_ERROR
    }
  }

  deinit {
    self.close()
    self.reference.deallocate()
  }

  /// Lets go of what handshakes need, some 20 kB. ``problem`` and ``certificates`` stay.
  func close() {
    self.onQuestion = nil
    self.onDecision = nil
    self.decision?.abandon()
    if let handle = self.handle { gnutls_deinit(handle) }
    self.handle = nil
  }

  /// Lets libngtcp2's functions find its connection, and GnuTLS's callbacks find the session.
  ///
  /// - Parameter onTicket: Is called when GnuTLS has a ticket.
  func attach(to connection: OpaquePointer, onTicket: @escaping () -> Void) {
    self.connection = connection
    self.onTicket = onTicket
    self.reference.initialize(to: ngtcp2_crypto_conn_ref())
    self.reference.pointee.user_data = Unmanaged.passUnretained(self).toOpaque()
    self.reference.pointee.get_conn = { reference in
      sessionPointed(to: reference?.pointee.user_data)?.connection
    }
    gnutls_session_set_ptr(self.handle, UnsafeMutableRawPointer(self.reference))
    ngtcp2_conn_set_tls_native_handle(connection, UnsafeMutableRawPointer(self.handle))
  }

  /// The connection is about to be deleted.
  func detach() {
    if let handle = self.handle { gnutls_session_set_ptr(handle, nil) }
    self.connection = nil
    self.onTicket = nil
    self.onQuestion = nil
    self.onDecision = nil
    self.decision?.abandon()
  }

  /// Whether the server wants to know who the client is. Known when the handshake is complete.
  var wasAskedForCertificate: Bool {
    self.handle.map { gnutls_certificate_client_get_request_status($0) != 0 } ?? false
  }

  /// Whether the server has accepted early data. Known when the handshake is complete.
  var acceptedEarlyData: Bool {
    self.handle.map { connect_gnutls_accepted_early_data($0) != 0 } ?? false
  }

  /// The session to go on with on another connection; nil if the server takes no early data then. To be called when a
  /// ticket has come.
  func takeSessionData() -> [UInt8]? {
    guard self.awaitsTicket, let handle = self.handle, gnutls_record_get_max_early_data_size(handle) > 0
    else {
      return nil
    }
    var count = 0
    guard gnutls_session_get_data(handle, nil, &count) == GNUTLS_E_SHORT_MEMORY_BUFFER || count > 0 else {
      return nil
    }
    let data = [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
      filled = gnutls_session_get_data(handle, bytes.baseAddress, &count) == 0 ? count : 0
    }
    guard !data.isEmpty else { return nil }
    self.awaitsTicket = false
    return data
  }

  /// Appends one line to the file for secrets, if there is one.
  private func logKey(_ label: String, _ secret: gnutls_datum_t) {
    guard let file = self.credentials.keyLog, let handle = self.handle else { return }
    var (client, server) = (gnutls_datum_t(), gnutls_datum_t())
    gnutls_session_get_random(handle, &client, &server)
    file.append(ByteBuffer(string: "\(label) \(client.hexadecimal) \(secret.hexadecimal)\n"))
  }

  /// Judges the server's certificates.
  ///
  /// GnuTLS calls it again for each message of the server as long as the program has not decided.
  ///
  /// - Returns: 0 to go on, `GNUTLS_E_AGAIN` to wait, `GNUTLS_E_CERTIFICATE_ERROR` to end the handshake.
  private func verify() -> Int32 {
    switch self.decision?.state {
    case nil: break
    case .accepted: return 0
    case .new, .pending: return GNUTLS_E_AGAIN
    case .refused, .abandoned: return GNUTLS_E_CERTIFICATE_ERROR
    }
    let found: PeerCertificates
    do throws(ConnectError) {
      found = try self.check.check(self.shownCertificates)
    } catch {
      self.problem = error
      return GNUTLS_E_CERTIFICATE_ERROR
    }
    guard let decision = self.check.question(about: found) else {
      self.certificates = found
      return 0
    }
    self.decision = decision
    decision.ask(on: self.eventLoop) { [weak self, weak decision] in
      guard let self, let decision else { return }
      if case .accepted = decision.state { self.certificates = found }
      self.problem = decision.refusal
      self.onDecision.take()?()
    }
    self.onQuestion.take()?()
    return GNUTLS_E_AGAIN
  }

  /// Whether the server's certificates were judged: in this handshake, or in that of the session that it goes on with.
  var isServerTrusted: Bool {
    guard let certificates = self.certificates, let handle = self.handle else { return false }
    return certificates !== self.ticket?.certificates || gnutls_session_is_resumed(handle) != 0
  }

  private var shownCertificates: [[UInt8]] {
    var count: UInt32 = 0
    guard let certificates = gnutls_certificate_get_peers(self.handle, &count) else { return [] }
    return (0..<Int(min(count, Self.maximumChain))).map { index in
      Array(UnsafeBufferPointer(start: certificates[index].data, count: Int(certificates[index].size)))
    }
  }
}

private func sessionPointed(to userData: UnsafeMutableRawPointer?) -> GnuTLSSession? {
  userData.map { Unmanaged<GnuTLSSession>.fromOpaque($0).takeUnretainedValue() }
}

/// The session that GnuTLS's callbacks are about; nil before ``GnuTLSSession/attach(to:onTicket:)``.
private func sessionPointed(to handle: gnutls_session_t?) -> GnuTLSSession? {
  let reference = gnutls_session_get_ptr(handle)?.assumingMemoryBound(to: ngtcp2_crypto_conn_ref.self)
  return reference.flatMap { sessionPointed(to: $0.pointee.user_data) }
}

extension gnutls_datum_t {
  /// How many seconds the ticket of a NewSessionTicket message may be used (RFC 8446, section 4.6.1).
  fileprivate var ticketLifetime: Int {
    guard self.size >= 4 else { return 0 }
    return UnsafeBufferPointer(start: self.data, count: 4).reduce(0) { $0 << 8 | Int($1) }
  }

  fileprivate var hexadecimal: String {
    UnsafeBufferPointer(start: self.data, count: Int(self.size)).map { byte in
      let digits = String(byte, radix: 16)
      return byte < 16 ? "0\(digits)" : digits
    }.joined()
  }
}
