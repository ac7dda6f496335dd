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
      scheme: self.scheme,
      authority: self.authority,
      contentLength: contentLength
    )

    let userData = Unmanaged.passUnretained(stream).toOpaque()
    let provider = nghttp2_data_provider(
      source: nghttp2_data_source(ptr: userData),
      read_callback: Self.readBody
    )
    let id = self.requestFields.withFields { fields, count in
      withUnsafePointer(to: provider) { provider in
        nghttp2_submit_request(handle, nil, fields, count, hasBody ? provider : nil, userData)
      }
    }
    stream.requestFieldsSize = self.requestFields.listSize
    guard id > 0 else {
      self.events.append(.failed(stream, .notSent(libraryError: id, size: stream.requestFieldsSize)))
      return
    }
    stream.id = id
    self.insert(stream)
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
    _ = nghttp2_session_resume_data(handle, stream.id)
  }

  /// Gives `count` bytes of the response's body back to the peer's window for the stream. The connection's window got
  /// them back as they arrived, so that an unread stream holds back only itself.
  func consume(_ count: Int, of stream: HTTP2Stream) {
    let count = min(count, stream.unconsumed)
    guard count > 0, let handle = self.handle else { return }
    stream.unconsumed -= count
    guard !stream.isClosed, stream.response != .ended else { return }
    _ = nghttp2_session_consume_stream(handle, stream.id, count)
  }

  /// Queues RST_STREAM and drops what waits to be sent. If HEADERS has not left yet, nothing at all will be
  /// sent. Does nothing if the stream is closed on both sides.
  func reset(_ stream: HTTP2Stream, errorCode: HTTP2ErrorCode) {
    guard stream.id > 0, !stream.isClosed, !stream.isReset, let handle = self.handle else { return }
    stream.isReset = true
    stream.outbound.removeAll()
    _ = nghttp2_submit_rst_stream(
      handle,
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
      nghttp2_session_get_remote_window_size(handle) > 0
      && nghttp2_session_get_stream_remote_window_size(handle, stream.id) > 0
    guard stream.outbound.isEmpty, isWindowOpen else {
      self.reset(stream, errorCode: .cancel)
      return
    }
    stream.request = .ending
    self.requestBodyDidChange(stream)
  }

  /// The live streams, newest first.
  var liveStreams: [HTTP2Stream] {
    var streams: [HTTP2Stream] = []
    var next = self.firstLive
    while let stream = next?.takeUnretainedValue() {
      streams.append(stream)
      next = stream.next
    }
    return streams
  }

  private func insert(_ stream: HTTP2Stream) {
    let reference = Unmanaged.passRetained(stream)
    stream.next = self.firstLive
    self.firstLive?.takeUnretainedValue().previous = reference
    self.firstLive = reference
    self.liveCount += 1
  }

  /// Takes the stream off the list and gives up the C session's reference to it.
  func remove(_ stream: HTTP2Stream) {
    guard !stream.isClosed else { return }
    stream.isClosed = true
    stream.next?.takeUnretainedValue().previous = stream.previous
    if let previous = stream.previous {
      previous.takeUnretainedValue().next = stream.next
    } else {
      self.firstLive = stream.next
    }
    stream.next = nil
    stream.previous = nil
    stream.outbound.removeAll()
    self.liveCount -= 1
    self.lastStream = nil
    Unmanaged.passUnretained(stream).release()
  }
}
