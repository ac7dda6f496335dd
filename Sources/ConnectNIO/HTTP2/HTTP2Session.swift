internal import CNghttp2
internal import Connect
internal import NIOCore

/// The client's half of an HTTP/2 connection without the socket: libnghttp2's session, and the only place that
/// touches it.
///
/// Bytes go in with ``receive(_:)`` and come out of ``fillOutput(limit:)``. What was found in them is left in a list of
/// events. The C callbacks only append to this list and to the streams. Nothing here calls the connection, a handler or
/// a delegate.
///
/// Confined to one thread, that of the connection's event loop. Each live stream holds the C session's reference to it.
/// The reference is retained on submission, and released once: when the C session closes the stream or when the session
/// is invalidated, whichever comes first.
final class HTTP2Session {
  /// The largest block that libnghttp2 makes of the fields of a request, in bytes (`max_send_header_block_length`).
  static let maximumHeaderBlock = 64 << 10

  let configuration: HTTP2Configuration

  /// Nil once the session was invalidated, or if there was no memory for it.
  private(set) var handle: OpaquePointer?
  let scheme: UnsafeBufferPointer<UInt8>
  let authority: UnsafeBufferPointer<UInt8>

  // Changed by callbacks: no access to one of these may span a call into libnghttp2. For those that each frame needs,
  // exclusivity is not checked at run time.
  @exclusivity(unchecked) var events: ContiguousArray<HTTP2Event> = []
  @exclusivity(unchecked) var output: HTTP2Output
  @exclusivity(unchecked) var requestFields = HTTP2FieldArray()
  /// The block that is being received, if it is a response's head...
  @exclusivity(unchecked) var headFields = HTTPFieldBlock()
  /// ... or its trailers.
  @exclusivity(unchecked) var trailerFields = HTTPFieldBlock()
  /// The buffer that is being read, and where its readable bytes are in memory.
  var input = ByteBuffer()
  var inputStart: UnsafePointer<UInt8>?
  /// The stream that the last callback was about; frames of a stream often come in a row.
  var lastStream: Unmanaged<HTTP2Stream>?
  /// DATA is not added to output that has this many bytes.
  var outputLimit = 0
  /// The stream of the frame that is being received, 0 for a frame of the connection; nil between frames. If the peer
  /// breaks the protocol, libnghttp2 reads no more frames, so that this is the stream of the broken one.
  @exclusivity(unchecked) var frameStreamID: Int32?
  /// The last GOAWAY of the peer.
  var goAway: HTTP2GoAway?
  /// The GOAWAY that we sent. libnghttp2 sends one by itself if the peer breaks the protocol.
  var sentGoAway: HTTP2GoAway?
  /// What libnghttp2 said when it could not go on; nil while it can.
  private(set) var fatalError: String?
  /// Whether `fatalError` is about a header block in more frames than libnghttp2 takes.
  private(set) var isHeaderBlockEndless = false

  /// Whether the peer has broken the protocol, or libnghttp2 cannot go on for another reason.
  var isBroken: Bool { self.fatalError != nil || (self.sentGoAway?.errorCode ?? .noError) != .noError }

  /// The streams that the C session knows, newest first; see `insert(_:)` and `remove(_:)`.
  var firstLive: Unmanaged<HTTP2Stream>?
  var liveCount = 0

  init(configuration: HTTP2Configuration, scheme: String, authority: String) {
    self.configuration = configuration
    self.output = HTTP2Output(isEncrypted: scheme == "https")
    self.scheme = Self.copy(scheme)
    self.authority = Self.copy(authority)
    self.handle = Self.makeHandle(userData: Unmanaged.passUnretained(self).toOpaque())
    self.submitSettings()
  }

  deinit {
    self.invalidate()
    self.scheme.deallocate()
    self.authority.deallocate()
  }

  /// Deletes the C session, and gives up its references to the streams that are still live.
  func invalidate() {
    while let first = self.firstLive?.takeUnretainedValue() { self.remove(first) }
    guard let handle = self.handle else { return }
    self.handle = nil
    nghttp2_session_del(handle)
  }

  // MARK: Reading

  /// Reads `bytes`, which may be any part of what the peer sends.
  ///
  /// - Returns: Whether the session can go on; if not, the connection has to be closed at once.
  func receive(_ bytes: ByteBuffer) -> Bool {
    guard let handle = self.handle else { return false }
    self.input = bytes
    let result = bytes.withUnsafeReadableBytes { bytes in
      self.inputStart = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
      return nghttp2_session_mem_recv(handle, self.inputStart, bytes.count)
    }
    self.inputStart = nil
    self.input = ByteBuffer()
    return self.check(result)
  }

  // MARK: Writing

  /// Whether there is something to send.
  var wantsWrite: Bool {
    guard let handle = self.handle else { return false }
    return nghttp2_session_want_write(handle) != 0
  }

  /// Whether the session still has a use for what the peer sends. If not, and if nothing is left to send, the
  /// connection is to be closed.
  var wantsRead: Bool {
    guard let handle = self.handle else { return false }
    return nghttp2_session_want_read(handle) != 0
  }

  /// How many frames other than DATA wait to be sent.
  var queuedFrames: Int {
    guard let handle = self.handle else { return 0 }
    return nghttp2_session_get_outbound_queue_size(handle)
  }

  /// Puts frames into ``output`` until there are no more, or until it has about `limit` bytes.
  ///
  /// - Returns: Whether the session can go on; if not, the connection has to be closed at once.
  func fillOutput(limit: Int) -> Bool {
    guard let handle = self.handle else { return false }
    self.output.recycle()
    self.outputLimit = limit
    while self.output.byteCount < limit {
      var frame: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(handle, &frame)
      guard self.check(count) else { return false }
      guard count > 0 else { break }
      self.output.append(copying: UnsafeRawBufferPointer(start: frame, count: count))
    }
    return true
  }

  /// NGHTTP2_ERR_TOO_MANY_CONTINUATIONS, which early versions do not have.
  private static let tooManyContinuations: Int32 = -905

  private func check(_ result: Int) -> Bool {
    guard result < 0 else { return true }
    let code = Int32(truncatingIfNeeded: result)
    self.isHeaderBlockEndless = code == Self.tooManyContinuations
    self.fatalError = nghttp2_strerror(code).map { String(cString: $0) } ?? "error \(code)"
    return false
  }

  // MARK: Connection

  /// How many streams the peer allows at the same time.
  var maxConcurrentStreams: Int {
    guard let handle = self.handle else { return 0 }
    let count = nghttp2_session_get_remote_settings(handle, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    return min(Int(count), Int(Int32.max))
  }

  /// Whether another request can be submitted: identifiers are not used up, and no GOAWAY was seen.
  var takesRequests: Bool {
    guard let handle = self.handle else { return false }
    return nghttp2_session_check_request_allowed(handle) != 0
  }

  /// Whether GOAWAY was queued by libnghttp2, since the peer broke the protocol, and nothing else matters.
  var isTerminating: Bool {
    guard !self.takesRequests, self.goAway == nil, let handle = self.handle else { return false }
    // Not because the identifiers are used up.
    return nghttp2_session_get_next_stream_id(handle) <= UInt32(Int32.max)
  }

  /// Queues a PING.
  func ping() {
    guard let handle = self.handle else { return }
    _ = nghttp2_submit_ping(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
  }

  /// Queues GOAWAY; nothing is sent after it.
  func terminate(_ errorCode: HTTP2ErrorCode) {
    guard let handle = self.handle else { return }
    _ = nghttp2_session_terminate_session(handle, errorCode.rawValue)
  }

  /// Has the next stream use this identifier or a later one. For tests.
  func skipStreamIDs(to id: Int32) {
    guard let handle = self.handle else { return }
    _ = nghttp2_session_set_next_stream_id(handle, id)
  }

  private func submitSettings() {
    guard let handle = self.handle else { return }
    let window = self.configuration.initialStreamWindow.clamped(to: 1...Int(Int32.max))
    let headerList = self.configuration.maxHeaderListSize.clamped(to: 0...Int(Int32.max))
    let frame = self.configuration.maxFrameSize.clamped(to: 1 << 14...(1 << 24) - 1)
    let settings = [
      Self.setting(NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
      Self.setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window),
      Self.setting(NGHTTP2_SETTINGS_MAX_FRAME_SIZE, frame),
      Self.setting(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, headerList),
    ]
    _ = nghttp2_submit_settings(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
    let connectionWindow = self.configuration.connectionWindow.clamped(to: 65_535...Int(Int32.max))
    _ = nghttp2_session_set_local_window_size(
      handle,
      UInt8(NGHTTP2_FLAG_NONE.rawValue),
      0,
      Int32(connectionWindow)
    )
  }

  private static func setting(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
    nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(value))
  }

  private static func copy(_ string: String) -> UnsafeBufferPointer<UInt8> {
    let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: string.utf8.count)
    _ = bytes.initialize(from: string.utf8)
    return UnsafeBufferPointer(bytes)
  }
}
