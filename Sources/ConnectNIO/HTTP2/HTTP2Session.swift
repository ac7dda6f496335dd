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
  let configuration: HTTP2Configuration

  /// Nil once the session was invalidated, or if there was no memory for it.
  private(set) var handle: NGHTTP2Session?
  let origin: HTTP2Origin

  // Changed by callbacks: no access to one of these may span a call into libnghttp2. For those that each frame needs,
  // exclusivity is not checked at run time.
  @exclusivity(unchecked) var events: ContiguousArray<HTTP2Event> = []
  @exclusivity(unchecked) var output: HTTP2Output
  @exclusivity(unchecked) var requestFields = HTTP2FieldArray()
  /// The block that is being received: a response's head or its trailers.
  @exclusivity(unchecked) var fields = (head: HTTPFieldBlock(), trailers: HTTPFieldBlock())
  /// The buffer that is being read, and where its readable bytes are in memory.
  var input = (buffer: ByteBuffer(), start: UnsafePointer<UInt8>?.none)
  /// The stream of the frame that is being received, 0 for a frame of the connection; nil between frames. If the peer
  /// breaks the protocol, libnghttp2 reads no more frames, so that this is the stream of the broken one.
  @exclusivity(unchecked) var frameStreamID: Int32?
  /// The last GOAWAY of the peer.
  var goAway: HTTP2GoAway?
  /// The GOAWAY that we sent. libnghttp2 sends one by itself if the peer breaks the protocol.
  var sentGoAway: HTTP2GoAway?
  /// Why libnghttp2 cannot go on; nil while it can.
  private(set) var failure: HTTP2SessionFailure?
  @exclusivity(unchecked) var streams = HTTP2StreamList()

  init(configuration: HTTP2Configuration, scheme: String, authority: String) {
    self.configuration = configuration
    self.output = HTTP2Output(isEncrypted: scheme == "https")
    self.origin = HTTP2Origin(scheme: scheme, authority: authority)
    self.handle = NGHTTP2Session(of: self)
    self.handle?.submitSettings(configuration)
  }

  deinit {
    self.invalidate()
  }

  /// Deletes the C session, and gives up its references to the streams that are still live.
  func invalidate() {
    self.streams.removeAll()
    self.handle.take()?.delete()
  }

  // MARK: Reading

  /// Reads `bytes`, which may be any part of what the peer sends.
  ///
  /// - Returns: Whether the session can go on; if not, the connection has to be closed at once.
  func receive(_ bytes: ByteBuffer) -> Bool {
    guard let handle = self.handle else { return false }
    self.input.buffer = bytes
    let result = bytes.withUnsafeReadableBytes { bytes in
      let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
      self.input.start = start
      return nghttp2_session_mem_recv(handle.pointer, start, bytes.count)
    }
    self.input = (ByteBuffer(), nil)
    return self.check(result)
  }

  // MARK: Writing

  /// Whether there is something to send.
  var wantsWrite: Bool { self.handle?.wantsWrite ?? false }

  /// Puts frames into ``output`` until there are no more, or until it has about `limit` bytes.
  ///
  /// - Returns: Whether the session can go on; if not, the connection has to be closed at once.
  func fillOutput(limit: Int) -> Bool {
    guard let handle = self.handle else { return false }
    self.output.recycle(limit: limit)
    while !self.output.isFull {
      var frame: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(handle.pointer, &frame)
      guard self.check(count) else { return false }
      guard count > 0 else { break }
      self.output.append(copying: UnsafeRawBufferPointer(start: frame, count: count))
    }
    return true
  }

  private func check(_ result: Int) -> Bool {
    guard result < 0 else { return true }
    self.failure = HTTP2SessionFailure(libraryError: Int32(truncatingIfNeeded: result))
    return false
  }

  // MARK: Connection

  /// Whether another request can be submitted: identifiers are not used up, and no GOAWAY was seen.
  var takesRequests: Bool { self.handle?.takesRequests ?? false }

  /// Whether GOAWAY was queued by libnghttp2, since the peer broke the protocol, and nothing else matters.
  var isTerminating: Bool {
    guard !self.takesRequests, self.goAway == nil, let handle = self.handle else { return false }
    return handle.hasStreamIDs
  }
}

/// The origin of a session's requests, as bytes that stay where they are.
struct HTTP2Origin: ~Copyable {
  let scheme: UnsafeBufferPointer<UInt8>
  let authority: UnsafeBufferPointer<UInt8>

  init(scheme: String, authority: String) {
    self.scheme = Self.copy(scheme)
    self.authority = Self.copy(authority)
  }

  deinit {
    self.scheme.deallocate()
    self.authority.deallocate()
  }

  private static func copy(_ string: String) -> UnsafeBufferPointer<UInt8> {
    let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: string.utf8.count)
    _ = bytes.initialize(from: string.utf8)
    return UnsafeBufferPointer(bytes)
  }
}

/// Why libnghttp2 could not go on.
struct HTTP2SessionFailure {
  /// NGHTTP2_ERR_TOO_MANY_CONTINUATIONS, which early versions do not have.
  private static let tooManyContinuations: Int32 = -905

  /// What libnghttp2 says.
  let reason: String
  /// Whether it is about a header block in more frames than libnghttp2 takes.
  let isHeaderBlockEndless: Bool

  init(libraryError code: Int32) {
    self.reason = nghttp2_strerror(code).map { String(cString: $0) } ?? "error \(code)"
    self.isHeaderBlockEndless = code == Self.tooManyContinuations
  }
}
