internal import CNghttp2

/// libnghttp2's session of a client. Its owner deletes it.
///
/// The functions passed to libnghttp2 capture nothing. They find the session and the stream by the pointers that were
/// given to it, and the session only appends to its events and to the streams.
struct NGHTTP2Session {
  /// The largest block that libnghttp2 makes of the fields of a request, in bytes (`max_send_header_block_length`).
  static let maximumHeaderBlock = 64 << 10

  let pointer: OpaquePointer

  /// Nil if there is no memory for it. What was found while reading and writing is told to `session`.
  init?(of session: HTTP2Session) {
    let userData = Unmanaged.passUnretained(session).toOpaque()
    var callbacks: OpaquePointer?
    var option: OpaquePointer?
    var handle: OpaquePointer?
    defer {
      nghttp2_session_callbacks_del(callbacks)
      nghttp2_option_del(option)
    }
    guard nghttp2_session_callbacks_new(&callbacks) == 0, nghttp2_option_new(&option) == 0 else { return nil }
    nghttp2_option_set_no_auto_window_update(option, 1)
    nghttp2_option_set_no_closed_streams(option, 1)
    connect_nghttp2_option_allow_spaces_around_values(option)

    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks) { _, header, userData in
      sessionPointed(to: userData)?.frameStreamID = header?.pointee.stream_id
      return 0
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, _, userData in
      onSession(userData) { session in
        session.fields.head.begin()
        session.fields.trailers.begin()
      }
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks) {
      _,
      frame,
      name,
      nameLength,
      value,
      valueLength,
      _,
      userData in
      guard let frame else { return callbackFailure }
      return onSession(userData) { session in
        session.didReceiveField(
          streamID: header(of: frame).stream_id,
          name: UnsafeBufferPointer(start: name, count: nameLength),
          value: UnsafeBufferPointer(start: value, count: valueLength)
        )
      }
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, id, data, count, userData in
      guard let data else { return callbackFailure }
      return onSession(userData) { $0.didReceiveData(streamID: id, data: data, count: count) }
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, userData in
      guard let frame else { return callbackFailure }
      return onSession(userData) { $0.didReceive(frame) }
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, id, errorCode, userData in
      onSession(userData) { $0.didClose(streamID: id, errorCode: HTTP2ErrorCode(rawValue: errorCode)) }
    }
    nghttp2_session_callbacks_set_before_frame_send_callback(callbacks) { _, frame, userData in
      guard let frame else { return callbackFailure }
      return onSession(userData) { $0.willSend(frame) }
    }
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, error, userData in
      guard let frame else { return callbackFailure }
      return onSession(userData) { $0.didNotSend(frame, libraryError: error) }
    }
    nghttp2_session_callbacks_set_send_data_callback(callbacks) {
      _,
      _,
      frameHeader,
      count,
      source,
      userData in
      guard let frameHeader, let session = sessionPointed(to: userData),
        let stream = streamPointed(to: source)
      else {
        return callbackFailure
      }
      return session.sendData(of: stream, frameHeader: frameHeader, count: count)
    }

    guard nghttp2_session_client_new2(&handle, callbacks, userData, option) == 0, let handle else {
      return nil
    }
    self.pointer = handle
  }

  func delete() { nghttp2_session_del(self.pointer) }

  // MARK: Facts

  /// Whether there is something to send.
  var wantsWrite: Bool { nghttp2_session_want_write(self.pointer) != 0 }

  /// Whether the session still has a use for what the peer sends. If not, and if nothing is left to send, the
  /// connection is to be closed.
  var wantsRead: Bool { nghttp2_session_want_read(self.pointer) != 0 }

  /// How many frames other than DATA wait to be sent.
  var queuedFrames: Int { nghttp2_session_get_outbound_queue_size(self.pointer) }

  /// How many streams the peer allows at the same time.
  var maxConcurrentStreams: Int {
    let count = nghttp2_session_get_remote_settings(self.pointer, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    return min(Int(count), Int(Int32.max))
  }

  /// Whether another request can be submitted: identifiers are not used up, and no GOAWAY was seen.
  var takesRequests: Bool { nghttp2_session_check_request_allowed(self.pointer) != 0 }

  /// Whether there are identifiers for more streams.
  var hasStreamIDs: Bool { nghttp2_session_get_next_stream_id(self.pointer) <= UInt32(Int32.max) }

  // MARK: Frames of the connection

  /// Queues a PING.
  func ping() {
    _ = nghttp2_submit_ping(self.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
  }

  /// Queues GOAWAY; nothing is sent after it.
  func terminate(_ errorCode: HTTP2ErrorCode) {
    _ = nghttp2_session_terminate_session(self.pointer, errorCode.rawValue)
  }

  /// Has the next stream use this identifier or a later one. For tests.
  func skipStreamIDs(to id: Int32) {
    _ = nghttp2_session_set_next_stream_id(self.pointer, id)
  }

  /// Queues SETTINGS, and what enlarges the connection's window.
  func submitSettings(_ configuration: HTTP2Configuration) {
    let window = configuration.initialStreamWindow.clamped(to: 1...Int(Int32.max))
    let headerList = configuration.maxHeaderListSize.clamped(to: 0...Int(Int32.max))
    let frame = configuration.maxFrameSize.clamped(to: 1 << 14...(1 << 24) - 1)
    let settings = [
      (NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
      (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window),
      (NGHTTP2_SETTINGS_MAX_FRAME_SIZE, frame),
      (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, headerList),
    ].map { nghttp2_settings_entry(settings_id: Int32($0.rawValue), value: UInt32($1)) }
    let flags = UInt8(NGHTTP2_FLAG_NONE.rawValue)
    _ = nghttp2_submit_settings(self.pointer, flags, settings, settings.count)
    let connectionWindow = configuration.connectionWindow.clamped(to: 65_535...Int(Int32.max))
    _ = nghttp2_session_set_local_window_size(self.pointer, flags, 0, Int32(connectionWindow))
  }
}

/// What a callback returns if the session is gone.
var callbackFailure: Int32 { NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }

/// All members of the union of frames begin with the header; this reads it without copying the union.
func header(of frame: UnsafePointer<nghttp2_frame>) -> nghttp2_frame_hd {
  UnsafeRawPointer(frame).load(as: nghttp2_frame_hd.self)
}

/// Runs `body` with the session that a callback is about.
private func onSession(_ userData: UnsafeMutableRawPointer?, _ body: (HTTP2Session) -> Void) -> Int32 {
  guard let session = sessionPointed(to: userData) else { return callbackFailure }
  body(session)
  return 0
}

func sessionPointed(to userData: UnsafeMutableRawPointer?) -> HTTP2Session? {
  userData.map { Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
}

func streamPointed(to source: UnsafeMutablePointer<nghttp2_data_source>?) -> HTTP2Stream? {
  source?.pointee.ptr.map { Unmanaged<HTTP2Stream>.fromOpaque($0).takeUnretainedValue() }
}
