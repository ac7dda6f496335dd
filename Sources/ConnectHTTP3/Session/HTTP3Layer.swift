internal import CNghttp3
internal import CNgtcp2
internal import Connect
internal import ConnectNIO
internal import NIOCore

/// The HTTP half of a session: libnghttp3's connection, and the requests and responses on it.
///
/// What was found in the responses is left in a list of events. The layer holds each stream until libngtcp2 has forgotten it, or
/// until the layer is invalidated.
///
/// Confined to the thread of its session.
final class HTTP3Layer {
  let authority: String
  /// Nil once the session was invalidated.
  var connection: NGTCP2Connection?
  /// Nil until the handshake is complete, and once the session was invalidated.
  private(set) var handle: NGHTTP3Connection?

  // Changed by callbacks: no access to one of these may span a call into a C library.
  @exclusivity(unchecked) var events: ContiguousArray<HTTP3Event> = []
  @exclusivity(unchecked) var streams: [Int64: HTTP3Stream] = [:]
  @exclusivity(unchecked) var responses: HTTP3Responses
  private var requestFields = HTTP3FieldArray()
  var blocked = BlockedStreams()
  /// libnghttp3's error that made a callback of libngtcp2 fail.
  var error: Int32 = 0
  /// The stream on which the peer broke HTTP/3.
  var brokenStreamID: Int64?
  /// Requests with this identifier or a later one were not processed by the peer (RFC 9114, section 5.2). Nil without
  /// GOAWAY.
  var goAwayID: Int64?
  /// Nil if the connection does not send early data, or no longer does.
  var early: EarlyRequests?

  init(authority: String, maximumHeaderListSize: Int) {
    self.authority = authority
    self.responses = HTTP3Responses(limit: maximumHeaderListSize)
  }

  /// Makes libnghttp3's connection and opens the streams that it needs. If that fails, ``error`` says why.
  func start() -> Bool {
    guard let connection = self.connection else { return false }
    do throws(HTTP3LibraryError) {
      self.handle = try NGHTTP3Connection(of: self, over: connection)
      return true
    } catch {
      self.error = error.code
      return false
    }
  }

  /// Lets go of libnghttp3's connection and of the streams.
  func invalidate() {
    self.handle.take()?.delete()
    self.connection = nil
    for stream in self.streams.values { stream.close() }
    self.streams = [:]
    self.early = nil
  }

  /// The server has not taken early data: begins again.
  func restart() -> Bool {
    self.handle.take()?.delete()
    self.blocked.removeAll()
    self.early?.isRefused = true
    for stream in self.streams.values {
      if stream.handler == nil {
        stream.close()
        self.events.append(.closed(stream))
      } else {
        stream.restart()
      }
    }
    self.streams = [:]
    return self.start()
  }

  /// Sends the requests that were held back, and those that the server has not taken.
  func releaseEarly() {
    guard let early = self.early.take() else { return }
    for (request, stream) in early.all where stream.id < 0 && stream.handler != nil {
      if early.isRefused, request.authority != nil {
        // The call starts once more, so that the authority is checked against the certificate that the server has now.
        self.events.append(.failed(stream, .noConnection, .requestCancelled))
      } else {
        self.submit(request, for: stream)
      }
    }
  }

  func append(_ event: HTTP3Event?) {
    if let event { self.events.append(event) }
  }

  /// The live streams, oldest first, and those that are held back.
  var liveStreams: [HTTP3Stream] {
    self.streams.values.sorted { $0.id < $1.id } + (self.early?.held ?? [])
  }

  var hasStreams: Bool { !self.streams.isEmpty || self.early?.held.isEmpty == false }
}

// MARK: - Requests

extension HTTP3Layer {
  /// Queues the request, and starts `stream` with it. Whatever goes wrong is an event.
  func submit(_ request: HTTPStreamRequest, for stream: HTTP3Stream) {
    guard self.goAwayID == nil, let connection = self.connection, let handle = self.handle else {
      self.events.append(.failed(stream, .noConnection, .requestCancelled))
      return
    }
    if self.early?.holds(request, stream) == true { return }
    var hasBody = true
    var contentLength: Int?
    if case .complete(let body) = request.body {
      stream.request.outbound.append(body)
      hasBody = body.readableBytes > 0
      stream.request.state = hasBody ? .ending : .ended
      if hasBody || request.method == .post { contentLength = body.readableBytes }
    }
    self.requestFields.replaceAll(with: request, authority: self.authority, contentLength: contentLength)

    var id: Int64 = -1
    let userData = Unmanaged.passUnretained(stream).toOpaque()
    guard ngtcp2_conn_open_bidi_stream(connection.pointer, &id, userData) == 0 else {
      self.events.append(.failed(stream, .noConnection, .requestCancelled))
      return
    }
    stream.id = id
    self.streams[id] = stream
    var reader = nghttp3_data_reader(read_data: Self.readBody)
    let result = self.requestFields.withFields { fields, count in
      withUnsafePointer(to: &reader) { reader in
        nghttp3_conn_submit_request(handle.pointer, id, fields, count, hasBody ? reader : nil, userData)
      }
    }
    guard result == 0 else {
      stream.isReset = true
      _ = connect_ngtcp2_shutdown_stream(connection.pointer, id, HTTP3ErrorCode.requestCancelled.rawValue)
      self.events.append(.failed(stream, .notSent(libraryError: result), .requestCancelled))
      return
    }
    self.events.append(.started(stream))
  }

  /// To be called when something was added to the stream's body, or when its end was.
  func requestBodyDidChange(_ stream: HTTP3Stream) {
    guard !stream.isClosed, !stream.isReset else { return }
    guard stream.request.outbound.isWaiting || stream.request.state == .ending else {
      if stream.owesWritable {
        stream.owesWritable = false
        self.events.append(.drained(stream))
      }
      return
    }
    guard stream.request.isDeferred, let handle = self.handle else { return }
    stream.request.isDeferred = false
    _ = nghttp3_conn_resume_stream(handle.pointer, stream.id)
  }

  /// Gives `count` bytes of the response's body back to the peer's window for the stream. The connection's window got
  /// them back as they arrived, so that an unread stream holds back only itself.
  func consume(_ count: Int, of stream: HTTP3Stream) {
    let count = min(count, stream.response.unconsumed)
    guard count > 0, let connection = self.connection else { return }
    stream.response.unconsumed -= count
    guard !stream.isClosed, stream.response.state != .ended else { return }
    connection.extendWindow(ofStream: stream.id, by: count)
  }

  /// Ends both sides of the stream and drops what waits to be sent. Does nothing if the stream is closed.
  func reset(_ stream: HTTP3Stream, errorCode: HTTP3ErrorCode) {
    guard stream.id >= 0, !stream.isClosed, !stream.isReset, let connection = self.connection else { return }
    stream.isReset = true
    stream.request.outbound.removeWaiting()
    if let handle = self.handle {
      nghttp3_conn_shutdown_stream_write(handle.pointer, stream.id)
      _ = nghttp3_conn_shutdown_stream_read(handle.pointer, stream.id)
    }
    _ = connect_ngtcp2_shutdown_stream(connection.pointer, stream.id, errorCode.rawValue)
  }

  /// Ends the request of a stream whose response is complete. It ends in order if that can go out now, else by a reset:
  /// the stream must not count against the peer's limit forever.
  func settleRequest(of stream: HTTP3Stream) {
    guard !stream.isClosed, !stream.isReset, !stream.request.isEndSent, let connection = self.connection
    else {
      return
    }
    stream.isSettled = true
    let isHeldBack = stream.request.isBlocked || connection.isWindowClosed
    guard !stream.request.outbound.isWaiting, !isHeldBack else {
      self.giveUpRequest(of: stream)
      return
    }
    guard stream.request.state != .ended else { return }
    stream.request.state = .ending
    self.requestBodyDidChange(stream)
  }

  /// Drops what is left of a request whose response is complete.
  func giveUpRequest(of stream: HTTP3Stream) {
    guard !stream.isClosed, !stream.isReset, let connection = self.connection else { return }
    stream.isReset = true
    stream.request.outbound.removeWaiting()
    if let handle = self.handle { nghttp3_conn_shutdown_stream_write(handle.pointer, stream.id) }
    let code = HTTP3ErrorCode.requestCancelled.rawValue
    _ = connect_ngtcp2_shutdown_stream_write(connection.pointer, stream.id, code)
  }

  /// The peer holds the stream back.
  func streamIsBlocked(_ id: Int64) {
    if let handle = self.handle { nghttp3_conn_block_stream(handle.pointer, id) }
    guard let stream = self.streams[id] else { return }
    stream.request.isBlocked = true
    self.blocked.append(id)
    if stream.isSettled { self.giveUpRequest(of: stream) }
  }

  /// After something was received, tries streams again that were held back. libngtcp2 tells of STOP_SENDING only when
  /// there is more to send.
  func retryBlockedStreams() {
    guard self.blocked.isRetryDue, let handle = self.handle else { return }
    for id in self.blocked.ids {
      guard let stream = self.streams[id], stream.request.isBlocked else { continue }
      stream.request.isBlocked = false
      handle.unblock(id)
    }
    self.blocked.removeAll()
  }

  /// Gives libnghttp3 what there is of the request's body, and says whether that is all.
  private static let readBody: nghttp3_read_data_callback = {
    _,
    _,
    pieces,
    count,
    flags,
    userData,
    streamData in
    guard let pieces, let flags, let layer = layerPointed(to: userData),
      let stream = streamPointed(to: streamData)
    else { return nghttp3_ssize(NGHTTP3_ERR_CALLBACK_FAILURE) }
    return layer.readBody(
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
    let count = stream.request.outbound.give(to: pieces)
    guard !stream.request.outbound.isWaiting else { return count }
    if stream.request.state == .open {
      guard count == 0 else { return count }
      stream.request.isDeferred = true
      if stream.owesWritable {
        stream.owesWritable = false
        self.events.append(.drained(stream))
      }
      return nghttp3_ssize(NGHTTP3_ERR_WOULDBLOCK)
    }
    stream.request.state = .ended
    flags |= UInt32(NGHTTP3_DATA_FLAG_EOF)
    if stream.request.trailers.isEmpty {
      stream.request.isEndWaiting = count == 0
    } else {
      flags |= UInt32(NGHTTP3_DATA_FLAG_NO_END_STREAM)
      self.submitTrailers(of: stream)
    }
    return count
  }

  private func submitTrailers(of stream: HTTP3Stream) {
    guard let handle = self.handle else { return }
    self.requestFields.removeAll()
    self.requestFields.append(stream.request.trailers)
    stream.request.trailers = Headers()
    let result = self.requestFields.withFields { fields, count in
      nghttp3_conn_submit_trailers(handle.pointer, stream.id, fields, count)
    }
    if result != 0 {
      self.events.append(.failed(stream, .notSent(libraryError: result), .requestCancelled))
    }
  }

  /// The peer does not want the rest of the request (STOP_SENDING), which libngtcp2 tells when there is more to send.
  /// It has reset that side of the stream; the response may go on.
  func peerWantsNoMore(ofStream id: Int64) {
    if let handle = self.handle { nghttp3_conn_shutdown_stream_write(handle.pointer, id) }
    guard let stream = self.streams[id] else { return }
    stream.request.state = .ended
    stream.request.outbound.removeWaiting()
    if stream.owesWritable {
      stream.owesWritable = false
      self.events.append(.drained(stream))
    }
  }
}

/// Streams whose requests the peer's windows hold back, and others that were held back a moment ago.
struct BlockedStreams {
  private(set) var ids: [Int64] = []
  /// Whether something was received since they were tried.
  private(set) var isRetryDue = false

  mutating func append(_ id: Int64) { self.ids.append(id) }

  /// Something was received from the peer.
  mutating func didReceive() {
    if !self.ids.isEmpty { self.isRetryDue = true }
  }

  mutating func removeAll() {
    self.ids.removeAll(keepingCapacity: true)
    self.isRetryDue = false
  }
}
