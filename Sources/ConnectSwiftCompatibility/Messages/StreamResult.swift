public import Connect

/// One thing that a response stream brings: headers once, then messages, then its end.
public enum StreamResult<Output: Sendable>: Sendable {
  /// The end; nothing follows. An error is a ``ConnectError``. Trailers are nil if there are none.
  case complete(code: Code, error: (any Swift.Error)?, trailers: Trailers?)
  /// The metadata, names in lower case.
  case headers(Headers)
  /// One message of the response.
  case message(Output)

  /// The message, if this is one.
  public var messageValue: Output? {
    if case .message(let message) = self { message } else { nil }
  }
}

/// Two ends are equal if their codes and trailers are, and both or none have an error.
extension StreamResult: Equatable where Output: Equatable {
  /// Whether both are the same result; see above for ends.
  public static func == (left: StreamResult, right: StreamResult) -> Bool {
    switch (left, right) {
    case (.headers(let left), .headers(let right)):
      left == right
    case (.message(let left), .message(let right)):
      left == right
    case (
      .complete(let leftCode, let leftError, let left), .complete(let rightCode, let rightError, let right)
    ):
      leftCode == rightCode && (leftError == nil) == (rightError == nil) && left == right
    default:
      false
    }
  }
}

extension StreamResult {
  /// The same result in connect-swift's form.
  init<Message>(_ native: Connect::StreamResult<Message>, message: (Message) -> Output) {
    switch native {
    case .headers(let headers):
      self = .headers(headers.dictionary)
    case .message(let value):
      self = .message(message(value))
    case .complete(let code, let error, let trailers):
      self = .complete(
        code: code,
        error: error.map { ConnectError($0) },
        trailers: trailers.isEmpty ? nil : trailers.dictionary
      )
    }
  }

  init(_ native: Connect::StreamResult<Output>) {
    self.init(native) { $0 }
  }

  /// The same result in this library's type.
  func native<Message>(message: (Output) -> Message) -> Connect::StreamResult<Message> {
    switch self {
    case .headers(let headers):
      .headers(Connect::Headers(headers))
    case .message(let value):
      .message(message(value))
    case .complete(let code, let error, let trailers):
      .complete(
        code: code,
        error: error.map { ConnectError($0).native },
        trailers: Connect::Headers(trailers ?? [:])
      )
    }
  }
}
