public import NIOCore

/// A part of a response on its way up through the interceptors.
@usableFromInline
package enum ResultPart: Sendable {
  /// The whole response to a unary call.
  case whole(AnyResponse)
  /// The same, with a message of bytes.
  case wholeBytes(HTTPResponse)
  case headers(Headers)
  case message(any AnyMessage)
  /// A message before it is decoded, with bytes that are not boxed.
  case bytes(ByteBuffer)
  /// The end of a stream.
  case end(ConnectError?, trailers: Headers)

  /// The end of a stream that failed.
  static func failed(_ error: ConnectError) -> ResultPart {
    .end(error, trailers: error.metadata)
  }

  /// Whether nothing follows.
  package var isEnd: Bool {
    switch self {
    case .whole, .wholeBytes, .end: true
    case .headers, .message, .bytes: false
    }
  }

  /// The error, of a part that ends the call.
  package var error: ConnectError? {
    switch self {
    case .whole(let response): response.error
    case .wholeBytes(let response): response.error
    case .end(let error, _): error
    case .headers, .message, .bytes: nil
    }
  }

  /// Whether it is an end with an error.
  var isFailure: Bool {
    if case .end(.some, _) = self { true } else { false }
  }

  /// Whether it is a message of a stream.
  var isMessage: Bool {
    switch self {
    case .message, .bytes: true
    case .whole, .wholeBytes, .headers, .end: false
    }
  }
}

extension ConnectError {
  /// A message got past the codec without being decoded, which the pipeline rules out.
  static var undecodedMessage: ConnectError {
    ConnectError(
      code: .internalError,
      message: "a received message reached the caller's side without being decoded; "
        + "this is a defect of the library: please report it"
    )
  }
}

extension StreamResult {
  /// The part that carries this result. An end has an error if its code or its error says so, even if a hook has set
  /// only one of them.
  @inlinable
  @inline(__always)
  package var part: ResultPart {
    switch self {
    case .headers(let headers): .headers(headers)
    case .message(let message): .message(MessageBox(message))
    case .complete(let code, let error, let trailers): .end(code: code, error, trailers)
    }
  }

  /// The result that a part of a stream carries.
  @inlinable
  @inline(__always)
  package init(_ part: ResultPart) {
    switch part {
    case .headers(let headers): self = .headers(headers)
    case .message(let message): self = .message(MessageBox<Message>.of(message).message)
    case .bytes(let bytes): self = Self.message(of: bytes)
    case .end(let error, let trailers): self = .end(error, trailers)
    case .whole(let response): self = .end(response.error, response.trailers)
    case .wholeBytes(let response): self = .end(response.error, response.trailers)
    }
  }

  /// Only behind the codec, where messages are bytes.
  @usableFromInline
  static func message(of bytes: ByteBuffer) -> Self {
    if let message = bytes as? Message { return .message(message) }
    assertionFailure("bytes in front of the codec")
    return .end(.undecodedMessage, Headers())
  }

  @usableFromInline
  static func end(_ error: ConnectError?, _ trailers: Headers) -> Self {
    .complete(code: error?.code ?? .ok, error: error, trailers: trailers)
  }
}

extension ResultPart {
  @usableFromInline
  static func end(code: Code, _ error: ConnectError?, _ trailers: Headers) -> ResultPart {
    .end(error ?? code.error(metadata: trailers), trailers: trailers)
  }
}

/// A response, whatever the type of its messages.
protocol ResultConvertible {
  var results: [ResultPart] { get }
}

extension ResponseMessage: ResultConvertible {
  var results: [ResultPart] { [.whole(self.erased)] }
}

extension HTTPResponse: ResultConvertible {
  var results: [ResultPart] { [.wholeBytes(self)] }
}
