internal import Connect
internal import NIOCore

/// Something that a session found while it read or wrote. Events wait in the session until its C code is off the stack; the
/// connection acts on them then, in order.
enum HTTP3Event {
  /// Requests can be started before the handshake is complete.
  case early
  /// The handshake is complete: requests can be sent.
  case established
  /// The next connection to the server can begin with early data.
  case ticket(SessionTicket)
  /// A request was given to the session.
  case started(HTTP3Stream)
  /// The final response head.
  case head(HTTP3Stream, HTTPResponseHead)
  /// There are bytes of the response's body in the stream's inbox.
  case bytes(HTTP3Stream)
  /// The response is complete.
  case end(HTTP3Stream, trailers: Headers)
  /// All that was written to a streamed body is on its way.
  case drained(HTTP3Stream)
  /// There is no use in going on: the request cannot be sent, or the response cannot be taken.
  case failed(HTTP3Stream, HTTPStreamFailure, HTTP3ErrorCode)
  /// The peer has reset the stream.
  case reset(HTTP3Stream, HTTP3ErrorCode)
  /// The session has forgotten the stream.
  case closed(HTTP3Stream)
  /// The peer allows more streams.
  case room
  /// The peer's GOAWAY was received.
  case goAway

  var isHead: Bool {
    if case .head = self { true } else { false }
  }
}
