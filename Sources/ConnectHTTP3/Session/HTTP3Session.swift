internal import CGnuTLS
internal import CNghttp3
internal import CNgtcp2
internal import Connect
internal import ConnectNIO
internal import NIOCore

/// The client's half of an HTTP/3 connection without the socket: libngtcp2's connection, GnuTLS's session and libnghttp3's
/// connection, and the only place that touches them.
///
/// Datagrams go in with ``receive(_:ecn:now:)`` and come out of ``fillOutput(limit:now:)``. What was found in them is
/// left in a list of events. The C callbacks only append to this list and to the streams. Nothing here calls the
/// connection, a handler or a delegate.
///
/// It knows no clock: each function is told the time, in nanoseconds since some fixed point. ``expiry`` says when
/// ``handleExpiry(now:)`` is due.
///
/// Confined to one thread, that of the connection's event loop. The session holds each stream until libngtcp2 has
/// forgotten it, or until the session is invalidated.
final class HTTP3Session {
  /// The room for a datagram, in bytes: what fits an Ethernet frame with IPv6. Connections begin with 1,200 bytes;
  /// libngtcp2 tries whether the path takes larger ones (RFC 9000, section 14.3).
  static let maximumDatagram = 1452
  /// What every path of QUIC takes.
  private static let smallestDatagram = 1200

  let limits: HTTP3SessionLimits
  let authority: String
  let tls: GnuTLSSession
  let path: UnsafeMutablePointer<ngtcp2_path_storage>
  let reference: UnsafeMutablePointer<ngtcp2_crypto_conn_ref>

  /// Nil once the session was invalidated.
  private(set) var connection: OpaquePointer?
  /// Nil until the handshake is complete, and once the session was invalidated.
  var http: OpaquePointer?

  // Changed by callbacks: no access to one of these may span a call into a C library.
  @exclusivity(unchecked) var events: ContiguousArray<HTTP3Event> = []
  @exclusivity(unchecked) var streams: [Int64: HTTP3Stream] = [:]
  /// Streams whose requests the peer's windows hold back, and others that were held back a moment ago.
  var blockedStreams: [Int64] = []
  /// Whether something was received since they were tried.
  var retriesBlockedStreams = false
  /// The last fields of responses and trailers, with which the next ones are compared.
  @exclusivity(unchecked) var headFields = HTTPFieldBlock()
  @exclusivity(unchecked) var trailerFields = HTTPFieldBlock()
  var requestFields = HTTP3FieldArray()
  var output = HTTP3Output()
  /// The room for a datagram now. Smaller than ``maximumDatagram`` once larger ones have stopped getting through.
  private(set) var datagramLimit = HTTP3Session.maximumDatagram
  /// When the first data that the peer has to acknowledge was sent, since something was last received.
  var unansweredSince: UInt64?
  /// How the session ended; nil while it goes on.
  var ending: HTTP3Ending?
  /// libnghttp3's error that made a callback of libngtcp2 fail.
  var httpError: Int32 = 0
  /// The stream on which the peer broke HTTP/3.
  var brokenStreamID: Int64?
  /// Requests with this identifier or a later one were not processed by the peer (RFC 9114, section 5.2). Nil without
  /// GOAWAY.
  var goAwayID: Int64?
  /// Whether the handshake is complete.
  var isEstablished = false
  /// Whether something was written since, above all what completes the handshake for the server.
  var hasWrittenSince = false
  /// Whether the server has confirmed the handshake: TLS has nothing more to do, unless a ticket is to come.
  var isConfirmed = false
  /// Nil if the connection does not send early data, or no longer does.
  var early: EarlyRequests?

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
    self.authority = authority
    self.tls = tls
    self.path = .allocate(capacity: 1)
    self.path.initialize(to: ngtcp2_path_storage())
    self.reference = .allocate(capacity: 1)
    self.reference.initialize(to: ngtcp2_crypto_conn_ref())
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
    self.connection = try Self.makeConnection(
      path: self.path,
      limits: limits,
      now: now,
      userData: Unmanaged.passUnretained(self).toOpaque()
    )
    self.reference.pointee.user_data = Unmanaged.passUnretained(self).toOpaque()
    self.reference.pointee.get_conn = { reference in
      sessionPointed(to: reference?.pointee.user_data)?.connection
    }
    tls.attach(self.reference)
    ngtcp2_conn_set_tls_native_handle(self.connection, UnsafeMutableRawPointer(tls.handle))
    if let ticket = tls.ticket { try self.startEarly(with: ticket) }
  }

  deinit {
    self.invalidate()
    self.tls.detach()
    self.path.deallocate()
    self.reference.deallocate()
  }

  /// Deletes the C connections and lets go of the streams.
  func invalidate() {
    if let http = self.http { nghttp3_conn_del(http) }
    self.http = nil
    if let connection = self.connection { ngtcp2_conn_del(connection) }
    self.connection = nil
    for stream in self.streams.values {
      stream.isClosed = true
      stream.outbound.removeAll()
    }
    self.streams = [:]
    self.early = nil
  }

  private static func makeConnection(
    path: UnsafeMutablePointer<ngtcp2_path_storage>,
    limits: HTTP3SessionLimits,
    now: UInt64,
    userData: UnsafeMutableRawPointer
  ) throws -> OpaquePointer {
    var callbacks = ngtcp2_callbacks()
    connect_ngtcp2_client_callbacks(&callbacks)
    self.setTransportCallbacks(&callbacks)

    var settings = ngtcp2_settings()
    connect_ngtcp2_settings_default(&settings)
    settings.initial_ts = now
    settings.max_tx_udp_payload_size = self.maximumDatagram
    settings.handshake_timeout = UInt64.max
    settings.cc_algo = NGTCP2_CC_ALGO_CUBIC

    var params = ngtcp2_transport_params()
    connect_ngtcp2_params_default(&params)
    params.initial_max_stream_data_bidi_local = UInt64(limits.streamWindow)
    params.initial_max_stream_data_uni = 64 << 10
    params.initial_max_data = UInt64(limits.connectionWindow)
    // The server has no streams but the control stream and QPACK's two; more are ignored (RFC 9114, section 6.2).
    params.initial_max_streams_uni = 8
    params.initial_max_streams_bidi = 0
    params.max_idle_timeout = limits.idleTimeout
    params.active_connection_id_limit = 4

    var destination = ngtcp2_cid()
    var source = ngtcp2_cid()
    guard connect_ngtcp2_random_id(&destination, 18) == 0, connect_ngtcp2_random_id(&source, 8) == 0 else {
      throw HTTP3SetupError(reason: "GnuTLS has no random numbers for the connection ids")
    }
    var connection: OpaquePointer?
    let result = connect_ngtcp2_client_new(
      &connection,
      &destination,
      &source,
      &path.pointee.path,
      &callbacks,
      &settings,
      &params,
      userData
    )
    guard result == 0, let connection else { throw HTTP3SetupError(quic: result) }
    return connection
  }

  // MARK: Time

  /// When ``handleExpiry(now:)`` is due; nil for never.
  var expiry: UInt64? {
    guard let connection = self.connection, self.ending == nil else { return nil }
    let expiry = ngtcp2_conn_get_expiry(connection)
    return expiry == .max ? nil : expiry
  }

  /// The time of ``expiry`` has come: what is to be sent again is in the output that follows.
  func handleExpiry(now: UInt64) {
    guard let connection = self.connection, self.ending == nil else { return }
    // The path may have become narrower (RFC 8899, section 4.3), which libngtcp2 does not look for. The time is that of
    // its second attempt to get an answer.
    if let start = self.unansweredSince, now >= start &+ 3 &* ngtcp2_conn_get_pto(connection),
      ngtcp2_conn_get_path_max_tx_udp_payload_size(connection) > Self.smallestDatagram
    {
      self.datagramLimit = Self.smallestDatagram
    }
    let result = ngtcp2_conn_handle_expiry(connection, now)
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
      connection,
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
    if !self.blockedStreams.isEmpty { self.retriesBlockedStreams = true }
    return true
  }

  /// TLS is not needed after the handshake: libngtcp2 has the keys of packets, and updates them (RFC 9001, section 6).
  private func closeTLS() {
    ngtcp2_conn_set_tls_native_handle(self.connection, nil)
    self.tls.close()
  }

  // MARK: Facts

  /// How many more streams the peer allows now.
  var streamRoom: Int {
    guard let connection = self.connection, self.http != nil else { return 0 }
    return Int(clamping: ngtcp2_conn_get_streams_bidi_left(connection))
  }

  /// Whether another request can be submitted.
  var takesRequests: Bool { self.http != nil && self.ending == nil && self.goAwayID == nil }

  /// The silence after which the peers forget the connection, in nanoseconds; nil if they do not.
  var idleTimeout: UInt64? {
    guard let connection = self.connection else { return nil }
    let remote = connect_ngtcp2_get_remote(connection).max_idle_timeout
    let timeouts = [self.limits.idleTimeout, remote].filter { $0 > 0 }
    return timeouts.min()
  }

  /// How many bytes were sent and neither acknowledged nor found lost.
  var bytesInFlight: UInt64 {
    self.connection.map { connect_ngtcp2_get_facts($0).bytes_in_flight } ?? 0
  }

  /// The time that a datagram and its acknowledgement take, in nanoseconds; nil before the first one.
  var roundTrip: UInt64? {
    guard let connection = self.connection, self.isEstablished else { return nil }
    return connect_ngtcp2_get_facts(connection).latest_round_trip
  }

  /// Sends a PING whenever nothing was sent or received for this many nanoseconds; nil for no pings.
  func setKeepalive(_ interval: UInt64?) {
    guard let connection = self.connection else { return }
    ngtcp2_conn_set_keep_alive_timeout(connection, interval ?? 0)
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
}

/// A C library could not make what a connection needs.
struct HTTP3SetupError: Error, CustomStringConvertible {
  let reason: String

  init(reason: String) { self.reason = reason }

  init(quic code: Int32) { self.reason = "QUIC: \(String(cString: ngtcp2_strerror(code)))" }

  init(gnutls code: Int32) { self.reason = "GnuTLS: \(String(cString: gnutls_strerror(code)))" }

  var description: String { self.reason }
}
