internal import CNghttp3
internal import CNgtcp2
internal import Connect
internal import ConnectNIO
internal import NIOCore

// What libnghttp3 calls while it reads and writes.

extension HTTP3Session {
  /// Makes libnghttp3's connection and opens the streams that it needs. If that fails, ``httpError`` or ``ending`` say why.
  func startHTTP() -> Bool {
    guard let connection = self.connection else { return false }
    var callbacks = nghttp3_callbacks()
    Self.setHTTPCallbacks(&callbacks)
    var settings = nghttp3_settings()
    connect_nghttp3_settings_default(&settings)
    settings.max_field_section_size = UInt64(self.limits.maximumHeaderListSize)
    // Without a dynamic table for what the peer sends, no stream waits for another, and a damaged stream affects no
    // other.
    settings.qpack_max_dtable_capacity = 0
    settings.qpack_blocked_streams = 0
    settings.qpack_encoder_max_dtable_capacity = 4096
    var http: OpaquePointer?
    let userData = Unmanaged.passUnretained(self).toOpaque()
    let result = connect_nghttp3_client_new(&http, &callbacks, &settings, userData)
    guard result == 0, let http else {
      self.httpError = result
      return false
    }
    self.http = http
    var ids: [Int64] = [0, 0, 0]
    for index in ids.indices where ngtcp2_conn_open_uni_stream(connection, &ids[index], nil) != 0 {
      // The peer allows no such streams (RFC 9114, section 6.2).
      self.httpError = NGHTTP3_ERR_H3_GENERAL_PROTOCOL_ERROR
      return false
    }
    self.httpError = nghttp3_conn_bind_control_stream(http, ids[0])
    if self.httpError == 0 { self.httpError = nghttp3_conn_bind_qpack_streams(http, ids[1], ids[2]) }
    return self.httpError == 0
  }

  private static func setHTTPCallbacks(_ callbacks: inout nghttp3_callbacks) {
    callbacks.acked_stream_data = { _, _, count, _, streamData in
      streamPointed(to: streamData)?.outbound.acknowledge(Int(count))
      return 0
    }
    callbacks.recv_data = { _, id, data, count, userData, streamData in
      guard let session = sessionPointed(to: userData) else { return NGHTTP3_ERR_CALLBACK_FAILURE }
      let bytes = UnsafeRawBufferPointer(start: data, count: count)
      session.didReceiveBody(bytes, ofStream: id, streamPointed(to: streamData))
      return 0
    }
    callbacks.deferred_consume = { _, id, count, userData, _ in
      sessionPointed(to: userData)?.extendWindows(ofStream: id, by: count)
      return 0
    }
    // Blocks of several streams may come in turns, so each stream has its own block.
    callbacks.begin_headers = { _, _, userData, streamData in
      streamPointed(to: streamData)?.block = sessionPointed(to: userData)?.headFields ?? HTTPFieldBlock()
      return 0
    }
    callbacks.begin_trailers = { _, _, userData, streamData in
      streamPointed(to: streamData)?.block = sessionPointed(to: userData)?.trailerFields ?? HTTPFieldBlock()
      return 0
    }
    callbacks.recv_header = { _, _, _, name, value, _, userData, streamData in
      guard let session = sessionPointed(to: userData), let stream = streamPointed(to: streamData) else {
        return 0
      }
      session.didReceiveField(of: stream, name: bytes(of: name), value: bytes(of: value))
      return 0
    }
    callbacks.recv_trailer = { _, _, _, name, value, _, userData, streamData in
      guard let session = sessionPointed(to: userData), let stream = streamPointed(to: streamData) else {
        return 0
      }
      let limit = session.limits.maximumHeaderListSize
      stream.block.add(name: bytes(of: name), value: bytes(of: value), limit: limit)
      return 0
    }
    callbacks.end_headers = { _, _, _, userData, streamData in
      guard let stream = streamPointed(to: streamData) else { return 0 }
      sessionPointed(to: userData)?.didReceiveHead(of: stream)
      return 0
    }
    callbacks.end_trailers = { _, _, _, userData, streamData in
      guard let stream = streamPointed(to: streamData) else { return 0 }
      sessionPointed(to: userData)?.didReceiveTrailers(of: stream)
      return 0
    }
    callbacks.end_stream = { _, _, userData, streamData in
      guard let stream = streamPointed(to: streamData) else { return 0 }
      sessionPointed(to: userData)?.didReceiveEnd(of: stream)
      return 0
    }
    callbacks.stop_sending = { _, id, code, userData, _ in
      guard let connection = sessionPointed(to: userData)?.connection else { return 0 }
      _ = connect_ngtcp2_shutdown_stream_read(connection, id, code)
      return 0
    }
    callbacks.reset_stream = { _, id, code, userData, _ in
      guard let connection = sessionPointed(to: userData)?.connection else { return 0 }
      _ = connect_ngtcp2_shutdown_stream_write(connection, id, code)
      return 0
    }
    callbacks.shutdown = { _, id, userData in
      guard let session = sessionPointed(to: userData) else { return 0 }
      session.goAwayID = id
      session.events.append(.goAway)
      return 0
    }
  }

  private func didReceiveBody(_ bytes: UnsafeRawBufferPointer, ofStream id: Int64, _ stream: HTTP3Stream?) {
    guard let stream, stream.handler != nil, !stream.isReset else {
      self.extendWindows(ofStream: id, by: bytes.count)
      return
    }
    // The connection's window is for all streams, so what one of them holds must not use it up.
    if let connection = self.connection { ngtcp2_conn_extend_max_offset(connection, UInt64(bytes.count)) }
    stream.unconsumed += bytes.count
    if stream.inbox.readableBytes == 0 { self.events.append(.bytes(stream)) }
    stream.inbox.writeBytes(bytes)
  }

  private func didReceiveField(
    of stream: HTTP3Stream,
    name: UnsafeBufferPointer<UInt8>,
    value: UnsafeBufferPointer<UInt8>
  ) {
    if name.first == UInt8(ascii: ":") {
      stream.block.count(name: name, value: value)
      // A response has no other pseudo-header than :status; libnghttp3 has checked that it is three digits.
      stream.status = value.reduce(0) { 10 * $0 + Int($1) - 0x30 }
    } else {
      stream.block.add(name: name, value: value, limit: self.limits.maximumHeaderListSize)
    }
  }

  private func didReceiveHead(of stream: HTTP3Stream) {
    let size = stream.block.size
    let fields = stream.block.finish()
    self.headFields = stream.takeBlock()
    guard self.isWithinLimit(size, stream), stream.response == .head else { return }
    guard !(100..<200).contains(stream.status) else {
      stream.informationalCount += 1
      if stream.informationalCount == InformationalResponses.limit + 1 {
        let failure = HTTPStreamFailure(error: InformationalResponses.error)
        self.events.append(.failed(stream, failure, .requestCancelled))
      }
      return
    }
    stream.response = .body
    self.events.append(.head(stream, HTTPResponseHead(status: stream.status, headers: fields)))
  }

  private func didReceiveTrailers(of stream: HTTP3Stream) {
    let size = stream.block.size
    let fields = stream.block.finish()
    self.trailerFields = stream.takeBlock()
    guard self.isWithinLimit(size, stream) else { return }
    stream.trailers = fields
  }

  private func isWithinLimit(_ size: Int, _ stream: HTTP3Stream) -> Bool {
    let limit = self.limits.maximumHeaderListSize
    guard size > limit else { return true }
    let failure = HTTPStreamFailure.headerListTooLarge(size: size, limit: limit)
    self.events.append(.failed(stream, failure, .requestCancelled))
    return false
  }

  private func didReceiveEnd(of stream: HTTP3Stream) {
    guard stream.response != .ended else { return }
    stream.response = .ended
    self.events.append(.end(stream, trailers: stream.trailers))
    stream.trailers = Headers()
  }

  /// The failure if libnghttp3's error means the end of this stream alone; nil if it means the end of the connection.
  func streamFailure(_ error: Int32, _ stream: HTTP3Stream) -> HTTPStreamFailure? {
    switch error {
    case NGHTTP3_ERR_MALFORMED_HTTP_HEADER, NGHTTP3_ERR_MALFORMED_HTTP_MESSAGING:
      .malformed(stream)
    case NGHTTP3_ERR_QPACK_HEADER_TOO_LARGE:
      .headerTooLarge
    default:
      nil
    }
  }
}

private func bytes(of buffer: OpaquePointer?) -> UnsafeBufferPointer<UInt8> {
  guard let buffer else { return UnsafeBufferPointer(start: nil, count: 0) }
  let vector = nghttp3_rcbuf_get_buf(buffer)
  return UnsafeBufferPointer(start: vector.base, count: vector.len)
}
