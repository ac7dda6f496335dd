internal import CNgtcp2

/// libngtcp2's connection of a client. Its owner deletes it.
///
/// The functions passed to libngtcp2 capture nothing. They find the session by the pointer that was given to it, and only
/// pass things on to libnghttp3 and append to the events and the streams.
struct NGTCP2Connection {
  let pointer: OpaquePointer

  /// - Throws: ``HTTP3SetupError`` if a library refuses.
  init(
    of session: HTTP3Session,
    path: UnsafeMutablePointer<ngtcp2_path_storage>,
    limits: HTTP3SessionLimits,
    now: UInt64
  ) throws {
    var callbacks = ngtcp2_callbacks()
    connect_ngtcp2_client_callbacks(&callbacks)
    Self.setCallbacks(&callbacks)

    var settings = ngtcp2_settings()
    connect_ngtcp2_settings_default(&settings)
    settings.initial_ts = now
    settings.max_tx_udp_payload_size = limits.datagramSize ?? DatagramSize.ethernet
    if limits.datagramSize != nil {
      // Each datagram is as large as the room for it.
      settings.no_tx_udp_payload_size_shaping = 1
      settings.no_pmtud = 1
    }
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
      Unmanaged.passUnretained(session).toOpaque()
    )
    guard result == 0, let connection else { throw HTTP3SetupError(quic: result) }
    self.pointer = connection
  }

  private static func setCallbacks(_ callbacks: inout ngtcp2_callbacks) {
    callbacks.decrypt = AuthenticPackets.decrypt
    callbacks.handshake_completed = { _, userData in onSession(userData) { $0.handshakeDidComplete() } }
    callbacks.handshake_confirmed = { _, userData in onSession(userData) { $0.handshakeWasConfirmed() } }
    callbacks.recv_tx_key = { _, level, userData in
      onSession(userData) { session in
        if connect_ngtcp2_is_application(level) != 0 { session.tls.isFinished = true }
        // Without the key, nothing can be sent early.
        if connect_ngtcp2_is_early(level) != 0, session.http.early != nil {
          session.http.events.append(.early)
        }
        return 0
      }
    }
    callbacks.recv_stream_data = { _, flags, id, _, data, count, userData, _ in
      onSession(userData) { session in
        let isEnd = flags & UInt32(NGTCP2_STREAM_DATA_FLAG_FIN) != 0
        return session.http.didReceive(
          UnsafeBufferPointer(start: data, count: count),
          isEnd: isEnd,
          onStream: id
        )
      }
    }
    callbacks.acked_stream_data_offset = { _, id, _, count, userData, _ in
      onSession(userData) { $0.http.peerDidAcknowledge(count, ofStream: id) }
    }
    callbacks.stream_close = { _, flags, id, code, userData, _ in
      let isCodeSet = flags & UInt32(NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET) != 0
      return onSession(userData) {
        $0.http.streamDidClose(id, isCodeSet ? HTTP3ErrorCode(rawValue: code) : .noError)
      }
    }
    callbacks.stream_reset = { _, id, _, code, userData, _ in
      onSession(userData) { $0.http.peerDidReset(id, HTTP3ErrorCode(rawValue: code)) }
    }
    callbacks.stream_stop_sending = { _, id, _, userData, _ in
      onSession(userData) { $0.http.willReceiveNoMore(ofStream: id) }
    }
    callbacks.extend_max_local_streams_bidi = { _, _, userData in
      onSession(userData) { session in
        session.http.events.append(.room)
        return 0
      }
    }
    callbacks.extend_max_stream_data = { _, id, _, userData, _ in
      onSession(userData) { session in
        session.http.handle?.unblock(id)
        return 0
      }
    }
    callbacks.recv_stateless_reset = { _, _, userData in
      onSession(userData) { session in
        session.ending = session.ending ?? .statelessReset
        return 0
      }
    }
  }

  func delete() { ngtcp2_conn_del(self.pointer) }

  // MARK: Facts

  /// When libngtcp2 has something to do; nil for never.
  var expiry: UInt64? {
    let expiry = ngtcp2_conn_get_expiry(self.pointer)
    return expiry == .max ? nil : expiry
  }

  /// How many more streams the peer allows now.
  var streamRoom: Int { Int(clamping: ngtcp2_conn_get_streams_bidi_left(self.pointer)) }

  /// The silence after which the peer forgets the connection, in nanoseconds; 0 if it does not.
  var peerIdleTimeout: UInt64 { connect_ngtcp2_get_remote(self.pointer).max_idle_timeout }

  /// How many bytes were sent and neither acknowledged nor found lost.
  var bytesInFlight: UInt64 { connect_ngtcp2_get_facts(self.pointer).bytes_in_flight }

  /// The time that a datagram and its acknowledgement take, in nanoseconds.
  var roundTrip: UInt64 { connect_ngtcp2_get_facts(self.pointer).latest_round_trip }

  /// Whether the peer takes no more bytes of any stream now.
  var isWindowClosed: Bool { ngtcp2_conn_get_max_data_left(self.pointer) == 0 }

  /// The largest datagram that is known to pass.
  var pathDatagramSize: Int { ngtcp2_conn_get_path_max_tx_udp_payload_size(self.pointer) }

  // MARK: Settings

  /// Sends a PING whenever nothing was sent or received for this many nanoseconds; nil for no pings.
  func setKeepalive(_ interval: UInt64?) {
    ngtcp2_conn_set_keep_alive_timeout(self.pointer, interval ?? 0)
  }

  /// Gives `count` bytes back to the peer's windows.
  func extendWindows(ofStream id: Int64, by count: Int) {
    guard count > 0 else { return }
    self.extendWindow(ofStream: id, by: count)
    self.extendWindow(by: count)
  }

  func extendWindow(by count: Int) { ngtcp2_conn_extend_max_offset(self.pointer, UInt64(count)) }

  func extendWindow(ofStream id: Int64, by count: Int) {
    _ = ngtcp2_conn_extend_max_stream_offset(self.pointer, id, UInt64(count))
  }

  /// Another stream of the peer may take the place of one that was closed.
  func allowAnotherStream(insteadOf id: Int64) {
    if ngtcp2_is_bidi_stream(id) == 0, ngtcp2_conn_is_local_stream(self.pointer, id) == 0 {
      ngtcp2_conn_extend_max_streams_uni(self.pointer, 1)
    }
  }
}

/// Runs `body` with the session that a callback is about.
private func onSession(_ userData: UnsafeMutableRawPointer?, _ body: (HTTP3Session) -> Int32) -> Int32 {
  guard let userData else { return NGTCP2_ERR_CALLBACK_FAILURE }
  return body(Unmanaged<HTTP3Session>.fromOpaque(userData).takeUnretainedValue())
}
