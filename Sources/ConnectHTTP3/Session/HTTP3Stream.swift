internal import Connect
internal import ConnectNIO
internal import NIOCore

/// One request and its response on an ``HTTP3Connection``, confined to the connection's event loop.
///
/// It lives in three places: with the call, in the session, and in events that wait. It holds its handler and its
/// connection until the call is over for the handler. HTTP/3 may need the stream longer: a reset may still have to go
/// out.
final class HTTP3Stream: HTTPStream {
  private(set) var handler: (any HTTPStreamHandler)?
  private(set) var connection: (any HTTP3StreamOwner)?

  // Set by the session.

  /// QUIC's stream identifier; -1 until the request was submitted.
  var id: Int64 = -1
  /// Whether the handler was told that the request was started.
  var hasStarted = false
  /// Whether the response is complete, so that the rest of the request is due at once or never.
  var isSettled = false
  /// Whether we have reset the stream.
  var isReset = false
  /// Whether the session has forgotten the stream.
  var isClosed = false
  /// Whether the handler waits to hear that it may write more.
  var owesWritable = false

  // Each call changes them several times, so exclusivity is not checked at run time. That is safe: no access spans a call
  // out.
  @exclusivity(unchecked) var request = HTTP3StreamRequest()
  @exclusivity(unchecked) var response = HTTP3StreamResponse()

  /// How often the connection had received something from the peer when the stream began.
  var answerCountAtStart = 0

  init(handler: any HTTPStreamHandler, connection: (any HTTP3StreamOwner)?) {
    self.handler = handler
    self.connection = connection
  }

  /// Ends the stream for the call, and returns its handler; nil if that has happened before. The handler hears no more
  /// than what the caller tells it now. The functions of `HTTPStream` have no effect any more.
  func detach() -> (any HTTPStreamHandler)? {
    let handler = self.handler
    self.handler = nil
    self.connection = nil
    self.response.inbox = ByteBuffer()
    return handler
  }

  /// The session has forgotten the stream.
  func close() {
    self.isClosed = true
    self.request.outbound.removeAll()
  }

  /// The session has forgotten the stream, whose whole request is to be submitted again.
  func restart() {
    self.id = -1
    self.request = HTTP3StreamRequest()
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    guard let connection = self.connection else { return }
    // If the peer wants no more of the request, the call can still write, though nobody reads it.
    self.owesWritable = true
    if self.request.state == .open { self.request.outbound.append(bytes) }
    self.requestDidChange(on: connection)
  }

  func finish(trailers: Headers) {
    guard let connection = self.connection, self.request.state == .open else { return }
    self.request.state = .ending
    self.request.trailers = trailers
    self.owesWritable = false
    self.requestDidChange(on: connection)
  }

  func consume(_ count: Int) {
    guard let connection = self.connection else { return }
    connection.session.http.consume(count, of: self)
    connection.scheduleFlush()
  }

  func cancel() {
    let connection = self.request.isHeaderSent ? self.connection : nil
    self.giveUp()
    connection?.callWasGivenUp(inSilenceSince: self.answerCountAtStart)
  }

  func expire() {
    let connection = self.connection
    self.giveUp()
    connection?.callWasGivenUp(inSilenceSince: self.answerCountAtStart)
  }

  private func giveUp() {
    guard let connection = self.connection else { return }
    _ = self.detach()
    if connection.session.http.early?.drop(self) == true {
      connection.session.http.events.append(.closed(self))
    } else {
      connection.session.http.reset(self, errorCode: .requestCancelled)
    }
    connection.scheduleFlush()
  }

  private func requestDidChange(on connection: any HTTP3StreamOwner) {
    connection.session.http.requestBodyDidChange(self)
    connection.scheduleFlush()
  }
}

/// How far the request of a stream is.
struct HTTP3StreamRequest {
  enum State {
    /// The body may go on.
    case open
    /// Nothing will be added; what waits, and the end, are still to be given to the session.
    case ending
    /// The end was given to the session, or the peer does not want it.
    case ended
  }

  var state = State.open
  var outbound = HTTP3OutboundBody()
  var trailers = Headers()
  /// Whether it was sent before the handshake was complete, so that the server may refuse it.
  var isEarly = false
  /// Whether any of it was put into a packet.
  var isHeaderSent = false
  /// Whether the session has asked for more of the body when there was none.
  var isDeferred = false
  /// Whether the peer's window for the stream holds it back.
  var isBlocked = false
  /// Whether its end, without data, was given to libnghttp3 and is not sent yet.
  var isEndWaiting = false
  /// What was acknowledged meanwhile, in bytes.
  var heldAcknowledgement: UInt64 = 0
  /// Whether its end was put into a packet.
  var isEndSent = false
}

/// How far the response of a stream is.
struct HTTP3StreamResponse {
  enum State {
    case head
    case body
    case ended
  }

  var state = State.head
  /// Its status; 0 if it is not known.
  var status = 0
  /// How many informational responses have come.
  var informationalCount = 0
  /// Whether the rest of it is skipped.
  var isMalformed = false
  /// What has come of its body since the handler was last told.
  var inbox = ByteBuffer()
  /// The header block that is being received.
  var block = HTTPFieldBlock()
  /// The trailers that have come so far.
  var trailers = Headers()
  /// Bytes of the body that were received and not yet given back to the peer's window.
  var unconsumed = 0

  mutating func takeBlock() -> HTTPFieldBlock {
    let block = self.block
    self.block = HTTPFieldBlock()
    return block
  }

  mutating func takeInbox() -> ByteBuffer {
    let bytes = self.inbox
    self.inbox = ByteBuffer()
    return bytes
  }
}

/// What a stream needs of its connection.
protocol HTTP3StreamOwner: AnyObject {
  var session: HTTP3Session { get }
  func scheduleFlush()
  /// A call was cancelled, or its deadline has passed. `answerCount` is from its start.
  func callWasGivenUp(inSilenceSince answerCount: Int)
}
