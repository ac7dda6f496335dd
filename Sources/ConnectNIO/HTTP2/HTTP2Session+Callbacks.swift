internal import CNghttp2
internal import Connect
internal import NIOCore

// What libnghttp2 calls while it reads and writes. The functions passed to it capture nothing. They find the session
// and the stream by the pointers that were given to it, and only append to them.

extension HTTP2Session {
  static func makeHandle(userData: UnsafeMutableRawPointer) -> OpaquePointer? {
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
      guard let session = sessionPointed(to: userData) else { return callbackFailure }
      session.headFields.begin()
      session.trailerFields.begin()
      return 0
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
      guard let frame, let session = sessionPointed(to: userData) else { return callbackFailure }
      session.didReceiveField(
        streamID: HTTP2Session.header(of: frame).stream_id,
        name: UnsafeBufferPointer(start: name, count: nameLength),
        value: UnsafeBufferPointer(start: value, count: valueLength)
      )
      return 0
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
      _,
      _,
      streamID,
      data,
      count,
      userData in
      guard let data, let session = sessionPointed(to: userData) else { return callbackFailure }
      session.didReceiveData(streamID: streamID, data: data, count: count)
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, userData in
      guard let frame, let session = sessionPointed(to: userData) else { return callbackFailure }
      session.didReceive(frame)
      return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, streamID, errorCode, userData in
      guard let session = sessionPointed(to: userData) else { return callbackFailure }
      session.didClose(streamID: streamID, errorCode: HTTP2ErrorCode(rawValue: errorCode))
      return 0
    }
    nghttp2_session_callbacks_set_before_frame_send_callback(callbacks) { _, frame, userData in
      guard let frame, let session = sessionPointed(to: userData) else { return callbackFailure }
      session.willSend(frame)
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, error, userData in
      guard let frame, let session = sessionPointed(to: userData) else { return callbackFailure }
      session.didNotSend(frame, libraryError: error)
      return 0
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

    guard nghttp2_session_client_new2(&handle, callbacks, userData, option) == 0 else { return nil }
    return handle
  }

  /// Says how much of the request's body goes into the next DATA frame, and whether it is the last.
  static let readBody: nghttp2_data_source_read_callback = { _, _, _, limit, flags, source, userData in
    guard let flags, let session = sessionPointed(to: userData), let stream = streamPointed(to: source) else {
      return Int(callbackFailure)
    }
    return session.readBody(of: stream, limit: limit, flags: &flags.pointee)
  }

  /// All members of the union of frames begin with the header; this reads it without copying the union.
  private static func header(of frame: UnsafePointer<nghttp2_frame>) -> nghttp2_frame_hd {
    UnsafeRawPointer(frame).load(as: nghttp2_frame_hd.self)
  }

  private func stream(_ id: Int32) -> HTTP2Stream? {
    if let last = self.lastStream?.takeUnretainedValue(), last.id == id { return last }
    guard let handle = self.handle, let pointer = nghttp2_session_get_stream_user_data(handle, id) else {
      return nil
    }
    let reference = Unmanaged<HTTP2Stream>.fromOpaque(pointer)
    self.lastStream = reference
    return reference.takeUnretainedValue()
  }
}

private var callbackFailure: Int32 { NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }

private func sessionPointed(to userData: UnsafeMutableRawPointer?) -> HTTP2Session? {
  userData.map { Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
}

private func streamPointed(to source: UnsafeMutablePointer<nghttp2_data_source>?) -> HTTP2Stream? {
  source?.pointee.ptr.map { Unmanaged<HTTP2Stream>.fromOpaque($0).takeUnretainedValue() }
}

// MARK: - Reading

extension HTTP2Session {
  private func didReceiveField(
    streamID: Int32,
    name: UnsafeBufferPointer<UInt8>,
    value: UnsafeBufferPointer<UInt8>
  ) {
    guard let stream = self.stream(streamID) else { return }
    let limit = self.configuration.maxHeaderListSize
    if stream.response != .head {
      self.trailerFields.add(name: name, value: value, limit: limit)
    } else if name.first == UInt8(ascii: ":") {
      self.headFields.count(name: name, value: value)
      // A response has no other pseudo-header than :status; libnghttp2 has checked that it is three digits.
      stream.status = value.reduce(0) { 10 * $0 + Int($1) - 0x30 }
    } else {
      self.headFields.add(name: name, value: value, limit: limit)
    }
  }

  private func didReceiveData(streamID: Int32, data: UnsafePointer<UInt8>, count: Int) {
    // The connection's window is for all streams, so what one of them holds must not use it up.
    if let handle = self.handle { _ = nghttp2_session_consume_connection(handle, count) }
    guard let stream = self.stream(streamID), stream.handler != nil else { return }
    stream.unconsumed += count
    let bytes: ByteBuffer
    if let start = self.inputStart,
      let slice = self.input.getSlice(at: self.input.readerIndex + (data - start), length: count)
    {
      bytes = slice
    } else {
      bytes = ByteBuffer(bytes: UnsafeBufferPointer(start: data, count: count))
    }
    self.events.append(.bytes(stream, bytes))
  }

  private func didReceive(_ frame: UnsafePointer<nghttp2_frame>) {
    let header = Self.header(of: frame)
    self.frameStreamID = nil
    let isEndOfStream = UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
    switch UInt32(header.type) {
    case NGHTTP2_DATA.rawValue:
      if isEndOfStream, let stream = self.stream(header.stream_id) {
        stream.response = .ended
        self.events.append(.end(stream, trailers: Headers()))
      }
    case NGHTTP2_HEADERS.rawValue:
      if let stream = self.stream(header.stream_id) {
        self.didReceiveFields(of: stream, isEndOfStream: isEndOfStream)
      }
    case NGHTTP2_RST_STREAM.rawValue:
      self.stream(header.stream_id)?.isResetByPeer = true
    case NGHTTP2_SETTINGS.rawValue:
      if UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue == 0 { self.events.append(.settings) }
    case NGHTTP2_PING.rawValue:
      if UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue != 0 { self.events.append(.pong) }
    case NGHTTP2_GOAWAY.rawValue:
      self.goAway = HTTP2GoAway(frame.pointee.goaway)
      self.events.append(.goAway)
    default:
      break
    }
  }

  private func didReceiveFields(of stream: HTTP2Stream, isEndOfStream: Bool) {
    let isHead = stream.response == .head
    let size = isHead ? self.headFields.size : self.trailerFields.size
    let fields = isHead ? self.headFields.finish() : self.trailerFields.finish()
    guard size <= self.configuration.maxHeaderListSize else {
      let limit = self.configuration.maxHeaderListSize
      self.events.append(.failed(stream, .headerListTooLarge(size: size, limit: limit)))
      return
    }
    var trailers = Headers()
    switch stream.response {
    case .head:
      let isFinal = !(100..<200).contains(stream.status)
      if isFinal {
        stream.response = .body
        self.events.append(.head(stream, HTTPResponseHead(status: stream.status, headers: fields)))
      } else {
        stream.informationalCount += 1
        if stream.informationalCount == InformationalResponses.limit + 1 {
          self.events.append(.failed(stream, HTTPStreamFailure(error: InformationalResponses.error)))
        }
      }
    case .body:
      trailers = fields
    case .ended:
      return
    }
    if isEndOfStream {
      stream.response = .ended
      self.events.append(.end(stream, trailers: trailers))
    }
  }

  private func didClose(streamID: Int32, errorCode: HTTP2ErrorCode) {
    guard let stream = self.stream(streamID) else { return }
    self.events.append(.closed(stream, errorCode))
    self.remove(stream)
  }
}

// MARK: - Writing

extension HTTP2Session {
  private func willSend(_ frame: UnsafePointer<nghttp2_frame>) {
    let header = Self.header(of: frame)
    switch UInt32(header.type) {
    case NGHTTP2_HEADERS.rawValue:
      self.stream(header.stream_id)?.isHeaderSent = true
    case NGHTTP2_GOAWAY.rawValue:
      self.sentGoAway = HTTP2GoAway(frame.pointee.goaway)
    default:
      break
    }
  }

  private func didNotSend(_ frame: UnsafePointer<nghttp2_frame>, libraryError: Int32) {
    let header = Self.header(of: frame)
    guard UInt32(header.type) == NGHTTP2_HEADERS.rawValue, let stream = self.stream(header.stream_id) else {
      return
    }
    if stream.isHeaderSent {
      // Trailers. libnghttp2 leaves the stream as it is, and the request would never end.
      self.events.append(
        .failed(stream, .notSent(libraryError: libraryError, size: stream.requestFieldsSize))
      )
    } else {
      // The stream is closed next, with an error code that does not tell why.
      stream.notSentError = libraryError
    }
  }

  private func readBody(of stream: HTTP2Stream, limit: Int, flags: inout UInt32) -> Int {
    let count = min(stream.outbound.byteCount, limit)
    if count == stream.outbound.byteCount {
      switch stream.request {
      case .open:
        guard count > 0 else {
          stream.isDeferred = true
          return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
      case .ending, .ended:
        stream.request = .ended
        flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
        if !stream.requestTrailers.isEmpty {
          flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
          self.submitTrailers(of: stream)
        }
      }
    }
    flags |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
    return count
  }

  private func submitTrailers(of stream: HTTP2Stream) {
    guard let handle = self.handle else { return }
    self.requestFields.replaceAll(withTrailers: stream.requestTrailers)
    stream.requestFieldsSize = self.requestFields.listSize
    stream.requestTrailers = Headers()
    _ = self.requestFields.withFields { fields, count in
      nghttp2_submit_trailer(handle, stream.id, fields, count)
    }
  }

  private func sendData(of stream: HTTP2Stream, frameHeader: UnsafePointer<UInt8>, count: Int) -> Int32 {
    self.output.append(copying: UnsafeRawBufferPointer(start: frameHeader, count: 9))
    var remaining = count
    while remaining > 0 {
      guard let piece = stream.outbound.next(limit: remaining) else { return callbackFailure }
      remaining -= piece.readableBytes
      self.output.append(piece)
    }
    if stream.owesWritable, stream.outbound.isEmpty {
      stream.owesWritable = false
      self.events.append(.drained(stream))
    }
    return self.output.byteCount < self.outputLimit ? 0 : NGHTTP2_ERR_PAUSE.rawValue
  }
}
