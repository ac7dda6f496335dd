internal import Connect
internal import NIOCore

/// One request and its response on an ``HTTP2Connection``, confined to the connection's event loop.
///
/// It lives in three places: with the call, in the session's list of live streams, and in events that wait. It holds
/// its handler and its connection until the call is over for the handler. HTTP/2 may need the stream longer: a reset
/// may still have to go out.
final class HTTP2Stream: HTTPStream {
  /// How far the request is.
  enum RequestState {
    /// The body may go on.
    case open
    /// Nothing will be added; what waits, and END_STREAM, are still to be sent.
    case ending
    /// END_STREAM was given to the session.
    case ended
  }

  /// How far the response is.
  enum ResponseState {
    case head
    case body
    case ended
  }

  private(set) var handler: (any HTTPStreamHandler)?
  private(set) var connection: HTTP2Connection?

  // Set by the session.

  /// The stream identifier (RFC 9113, section 5.1.1); 0 until the request was submitted.
  var id: Int32 = 0
  /// Whether the session has begun to write HEADERS.
  var isHeaderSent = false
  /// The size of the request's header list, as in RFC 9113, section 6.5.2.
  var requestFieldsSize = 0
  /// Whether RST_STREAM was queued by us.
  var isReset = false
  /// Whether the peer sent RST_STREAM.
  var isResetByPeer = false
  /// Whether the session has forgotten the stream.
  var isClosed = false
  /// Why HEADERS could not be sent: libnghttp2's error code, or 0.
  var notSentError: Int32 = 0

  var request = RequestState.open
  // Each call changes it several times, so exclusivity is not checked at run time. That is safe: no access spans a call
  // out.
  @exclusivity(unchecked) var outbound = HTTP2OutboundBody()
  var requestTrailers = Headers()
  /// Whether the session has asked for more of the body when there was none.
  var isDeferred = false
  /// Whether the handler waits to hear that it may write more.
  var owesWritable = false

  var response = ResponseState.head
  /// The response's status; 0 if it is not known.
  var status = 0
  /// How many informational responses have come.
  var informationalCount = 0
  /// Bytes of the body that were received and not yet given back to the peer's window.
  var unconsumed = 0

  /// How often the connection had received something when the stream began.
  var readCountAtStart = 0

  /// Neighbours in the session's list of live streams, which holds one reference to each of its members.
  var next: Unmanaged<HTTP2Stream>?
  var previous: Unmanaged<HTTP2Stream>?

  init(handler: any HTTPStreamHandler, connection: HTTP2Connection?) {
    self.handler = handler
    self.connection = connection
  }

  /// Ends the stream for the call, and returns its handler; nil if that has happened before. The handler hears no more
  /// than what the caller tells it now. The functions of `HTTPStream` have no effect any more.
  func detach() -> (any HTTPStreamHandler)? {
    let handler = self.handler
    self.handler = nil
    self.connection = nil
    return handler
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    guard let connection = self.connection, self.request == .open else { return }
    self.outbound.append(bytes)
    self.owesWritable = true
    connection.session.requestBodyDidChange(self)
    connection.scheduleFlush()
  }

  func finish(trailers: Headers) {
    guard let connection = self.connection, self.request == .open else { return }
    self.request = .ending
    self.requestTrailers = trailers
    self.owesWritable = false
    connection.session.requestBodyDidChange(self)
    connection.scheduleFlush()
  }

  func consume(_ count: Int) {
    guard let connection = self.connection else { return }
    connection.session.consume(count, of: self)
    if connection.session.wantsWrite { connection.scheduleFlush() }
  }

  func cancel() {
    let connection = self.isHeaderSent ? self.connection : nil
    self.giveUp()
    connection?.peerWatch.callWasGivenUp(inSilenceSince: self.readCountAtStart)
  }

  func expire() {
    let connection = self.connection
    self.giveUp()
    connection?.peerWatch.callWasGivenUp(inSilenceSince: self.readCountAtStart)
  }

  private func giveUp() {
    guard let connection = self.connection else { return }
    _ = self.detach()
    connection.session.reset(self, errorCode: .cancel)
    connection.scheduleFlush()
  }
}
