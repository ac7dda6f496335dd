internal import CNghttp3
internal import CNgtcp2
internal import Connect
internal import ConnectNIO
internal import NIOCore

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The client's half of an HTTP/3 connection without the socket: libngtcp2's connection, GnuTLS's session, and HTTP on top of
/// them (``HTTP3Layer``). Nothing else touches the C libraries.
///
/// Datagrams go in with ``receive(_:ecn:now:)`` and come out of ``fillOutput(limit:now:)``. What was found in them is
/// left in a list of events. The C callbacks only append to this list and to the streams. Nothing here calls the
/// connection, a handler or a delegate.
///
/// It knows no clock: each function is told the time, in nanoseconds since some fixed point. ``expiry`` says when
/// ``handleExpiry(now:)`` is due.
///
/// Confined to one thread, that of the connection's event loop.
final class HTTP3Session {
  let limits: HTTP3SessionLimits
  let tls: GnuTLSSession
  let http: HTTP3Layer
  private let path: UnsafeMutablePointer<ngtcp2_path_storage>

  /// Nil once the session was invalidated.
  private(set) var connection: NGTCP2Connection?

  // Changed by callbacks: no access to one of these may span a call into a C library.
  var output = HTTP3Output()
  private(set) var datagramSize: DatagramSize
  /// When the first data that the peer has to acknowledge was sent, since something was last received.
  var unansweredSince: UInt64?
  /// How the session ended; nil while it goes on.
  var ending: HTTP3Ending?
  /// Whether the handshake is complete.
  private(set) var isEstablished = false
  /// Whether something was written since, above all that message, which completes the handshake for the server.
  var hasWrittenSince = false
  /// Whether the server has confirmed the handshake: TLS has nothing more to do, unless a ticket is to come.
  private var isConfirmed = false

  /// - Throws: ``HTTP3SetupError`` if one of the C libraries refuses.
  init(
    local: SocketAddress,
    remote: SocketAddress,
    authority: String,
    tls: GnuTLSSession,
    limits: HTTP3SessionLimits,
    now: UInt64
  ) throws {
    self.limits = limits
    self.datagramSize = DatagramSize(known: limits.datagramSize)
    self.tls = tls
    self.http = HTTP3Layer(authority: authority, maximumHeaderListSize: limits.maximumHeaderListSize)
    self.path = .allocate(capacity: 1)
    self.path.initialize(to: ngtcp2_path_storage())
    local.withSockAddr { local, localCount in
      remote.withSockAddr { remote, remoteCount in
        ngtcp2_path_storage_init(
          self.path,
          local,
          ngtcp2_socklen(localCount),
          remote,
          ngtcp2_socklen(remoteCount),
          nil
        )
      }
    }
    let connection = try NGTCP2Connection(of: self, path: self.path, limits: limits, now: now)
    self.connection = connection
    self.http.connection = connection
    tls.attach(to: connection.pointer) { [weak self] in self?.didReceiveTicket() }
    if let ticket = tls.ticket { try self.startEarly(with: ticket) }
  }

  deinit {
    self.invalidate()
    self.path.deallocate()
  }

  /// Deletes the C connections and lets go of the streams.
  func invalidate() {
    self.http.invalidate()
    self.tls.detach()
    self.connection.take()?.delete()
  }

  // MARK: Time

  /// When ``handleExpiry(now:)`` is due; nil for never.
  var expiry: UInt64? {
    guard let connection = self.connection, self.ending == nil else { return nil }
    return connection.expiry
  }

  /// The time of ``expiry`` has come: what is to be sent again is in the output that follows.
  func handleExpiry(now: UInt64) {
    guard let connection = self.connection, self.ending == nil else { return }
    // The path may have become narrower (RFC 8899, section 4.3), which libngtcp2 does not look for. The time is that of
    // its second attempt to get an answer.
    if let start = self.unansweredSince, now >= start &+ 3 &* ngtcp2_conn_get_pto(connection.pointer),
      connection.pathDatagramSize > DatagramSize.smallest
    {
      self.datagramSize.giveUp()
    }
    let result = ngtcp2_conn_handle_expiry(connection.pointer, now)
    if result != 0 { self.end(transportError: result) }
  }

  // MARK: Reading

  /// Reads one datagram, whatever it is.
  ///
  /// - Parameter ecn: The two bits of explicit congestion notification.
  /// - Returns: Whether the datagram certainly comes from the peer.
  @discardableResult
  func receive(_ bytes: UnsafeRawBufferPointer, ecn: UInt32 = 0, now: UInt64) -> Bool {
    guard let connection = self.connection, self.ending == nil, !bytes.isEmpty else { return false }
    let count = AuthenticPackets.count
    let result = connect_ngtcp2_read(
      connection.pointer,
      &self.path.pointee.path,
      ecn,
      bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
      bytes.count,
      now
    )
    if result != 0 { self.end(transportError: result) }
    if self.isConfirmed, !self.tls.awaitsTicket, self.tls.handle != nil { self.closeTLS() }
    guard AuthenticPackets.count != count else { return false }
    self.unansweredSince = nil
    self.http.blocked.didReceive()
    return true
  }

  /// TLS is not needed after the handshake: libngtcp2 has the keys of packets, and updates them (RFC 9001, section 6).
  private func closeTLS() {
    if let connection = self.connection { ngtcp2_conn_set_tls_native_handle(connection.pointer, nil) }
    self.tls.close()
  }

  // MARK: Facts

  /// How many more streams the peer allows now.
  var streamRoom: Int { self.http.handle == nil ? 0 : self.connection?.streamRoom ?? 0 }

  /// The silence after which the peers forget the connection, in nanoseconds; nil if they do not.
  var idleTimeout: UInt64? {
    guard let connection = self.connection else { return nil }
    return [self.limits.idleTimeout, connection.peerIdleTimeout].filter { $0 > 0 }.min()
  }

  /// The time that a datagram and its acknowledgement take, in nanoseconds; nil before the first one.
  var roundTrip: UInt64? { self.isEstablished ? self.connection?.roundTrip : nil }

  func setKeepalive(_ interval: UInt64?) { self.connection?.setKeepalive(interval) }

  // MARK: The handshake

  func handshakeDidComplete() -> Int32 {
    guard self.tls.isServerTrusted else {
      self.end(transportError: NGTCP2_ERR_PROTO)
      return NGTCP2_ERR_CALLBACK_FAILURE
    }
    self.isEstablished = true
    self.http.early?.isHandshakeComplete = true
    guard self.http.handle == nil ? self.http.start() : self.endEarly() else {
      return NGTCP2_ERR_CALLBACK_FAILURE
    }
    // A server that has asked for a client certificate may still refuse the client.
    if !self.tls.wasAskedForCertificate { self.http.events.append(.established) }
    return 0
  }

  /// A server can confirm the handshake only after it has received the client's last message. If it does so before,
  /// libngtcp2 0.12 drops the state of the handshake, and then uses it in the next write.
  func handshakeWasConfirmed() -> Int32 {
    guard self.hasWrittenSince else {
      self.end(transportError: NGTCP2_ERR_PROTO)
      return NGTCP2_ERR_CALLBACK_FAILURE
    }
    self.isConfirmed = true
    self.datagramSize.handshakeWasConfirmed()
    if self.tls.wasAskedForCertificate { self.http.events.append(.established) }
    return 0
  }

  /// Prepares for early data: streams can be opened before the handshake, once there is a key.
  ///
  /// - Throws: ``HTTP3SetupError`` if the ticket is of no use.
  private func startEarly(with ticket: SessionTicket) throws {
    let result = connect_ngtcp2_set_early_params(
      self.connection?.pointer,
      ticket.transport,
      ticket.transport.count
    )
    guard result == 0 else { throw HTTP3SetupError(quic: result) }
    guard self.http.start() else { throw HTTP3SetupError(reason: LibraryText.http(self.http.error)) }
    self.http.early = EarlyRequests()
  }

  /// The handshake is complete: learns whether the server took the early data. If not, begins HTTP again.
  ///
  /// - Returns: Whether the connection can go on.
  private func endEarly() -> Bool {
    guard let connection = self.connection, !self.tls.acceptedEarlyData else { return true }
    let result = connect_ngtcp2_reject_early_data(connection.pointer)
    guard result == 0 else {
      self.end(transportError: result)
      return false
    }
    return self.http.restart()
  }

  /// GnuTLS has a ticket.
  private func didReceiveTicket() {
    guard let connection = self.connection, let tls = self.tls.takeSessionData() else { return }
    let transport = [UInt8](unsafeUninitializedCapacity: 1024) { bytes, count in
      count = max(0, connect_ngtcp2_get_early_params(connection.pointer, bytes.baseAddress, bytes.count))
    }
    guard !transport.isEmpty else { return }
    let ticket = SessionTicket(
      tls: tls,
      transport: transport,
      certificateExpiry: self.tls.certificates?.expiry ?? .max,
      certificates: self.tls.certificates,
      receiptTime: time(nil),
      lifetime: self.tls.ticketLifetime
    )
    self.http.events.append(.ticket(ticket))
  }
}

// MARK: - The end

extension HTTP3Session {
  /// Takes note of why libngtcp2 cannot go on.
  func end(transportError: Int32) {
    guard self.ending == nil, let connection = self.connection else { return }
    switch transportError {
    case NGTCP2_ERR_DRAINING:
      self.ending = HTTP3Ending(byPeer: connection.pointer)
    case NGTCP2_ERR_IDLE_CLOSE:
      self.ending = .idle
    case NGTCP2_ERR_RECV_VERSION_NEGOTIATION:
      self.ending = .noCommonVersion
    case NGTCP2_ERR_CRYPTO:
      let alert = ngtcp2_conn_get_tls_alert(connection.pointer)
      self.ending = .tls(alert: alert, libraryError: ngtcp2_conn_get_tls_error(connection.pointer))
    case NGTCP2_ERR_CALLBACK_FAILURE where self.http.error != 0:
      self.ending = .http(libraryError: self.http.error)
    default:
      self.ending = .transport(libraryError: transportError)
    }
  }

  /// Takes note of why libnghttp3 cannot go on.
  func end(httpError: Int32) {
    self.ending = self.ending ?? .http(libraryError: httpError)
  }

  /// The datagram that tells the peer of the end; nil if the peer is not to be told. It has `errorCode` if the session
  /// has not ended by itself. Nothing is to be sent after it.
  func closingDatagram(_ errorCode: HTTP3ErrorCode, now: UInt64) -> ByteBuffer? {
    guard let connection = self.connection else { return nil }
    var libraryError: Int32 = 0
    var alert: Int32 = -1
    var code = errorCode
    switch self.ending {
    case .closedByPeer, .brokenByPeer, .statelessReset, .noCommonVersion, .idle, .closed: return nil
    case .transport(let error): libraryError = error
    case .tls(let value, _): alert = Int32(value)
    case .http(let error): code = HTTP3ErrorCode(rawValue: nghttp3_err_infer_quic_app_error_code(error))
    case nil: self.ending = .closed(errorCode)
    }
    var buffer = ByteBuffer()
    let count = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: DatagramSize.ethernet) { bytes in
      let result = connect_ngtcp2_write_close(
        connection.pointer,
        bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
        DatagramSize.ethernet,
        libraryError,
        alert,
        code.rawValue,
        now
      )
      return max(0, Int(result))
    }
    return count > 0 ? buffer : nil
  }
}

/// What a session allows and how long it waits.
struct HTTP3SessionLimits: Sendable, Hashable {
  /// How many bytes of a response may come before they are taken.
  var streamWindow = 1 << 20
  /// How many bytes of all responses may be on their way.
  var connectionWindow = 16 << 20
  var maximumHeaderListSize = HeaderListSize.defaultLimit
  /// In nanoseconds; 0 for none.
  var idleTimeout: UInt64 = 60_000_000_000
  /// The size of datagrams that the network is known to take, in bytes; nil if that is to be found out.
  var datagramSize: Int?
}
