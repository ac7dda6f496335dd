public import NIOCore

/// What flows down through the interceptors. Messages are those of the method, or behind the codec bytes.
@usableFromInline
package enum RequestPart: Sendable {
  /// The whole request of a unary call.
  case whole(RequestHead, any AnyMessage)
  /// The same behind the codec, where nobody has put the bytes into a box.
  case wholeBytes(RequestHead, ByteBuffer)
  /// The beginning of a stream, whose messages follow.
  case head(RequestHead)
  case message(any AnyMessage)
  /// A message behind the codec, where nobody has put the bytes into a box.
  case bytes(ByteBuffer)
  /// The end of a stream.
  case end

  /// The head, of a part that has one.
  var head: RequestHead? {
    switch self {
    case .whole(let head, _), .wholeBytes(let head, _), .head(let head): head
    case .message, .bytes, .end: nil
    }
  }

  /// Whether it has a head.
  var hasHead: Bool {
    switch self {
    case .whole, .wholeBytes, .head: true
    case .message, .bytes, .end: false
    }
  }

  /// The part as it goes on in place of `given`, which an interceptor received. A newly created request inherits from the
  /// head of the request that the interceptor received.
  package consuming func inPlace(of given: RequestHead?, isUnary: Bool) -> RequestPart {
    if self.isUnchanged(from: given, isUnary: isUnary) { return self }
    return switch consume self {
    case .whole(let head, let message):
      isUnary ? .whole(head.completed(from: given), message) : .head(head.completed(from: given))
    case .wholeBytes(let head, let bytes): .wholeBytes(head.completed(from: given), bytes)
    case .head(let head): .head(head.completed(from: given))
    case .message(let message): .message(message)
    case .bytes(let bytes): .bytes(bytes)
    case .end: .end
    }
  }

  /// Whether nothing of it has to change to go on in place of `given`.
  private func isUnchanged(from given: RequestHead?, isUnary: Bool) -> Bool {
    switch self {
    case .whole(let head, _): isUnary && head === given
    case .wholeBytes(let head, _), .head(let head): head === given
    case .message, .bytes, .end: true
    }
  }
}
