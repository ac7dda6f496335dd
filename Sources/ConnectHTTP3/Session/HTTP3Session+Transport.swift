internal import CNghttp3
internal import CNgtcp2
internal import Connect

// What libngtcp2 calls while it reads and writes. The functions passed to it capture nothing. They find the session and
// the stream by the pointers that were given to it. They only pass things on to libnghttp3 and append to the session
// and the stream.

func sessionPointed(to userData: UnsafeMutableRawPointer?) -> HTTP3Session? {
  userData.map { Unmanaged<HTTP3Session>.fromOpaque($0).takeUnretainedValue() }
}

func streamPointed(to userData: UnsafeMutableRawPointer?) -> HTTP3Stream? {
  userData.map { Unmanaged<HTTP3Stream>.fromOpaque($0).takeUnretainedValue() }
}

extension HTTP3Session {
  static func setTransportCallbacks(_ callbacks: inout ngtcp2_callbacks) {
    callbacks.decrypt = AuthenticPackets.decrypt
    callbacks.handshake_completed = { _, userData in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      return session.handshakeDidComplete()
    }
    callbacks.handshake_confirmed = { _, userData in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      return session.handshakeWasConfirmed()
    }
    callbacks.recv_tx_key = { _, level, userData in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      // Without the key, nothing can be sent early.
      if connect_ngtcp2_is_early(level) != 0, session.early != nil { session.events.append(.early) }
      return 0
    }
    callbacks.recv_stream_data = { _, flags, id, _, data, count, userData, _ in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      let isEnd = flags & UInt32(NGTCP2_STREAM_DATA_FLAG_FIN) != 0
      return session.didReceive(UnsafeBufferPointer(start: data, count: count), isEnd: isEnd, onStream: id)
    }
    callbacks.acked_stream_data_offset = { _, id, _, count, userData, _ in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      return session.peerDidAcknowledge(count, ofStream: id)
    }
    callbacks.stream_close = { _, flags, id, code, userData, _ in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      let isCodeSet = flags & UInt32(NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET) != 0
      return session.streamDidClose(id, isCodeSet ? HTTP3ErrorCode(rawValue: code) : .noError)
    }
    callbacks.stream_reset = { _, id, _, code, userData, _ in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      return session.peerDidReset(id, HTTP3ErrorCode(rawValue: code))
    }
    callbacks.stream_stop_sending = { _, id, _, userData, _ in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      return session.willReceiveNoMore(ofStream: id)
    }
    callbacks.extend_max_local_streams_bidi = { _, _, userData in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      session.events.append(.room)
      return 0
    }
    callbacks.extend_max_stream_data = { _, id, _, userData, _ in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      if let http = session.http { _ = nghttp3_conn_unblock_stream(http, id) }
      return 0
    }
    callbacks.recv_stateless_reset = { _, _, userData in
      guard let session = sessionPointed(to: userData) else { return NGTCP2_ERR_CALLBACK_FAILURE }
      session.ending = session.ending ?? .statelessReset
      return 0
    }
  }

  private func handshakeDidComplete() -> Int32 {
    self.isEstablished = true
    guard self.http == nil ? self.startHTTP() : self.endEarly() else { return NGTCP2_ERR_CALLBACK_FAILURE }
    // A server that has asked for a client certificate may still refuse the client.
    if !self.tls.wasAskedForCertificate { self.events.append(.established) }
    return 0
  }

  /// A server can confirm the handshake only after it has received the client's last message. If it does so before,
  /// libngtcp2 0.12 drops the state of the handshake, and then uses it in the next write.
  private func handshakeWasConfirmed() -> Int32 {
    guard self.hasWrittenSince else {
      self.end(transportError: NGTCP2_ERR_PROTO)
      return NGTCP2_ERR_CALLBACK_FAILURE
    }
    self.isConfirmed = true
    if self.tls.wasAskedForCertificate { self.events.append(.established) }
    return 0
  }

  private func didReceive(_ data: UnsafeBufferPointer<UInt8>, isEnd: Bool, onStream id: Int64) -> Int32 {
    guard let http = self.http, let connection = self.connection else { return NGTCP2_ERR_CALLBACK_FAILURE }
    if let stream = self.streams[id], stream.isMalformed {
      self.extendWindows(ofStream: id, by: data.count)
      return 0
    }
    let consumed = nghttp3_conn_read_stream(http, id, data.baseAddress, data.count, isEnd ? 1 : 0)
    guard consumed >= 0 else {
      let error = Int32(truncatingIfNeeded: consumed)
      if let stream = self.streams[id], let failure = self.streamFailure(error, stream) {
        // The rest of it is skipped; other streams go on.
        stream.isMalformed = true
        self.extendWindows(ofStream: id, by: data.count)
        self.events.append(.failed(stream, failure, .messageError))
        return 0
      }
      self.httpError = error
      self.brokenStreamID = id
      return NGTCP2_ERR_CALLBACK_FAILURE
    }
    // `consumed` does not count the content of DATA frames.
    _ = ngtcp2_conn_extend_max_stream_offset(connection, id, UInt64(consumed))
    ngtcp2_conn_extend_max_offset(connection, UInt64(consumed))
    return 0
  }

  func extendWindows(ofStream id: Int64, by count: Int) {
    guard let connection = self.connection, count > 0 else { return }
    _ = ngtcp2_conn_extend_max_stream_offset(connection, id, UInt64(count))
    ngtcp2_conn_extend_max_offset(connection, UInt64(count))
  }

  /// libnghttp3 0.8 forgets an unsent end without data when it hears that all before it was acknowledged. So the
  /// acknowledgement is held back until the end is sent.
  private func peerDidAcknowledge(_ count: UInt64, ofStream id: Int64) -> Int32 {
    guard let http = self.http else { return 0 }
    if let stream = self.streams[id], stream.isEndWaiting {
      stream.heldAcknowledgement += count
      return 0
    }
    let result = nghttp3_conn_add_ack_offset(http, id, count)
    guard result == 0 || result == NGHTTP3_ERR_STREAM_NOT_FOUND else {
      self.httpError = result
      return NGTCP2_ERR_CALLBACK_FAILURE
    }
    return 0
  }

  private func streamDidClose(_ id: Int64, _ code: HTTP3ErrorCode) -> Int32 {
    if let http = self.http {
      let result = nghttp3_conn_close_stream(http, id, code.rawValue)
      guard result == 0 || result == NGHTTP3_ERR_STREAM_NOT_FOUND else {
        self.httpError = result
        self.brokenStreamID = id
        return NGTCP2_ERR_CALLBACK_FAILURE
      }
    }
    if let stream = self.streams.removeValue(forKey: id) {
      stream.isClosed = true
      stream.outbound.removeAll()
      self.events.append(.closed(stream))
    } else if let connection = self.connection, ngtcp2_is_bidi_stream(id) == 0,
      ngtcp2_conn_is_local_stream(connection, id) == 0
    {
      ngtcp2_conn_extend_max_streams_uni(connection, 1)
    }
    return 0
  }

  /// libnghttp3 wants to tell the peer of each stream whose response is not read to its end. It refuses with QPACK_FATAL
  /// if it has too much to tell. Without a dynamic table, the peer need not be told (RFC 9204, section 2.2.2.2).
  private func willReceiveNoMore(ofStream id: Int64) -> Int32 {
    guard let http = self.http else { return 0 }
    let result = nghttp3_conn_shutdown_stream_read(http, id)
    guard [0, NGHTTP3_ERR_STREAM_NOT_FOUND, NGHTTP3_ERR_QPACK_FATAL].contains(result) else {
      self.httpError = result
      self.brokenStreamID = id
      return NGTCP2_ERR_CALLBACK_FAILURE
    }
    return 0
  }

  private func peerDidReset(_ id: Int64, _ code: HTTP3ErrorCode) -> Int32 {
    let result = self.willReceiveNoMore(ofStream: id)
    guard result == 0 else { return result }
    if let stream = self.streams[id] { self.events.append(.reset(stream, code)) }
    return 0
  }

  /// The peer does not want the rest of the request (STOP_SENDING), which libngtcp2 tells when there is more to send.
  /// It has reset that side of the stream; the response may go on.
  func peerWantsNoMore(ofStream id: Int64) {
    if let http = self.http { nghttp3_conn_shutdown_stream_write(http, id) }
    guard let stream = self.streams[id] else { return }
    stream.request = .ended
    stream.outbound.removeWaiting()
    if stream.owesWritable {
      stream.owesWritable = false
      self.events.append(.drained(stream))
    }
  }
}
