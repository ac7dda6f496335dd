internal import Connect
internal import NIOCore

/// Something that a session found while it read or wrote. Events wait in the session until its C code is off
/// the stack; the connection acts on them then, in order.
enum HTTP2Event {
  /// A request was given to the session.
  case started(HTTP2Stream)
  /// The final response head.
  case head(HTTP2Stream, HTTPResponseHead)
  /// A piece of the response's body, a slice of what was read.
  case bytes(HTTP2Stream, ByteBuffer)
  /// END_STREAM was received.
  case end(HTTP2Stream, trailers: Headers)
  /// All that was written to a streamed body has left the session.
  case drained(HTTP2Stream)
  /// There is no use in going on: the request cannot be sent, or the response cannot be taken.
  case failed(HTTP2Stream, HTTPStreamFailure)
  /// The session has forgotten the stream.
  case closed(HTTP2Stream, HTTP2ErrorCode)
  /// The peer's SETTINGS were received.
  case settings
  /// The peer's GOAWAY was received.
  case goAway
  /// A PING was answered.
  case pong

  var isHead: Bool {
    if case .head = self { true } else { false }
  }
}
