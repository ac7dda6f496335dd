internal import NIOCore

/// The outcome of a response that must have exactly one message.
struct SingleMessage {
  /// The part that brought the message, or the error.
  var result: Result<ResultPart, ConnectError>
  let headers: Headers
  let trailers: Headers

  /// The message, if it is bytes. Nobody else holds it afterwards.
  mutating func takeBytes() -> ByteBuffer? {
    guard case .success(.bytes(let bytes)) = self.result else { return nil }
    self.result = .success(.bytes(ByteBuffer()))
    return bytes
  }
}

/// Collects the results of a response that must have exactly one message.
///
/// <https://connectrpc.com/docs/protocol#unary-response>: a response with no message, or with several, is
/// `unimplemented`.
struct SingleMessageCollector {
  private let method: MethodInfo
  private var headers = Headers()
  private var message: ResultPart?

  init(method: MethodInfo) {
    self.method = method
  }

  /// The response, once `result` decides it.
  mutating func receive(_ result: ResultPart) -> SingleMessage? {
    switch result {
    case .headers(let headers):
      self.headers = headers
      return nil
    case .message, .bytes:
      guard self.message == nil else {
        return self.wrongCount("several messages")
      }
      self.message = result
      return nil
    case .end(let error?, let trailers):
      return SingleMessage(result: .failure(error), headers: self.headers, trailers: trailers)
    case .end(nil, let trailers):
      guard let message = self.message else {
        return self.wrongCount("no message", trailers: trailers)
      }
      return SingleMessage(result: .success(message), headers: self.headers, trailers: trailers)
    case .whole, .wholeBytes:
      return nil
    }
  }

  private func wrongCount(_ what: String, trailers: Headers = Headers()) -> SingleMessage {
    var error = ConnectError(
      code: .unimplemented,
      message: "\(self.method.path) answered with \(what), where exactly one was expected",
      metadata: self.headers
    )
    error.metadata.append(contentsOf: trailers)
    return SingleMessage(result: .failure(error), headers: self.headers, trailers: trailers)
  }
}
