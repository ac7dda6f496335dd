public import NIOCore

/// A part of a request on its way down through the interceptors. Messages have the method's type before the codec, and
/// are bytes after it.
@usableFromInline
package enum RequestPart: Sendable {
  /// The whole request of a unary call.
  case whole(RequestHead, any AnyMessage)
  /// The same after the codec, with bytes that are not boxed.
  case wholeBytes(RequestHead, ByteBuffer)
  /// The beginning of a stream, whose messages follow.
  case head(RequestHead)
  case message(any AnyMessage)
  /// A message after the codec, with bytes that are not boxed.
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

  /// Whether the part has a head.
  var hasHead: Bool {
    switch self {
    case .whole, .wholeBytes, .head: true
    case .message, .bytes, .end: false
    }
  }

  /// The part as it goes on in place of `given`, which an interceptor received. A newly created request inherits from the
  /// head of the request that the interceptor received.
  package consuming func inPlace(of given: RequestHead?, isUnary: Bool) -> RequestPart {
    switch consume self {
    case .whole(let head, let message):
      isUnary ? .whole(head.completed(from: given), message) : .head(head.completed(from: given))
    case .wholeBytes(let head, let bytes): .wholeBytes(head.completed(from: given), bytes)
    case .head(let head): .head(head.completed(from: given))
    case .message(let message): .message(message)
    case .bytes(let bytes): .bytes(bytes)
    case .end: .end
    }
  }

  /// A head without a message becomes a whole request with the message of `other`, if that is one.
  consuming func withMessage(of other: RequestPart) -> RequestPart {
    guard case .head(let head) = self else { return self }
    switch other {
    case .whole(_, let message): return .whole(head, message)
    case .wholeBytes(_, let bytes): return .wholeBytes(head, bytes)
    case .head, .message, .bytes, .end: return self
    }
  }

  /// Whether the part can go on in place of `given` as it is.
  func isInPlace(of given: RequestPart, isUnary: Bool) -> Bool {
    switch self {
    case .whole(let head, _): isUnary && given.has(head)
    case .wholeBytes(let head, _), .head(let head): given.has(head)
    case .message, .bytes, .end: true
    }
  }

  private func has(_ other: RequestHead) -> Bool {
    switch self {
    case .whole(let head, _), .wholeBytes(let head, _), .head(let head): head === other
    case .message, .bytes, .end: false
    }
  }
}

/// A request, whatever the type of its message.
protocol PartConvertible {
  var part: RequestPart { get }
}

extension HTTPRequest: PartConvertible {
  /// The whole request; that of a stream has an empty message.
  @inlinable
  @inline(__always)
  package var part: RequestPart { .whole(self.head, self.box) }
}
