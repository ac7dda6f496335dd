/// One result of a response stream: headers once, then messages, then its end.
public enum StreamResult<Message: Sendable>: Sendable {
  /// The response's headers, at most once and before any message.
  case headers(Headers)
  /// A message of the response.
  case message(Message)
  /// The end; nothing follows. `error` is set if and only if `code` is not ``Code/ok``.
  case complete(code: Code, error: ConnectError?, trailers: Headers)

  /// The message, if this is one.
  public var message: Message? {
    if case .message(let message) = self { message } else { nil }
  }

  /// The end of a stream that failed.
  public static func failed(_ error: ConnectError) -> Self {
    .complete(code: error.code, error: error, trailers: error.metadata)
  }
}
