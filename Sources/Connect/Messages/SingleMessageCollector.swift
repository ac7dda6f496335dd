/// The outcome of a response that must have exactly one message.
struct SingleMessage<Message: Sendable> {
  let result: Result<Message, ConnectError>
  let headers: Headers
  let trailers: Headers
}

/// Collects the results of a response that must have exactly one message.
///
/// <https://connectrpc.com/docs/protocol#unary-response>: no message at all, or several, is `unimplemented`.
struct SingleMessageCollector<Message: Sendable> {
  private let method: MethodInfo
  private var headers = Headers()
  private var message: Message?

  init(method: MethodInfo) {
    self.method = method
  }

  /// The outcome, if `result` decides it; nil until then.
  mutating func receive(_ result: StreamResult<Message>) -> SingleMessage<Message>? {
    switch result {
    case .headers(let headers):
      self.headers = headers
      return nil
    case .message(let message):
      guard self.message == nil else {
        return self.failure(.wrongMessageCount("several messages", self.method))
      }
      self.message = message
      return nil
    case .complete(_, let error?, let trailers):
      return SingleMessage(result: .failure(error), headers: self.headers, trailers: trailers)
    case .complete(_, nil, let trailers):
      guard let message = self.message else {
        return self.failure(.wrongMessageCount("no message", self.method), trailers: trailers)
      }
      return SingleMessage(result: .success(message), headers: self.headers, trailers: trailers)
    }
  }

  private func failure(_ error: ConnectError, trailers: Headers = Headers()) -> SingleMessage<Message> {
    var error = error
    error.metadata = self.headers
    error.metadata.append(contentsOf: trailers)
    return SingleMessage(result: .failure(error), headers: self.headers, trailers: trailers)
  }
}
