internal import CNghttp2
internal import Connect
internal import NIOCore

extension HTTP2Session {
  /// Queues the request, and starts `stream` with it. Whatever goes wrong is an event.
  func submit(_ request: HTTPStreamRequest, for stream: HTTP2Stream) {
    guard let handle = self.handle else {
      self.events.append(.failed(stream, .noConnection))
      return
    }
    var hasBody = true
    var contentLength: Int?
    if case .complete(let body) = request.body {
      stream.outbound.append(body)
      hasBody = body.readableBytes > 0
      stream.request = hasBody ? .ending : .ended
      if hasBody || request.method == .post { contentLength = body.readableBytes }
    }
    self.requestFields.replaceAll(
      with: request,
      scheme: self.origin.scheme,
      authority: self.origin.authority,
      contentLength: contentLength
    )

    let userData = Unmanaged.passUnretained(stream).toOpaque()
    let provider = nghttp2_data_provider(
      source: nghttp2_data_source(ptr: userData),
      read_callback: Self.readBody
    )
    let id = self.requestFields.withFields { fields, count in
      withUnsafePointer(to: provider) { provider in
        nghttp2_submit_request(handle.pointer, nil, fields, count, hasBody ? provider : nil, userData)
      }
    }
    stream.requestFieldsSize = self.requestFields.listSize
    guard id > 0 else {
      self.events.append(.failed(stream, .notSent(libraryError: id, size: stream.requestFieldsSize)))
      return
    }
    stream.id = id
    self.streams.insert(stream)
    self.events.append(.started(stream))
  }

  /// To be called when something was added to the stream's body, or when its end was.
  func requestBodyDidChange(_ stream: HTTP2Stream) {
    guard !stream.isClosed, !stream.isReset else { return }
    guard !stream.outbound.isEmpty || stream.request == .ending else {
      stream.owesWritable = false
      self.events.append(.drained(stream))
      return
    }
    guard stream.isDeferred, let handle = self.handle else { return }
    stream.isDeferred = false
    _ = nghttp2_session_resume_data(handle.pointer, stream.id)
  }

  /// Gives `count` bytes of the response's body back to the peer's window for the stream. The connection's window got
  /// them back as they arrived, so that an unread stream holds back only itself.
  func consume(_ count: Int, of stream: HTTP2Stream) {
    let count = min(count, stream.unconsumed)
    guard count > 0, let handle = self.handle else { return }
    stream.unconsumed -= count
    guard !stream.isClosed, stream.response != .ended else { return }
    _ = nghttp2_session_consume_stream(handle.pointer, stream.id, count)
  }

  /// Queues RST_STREAM and drops what waits to be sent. If HEADERS has not left yet, nothing at all will be
  /// sent. Does nothing if the stream is closed on both sides.
  func reset(_ stream: HTTP2Stream, errorCode: HTTP2ErrorCode) {
    guard stream.id > 0, !stream.isClosed, !stream.isReset, let handle = self.handle else { return }
    stream.isReset = true
    stream.outbound.removeAll()
    _ = nghttp2_submit_rst_stream(
      handle.pointer,
      UInt8(NGHTTP2_FLAG_NONE.rawValue),
      stream.id,
      errorCode.rawValue
    )
  }

  /// Ends the request of a stream whose response is complete.
  ///
  /// If END_STREAM is all that is due, it is sent. Otherwise RST_STREAM with CANCEL is sent, so that the stream does
  /// not count against the peer's limit forever. A window that is used up also leads to RST_STREAM: libnghttp2 then
  /// sends no DATA, not even empty ones, and END_STREAM could wait forever.
  func settleRequest(of stream: HTTP2Stream) {
    guard !stream.isClosed, !stream.isReset, stream.request != .ended, let handle = self.handle else {
      return
    }
    let isWindowOpen =
      nghttp2_session_get_remote_window_size(handle.pointer) > 0
      && nghttp2_session_get_stream_remote_window_size(handle.pointer, stream.id) > 0
    guard stream.outbound.isEmpty, isWindowOpen else {
      self.reset(stream, errorCode: .cancel)
      return
    }
    stream.request = .ending
    self.requestBodyDidChange(stream)
  }

  /// Says how much of the request's body goes into the next DATA frame, and whether it is the last.
  private static let readBody: nghttp2_data_source_read_callback = {
    _,
    _,
    _,
    limit,
    flags,
    source,
    userData in
    guard let flags, let session = sessionPointed(to: userData), let stream = streamPointed(to: source) else {
      return Int(callbackFailure)
    }
    return session.readBody(of: stream, limit: limit, flags: &flags.pointee)
  }
}
