internal import CNghttp3
internal import CNgtcp2
internal import ConnectNIO

/// libnghttp3's connection of a client. Its owner deletes it.
///
/// The functions passed to libnghttp3 capture nothing. They find the HTTP layer and the stream by the pointers that were
/// given to it, and only append to the events and to the streams.
struct NGHTTP3Connection {
  let pointer: OpaquePointer

  /// - Throws: ``HTTP3LibraryError`` if the connection cannot be made, or if the streams that it needs cannot be opened.
  init(of layer: HTTP3Layer, over connection: NGTCP2Connection) throws(HTTP3LibraryError) {
    var callbacks = nghttp3_callbacks()
    Self.setCallbacks(&callbacks)
    var settings = nghttp3_settings()
    connect_nghttp3_settings_default(&settings)
    settings.max_field_section_size = UInt64(layer.responses.limit)
    // Without a dynamic table for what the peer sends, no stream waits for another, and a damaged stream affects no
    // other.
    settings.qpack_max_dtable_capacity = 0
    settings.qpack_blocked_streams = 0
    settings.qpack_encoder_max_dtable_capacity = 4096
    var http: OpaquePointer?
    let userData = Unmanaged.passUnretained(layer).toOpaque()
    try HTTP3LibraryError.check(connect_nghttp3_client_new(&http, &callbacks, &settings, userData))
    guard let http else { throw HTTP3LibraryError(code: NGHTTP3_ERR_NOMEM) }
    self.pointer = http
    do throws(HTTP3LibraryError) {
      var ids: [Int64] = [0, 0, 0]
      for index in ids.indices where ngtcp2_conn_open_uni_stream(connection.pointer, &ids[index], nil) != 0 {
        // The peer allows no such streams (RFC 9114, section 6.2).
        throw HTTP3LibraryError(code: NGHTTP3_ERR_H3_GENERAL_PROTOCOL_ERROR)
      }
      try HTTP3LibraryError.check(nghttp3_conn_bind_control_stream(http, ids[0]))
      try HTTP3LibraryError.check(nghttp3_conn_bind_qpack_streams(http, ids[1], ids[2]))
    } catch {
      self.delete()
      throw error
    }
  }

  private static func setCallbacks(_ callbacks: inout nghttp3_callbacks) {
    callbacks.acked_stream_data = { _, _, count, _, streamData in
      streamPointed(to: streamData)?.request.outbound.acknowledge(Int(count))
      return 0
    }
    callbacks.recv_data = { _, id, data, count, userData, streamData in
      guard let layer = layerPointed(to: userData) else { return NGHTTP3_ERR_CALLBACK_FAILURE }
      let bytes = UnsafeRawBufferPointer(start: data, count: count)
      layer.didReceiveBody(bytes, ofStream: id, streamPointed(to: streamData))
      return 0
    }
    callbacks.deferred_consume = { _, id, count, userData, _ in
      layerPointed(to: userData)?.connection?.extendWindows(ofStream: id, by: count)
      return 0
    }
    // Blocks of several streams may come in turns, so each stream has its own block.
    callbacks.begin_headers = { _, _, userData, streamData in
      onStream(userData, streamData) { $1.response.block = $0.responses.head }
    }
    callbacks.begin_trailers = { _, _, userData, streamData in
      onStream(userData, streamData) { $1.response.block = $0.responses.trailers }
    }
    callbacks.recv_header = { _, _, _, name, value, _, userData, streamData in
      onStream(userData, streamData) {
        $0.responses.addField(to: $1, name: bytes(of: name), value: bytes(of: value))
      }
    }
    callbacks.recv_trailer = { _, _, _, name, value, _, userData, streamData in
      onStream(userData, streamData) {
        $1.response.block.add(name: bytes(of: name), value: bytes(of: value), limit: $0.responses.limit)
      }
    }
    callbacks.end_headers = { _, _, _, userData, streamData in
      onStream(userData, streamData) { $0.append($0.responses.finishHead($1)) }
    }
    callbacks.end_trailers = { _, _, _, userData, streamData in
      onStream(userData, streamData) { $0.append($0.responses.finishTrailers($1)) }
    }
    callbacks.end_stream = { _, _, userData, streamData in
      onStream(userData, streamData) { $0.append($0.responses.finish($1)) }
    }
    callbacks.stop_sending = { _, id, code, userData, _ in
      guard let connection = layerPointed(to: userData)?.connection else { return 0 }
      _ = connect_ngtcp2_shutdown_stream_read(connection.pointer, id, code)
      return 0
    }
    callbacks.reset_stream = { _, id, code, userData, _ in
      guard let connection = layerPointed(to: userData)?.connection else { return 0 }
      _ = connect_ngtcp2_shutdown_stream_write(connection.pointer, id, code)
      return 0
    }
    callbacks.shutdown = { _, id, userData in
      guard let layer = layerPointed(to: userData) else { return 0 }
      layer.goAwayID = id
      layer.events.append(.goAway)
      return 0
    }
  }

  /// The peer's window for the stream may be open again.
  func unblock(_ id: Int64) { _ = nghttp3_conn_unblock_stream(self.pointer, id) }

  func delete() { nghttp3_conn_del(self.pointer) }
}

/// An error of libnghttp3.
struct HTTP3LibraryError: Error {
  let code: Int32

  static func check(_ code: Int32) throws(HTTP3LibraryError) {
    if code != 0 { throw HTTP3LibraryError(code: code) }
  }
}

func layerPointed(to userData: UnsafeMutableRawPointer?) -> HTTP3Layer? {
  userData.map { Unmanaged<HTTP3Layer>.fromOpaque($0).takeUnretainedValue() }
}

func streamPointed(to userData: UnsafeMutableRawPointer?) -> HTTP3Stream? {
  userData.map { Unmanaged<HTTP3Stream>.fromOpaque($0).takeUnretainedValue() }
}

/// Runs `body` with the layer and the stream that a callback is about, if there are any.
private func onStream(
  _ userData: UnsafeMutableRawPointer?,
  _ streamData: UnsafeMutableRawPointer?,
  _ body: (HTTP3Layer, HTTP3Stream) -> Void
) -> Int32 {
  if let layer = layerPointed(to: userData), let stream = streamPointed(to: streamData) {
    body(layer, stream)
  }
  return 0
}

private func bytes(of buffer: OpaquePointer?) -> UnsafeBufferPointer<UInt8> {
  guard let buffer else { return UnsafeBufferPointer(start: nil, count: 0) }
  let vector = nghttp3_rcbuf_get_buf(buffer)
  return UnsafeBufferPointer(start: vector.base, count: vector.len)
}
