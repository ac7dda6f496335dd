internal import CNghttp3
internal import CNgtcp2
internal import Connect
internal import NIOCore

extension HTTP3Session {
  /// Queues the request, and starts `stream` with it. Whatever goes wrong is an event.
  func submit(_ request: HTTPStreamRequest, for stream: HTTP3Stream) {
    guard self.takesRequests, let connection = self.connection, let http = self.http else {
      self.events.append(.failed(stream, .noConnection, .requestCancelled))
      return
    }
    guard self.mayBeSentNow(request, stream) else { return }
    var hasBody = true
    var contentLength: Int?
    if case .complete(let body) = request.body {
      stream.outbound.append(body)
      hasBody = body.readableBytes > 0
      stream.request = hasBody ? .ending : .ended
      if hasBody || request.method == .post { contentLength = body.readableBytes }
    }
    self.requestFields.replaceAll(with: request, authority: self.authority, contentLength: contentLength)

    var id: Int64 = -1
    let userData = Unmanaged.passUnretained(stream).toOpaque()
    guard ngtcp2_conn_open_bidi_stream(connection, &id, userData) == 0 else {
      self.events.append(.failed(stream, .noConnection, .requestCancelled))
      return
    }
    stream.id = id
    self.streams[id] = stream
    var reader = nghttp3_data_reader(read_data: Self.readBody)
    let result = self.requestFields.withFields { fields, count in
      withUnsafePointer(to: &reader) { reader in
        nghttp3_conn_submit_request(http, id, fields, count, hasBody ? reader : nil, userData)
      }
    }
    guard result == 0 else {
      stream.isReset = true
      _ = connect_ngtcp2_shutdown_stream(connection, id, HTTP3ErrorCode.requestCancelled.rawValue)
      self.events.append(.failed(stream, .notSent(libraryError: result), .requestCancelled))
      return
    }
    self.events.append(.started(stream))
  }

  /// To be called when something was added to the stream's body, or when its end was.
  func requestBodyDidChange(_ stream: HTTP3Stream) {
    guard !stream.isClosed, !stream.isReset else { return }
    guard stream.outbound.isWaiting || stream.request == .ending else {
      if stream.owesWritable {
        stream.owesWritable = false
        self.events.append(.drained(stream))
      }
      return
    }
    guard stream.isDeferred, let http = self.http else { return }
    stream.isDeferred = false
    _ = nghttp3_conn_resume_stream(http, stream.id)
  }

  /// Gives `count` bytes of the response's body back to the peer's window for the stream. The connection's window got
  /// them back as they arrived, so that an unread stream holds back only itself.
  func consume(_ count: Int, of stream: HTTP3Stream) {
    let count = min(count, stream.unconsumed)
    guard count > 0, let connection = self.connection else { return }
    stream.unconsumed -= count
    guard !stream.isClosed, stream.response != .ended else { return }
    _ = ngtcp2_conn_extend_max_stream_offset(connection, stream.id, UInt64(count))
  }

  /// Ends both sides of the stream and drops what waits to be sent. Does nothing if the stream is closed.
  func reset(_ stream: HTTP3Stream, errorCode: HTTP3ErrorCode) {
    guard stream.id >= 0, !stream.isClosed, !stream.isReset, let connection = self.connection else { return }
    stream.isReset = true
    stream.outbound.removeWaiting()
    if let http = self.http {
      nghttp3_conn_shutdown_stream_write(http, stream.id)
      _ = nghttp3_conn_shutdown_stream_read(http, stream.id)
    }
    _ = connect_ngtcp2_shutdown_stream(connection, stream.id, errorCode.rawValue)
  }

  /// Ends the request of a stream whose response is complete. It ends in order if that can go out now, else by a reset:
  /// the stream must not count against the peer's limit forever.
  func settleRequest(of stream: HTTP3Stream) {
    guard !stream.isClosed, !stream.isReset, !stream.isEndSent, let connection = self.connection else {
      return
    }
    stream.isSettled = true
    let isHeldBack = stream.isBlocked || ngtcp2_conn_get_max_data_left(connection) == 0
    guard !stream.outbound.isWaiting, !isHeldBack else {
      self.giveUpRequest(of: stream)
      return
    }
    guard stream.request != .ended else { return }
    stream.request = .ending
    self.requestBodyDidChange(stream)
  }

  /// Drops what is left of a request whose response is complete.
  func giveUpRequest(of stream: HTTP3Stream) {
    guard !stream.isClosed, !stream.isReset, let connection = self.connection else { return }
    stream.isReset = true
    stream.outbound.removeWaiting()
    if let http = self.http { nghttp3_conn_shutdown_stream_write(http, stream.id) }
    let code = HTTP3ErrorCode.requestCancelled.rawValue
    _ = connect_ngtcp2_shutdown_stream_write(connection, stream.id, code)
  }

  /// The peer holds the stream back.
  func streamIsBlocked(_ id: Int64) {
    if let http = self.http { nghttp3_conn_block_stream(http, id) }
    guard let stream = self.streams[id] else { return }
    stream.isBlocked = true
    self.blockedStreams.append(id)
    if stream.isSettled { self.giveUpRequest(of: stream) }
  }

  /// After something was received, tries streams again that were held back. libngtcp2 tells of STOP_SENDING only when
  /// there is more to send.
  func retryBlockedStreams() {
    guard self.retriesBlockedStreams, let http = self.http else { return }
    self.retriesBlockedStreams = false
    for id in self.blockedStreams {
      guard let stream = self.streams[id], stream.isBlocked else { continue }
      stream.isBlocked = false
      _ = nghttp3_conn_unblock_stream(http, id)
    }
    self.blockedStreams.removeAll(keepingCapacity: true)
  }

  /// The live streams, oldest first, and those that are held back.
  var liveStreams: [HTTP3Stream] {
    self.streams.values.sorted { $0.id < $1.id } + (self.early?.held ?? [])
  }

  var hasStreams: Bool { !self.streams.isEmpty || self.early?.held.isEmpty == false }

  /// Gives libnghttp3 what there is of the request's body, and says whether that is all.
  private static let readBody: nghttp3_read_data_callback = {
    _,
    _,
    pieces,
    count,
    flags,
    userData,
    streamData in
    guard let pieces, let flags, let session = sessionPointed(to: userData),
      let stream = streamPointed(to: streamData)
    else { return nghttp3_ssize(NGHTTP3_ERR_CALLBACK_FAILURE) }
    return session.readBody(
      of: stream,
      UnsafeMutableBufferPointer(start: pieces, count: count),
      &flags.pointee
    )
  }

  private func readBody(
    of stream: HTTP3Stream,
    _ pieces: UnsafeMutableBufferPointer<nghttp3_vec>,
    _ flags: inout UInt32
  ) -> nghttp3_ssize {
    let count = stream.outbound.give(to: pieces)
    guard !stream.outbound.isWaiting else { return count }
    if stream.request == .open {
      guard count == 0 else { return count }
      stream.isDeferred = true
      if stream.owesWritable {
        stream.owesWritable = false
        self.events.append(.drained(stream))
      }
      return nghttp3_ssize(NGHTTP3_ERR_WOULDBLOCK)
    }
    stream.request = .ended
    flags |= UInt32(NGHTTP3_DATA_FLAG_EOF)
    if stream.requestTrailers.isEmpty {
      stream.isEndWaiting = count == 0
    } else {
      flags |= UInt32(NGHTTP3_DATA_FLAG_NO_END_STREAM)
      self.submitTrailers(of: stream)
    }
    return count
  }

  private func submitTrailers(of stream: HTTP3Stream) {
    guard let http = self.http else { return }
    self.requestFields.removeAll()
    self.requestFields.append(stream.requestTrailers)
    stream.requestTrailers = Headers()
    let result = self.requestFields.withFields { fields, count in
      nghttp3_conn_submit_trailers(http, stream.id, fields, count)
    }
    if result != 0 {
      self.events.append(.failed(stream, .notSent(libraryError: result), .requestCancelled))
    }
  }
}
