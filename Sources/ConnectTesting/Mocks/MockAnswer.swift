public import Connect

/// What a mock answers, as a value.
///
/// A unary method or a client stream is answered with one message or an error, once its request is complete. A server
/// stream has any number of messages, and perhaps an error after them. For a bidirectional stream, messages and an error
/// are sent at once; a good end comes when the client has finished.
public struct MockAnswer<Output: Sendable>: Sendable {
  /// The response's messages, in order. They are sent before ``error``.
  public var messages: [Output]
  /// The error that the call ends with; nil for a call that succeeds.
  public var error: ConnectError?
  /// The response's headers.
  public var headers: Headers
  /// The response's trailers.
  public var trailers: Headers
  /// How long to wait before anything is sent, on the clock of the mock's executor.
  public var delay: Duration

  private init(
    _ messages: [Output],
    error: ConnectError?,
    headers: Headers,
    trailers: Headers,
    delay: Duration
  ) {
    self.messages = messages
    self.error = error
    self.headers = headers
    self.trailers = trailers
    self.delay = delay
  }

  /// An answer with one message, and a good end.
  ///
  /// - Parameters:
  ///   - message: The response's only message.
  ///   - headers: See ``headers``.
  ///   - trailers: See ``trailers``.
  ///   - delay: How long to wait before it is sent, on the clock of the mock's executor.
  public static func message(
    _ message: Output,
    headers: Headers = [:],
    trailers: Headers = [:],
    after delay: Duration = .zero
  ) -> MockAnswer {
    MockAnswer([message], error: nil, headers: headers, trailers: trailers, delay: delay)
  }

  /// An answer with any number of messages, for a method whose response is a stream.
  ///
  /// - Parameters:
  ///   - messages: See ``messages``.
  ///   - error: What the stream ends with; nil for a good end.
  ///   - headers: See ``headers``.
  ///   - trailers: See ``trailers``.
  ///   - delay: See ``delay``.
  public static func messages(
    _ messages: [Output],
    error: ConnectError? = nil,
    headers: Headers = [:],
    trailers: Headers = [:],
    after delay: Duration = .zero
  ) -> MockAnswer {
    MockAnswer(messages, error: error, headers: headers, trailers: trailers, delay: delay)
  }

  /// An answer without messages: the call fails.
  ///
  /// - Parameters:
  ///   - error: Its details and metadata are sent, too.
  ///   - headers: See ``headers``.
  ///   - trailers: See ``trailers``.
  ///   - delay: See ``delay``.
  public static func failure(
    _ error: ConnectError,
    headers: Headers = [:],
    trailers: Headers = [:],
    after delay: Duration = .zero
  ) -> MockAnswer {
    MockAnswer([], error: error, headers: headers, trailers: trailers, delay: delay)
  }
}

extension MockAnswer {
  /// A handler that gives this answer.
  func handler<Input>() -> BidirectionalStreamHandler<Input, Output> {
    { requests, responses, context in
      context.responseHeaders.append(contentsOf: self.headers)
      context.responseTrailers.append(contentsOf: self.trailers)
      switch context.method.streamType {
      case .unary, .serverStream: _ = try await requests.only()
      case .clientStream: for try await _ in requests {}
      case .bidirectionalStream: break
      }
      if self.delay > .zero { try await context.sleep(for: self.delay) }
      try await context.sendHeaders()
      for message in self.messages { try await responses.send(message) }
      if let error = self.error { throw error }
      if context.method.streamType == .bidirectionalStream { for try await _ in requests {} }
    }
  }
}
