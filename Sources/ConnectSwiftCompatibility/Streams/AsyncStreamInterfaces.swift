/// A call with streams in both directions.
///
/// Dropping it and its results, and cancelling the task that reads them, cancel the call.
public protocol BidirectionalAsyncStreamInterface<Input, Output>: Sendable {
  /// The message that the client sends.
  associatedtype Input: ProtobufMessage
  /// The message that the server sends.
  associatedtype Output: ProtobufMessage

  /// Sends a message as soon as the server takes it. Messages are sent in the order of these calls.
  ///
  /// - Throws: ``ConnectError`` with `failed_precondition` behind ``close()`` and ``cancel()``.
  @discardableResult
  func send(_ input: Input) throws -> Self

  /// The results, always the same sequence: headers, messages, and `complete`.
  func results() -> AsyncStream<StreamResult<Output>>

  /// Ends the request behind what was sent; the response goes on.
  func close()

  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  func cancel()
}

/// A call that answers a stream of messages with one.
public protocol ClientOnlyAsyncStreamInterface<Input, Output>: Sendable {
  /// The message that the client sends.
  associatedtype Input: ProtobufMessage
  /// The message that the server sends.
  associatedtype Output: ProtobufMessage

  /// Sends a message as soon as the server takes it. Messages are sent in the order of these calls.
  ///
  /// - Throws: ``ConnectError`` with `failed_precondition` behind ``closeAndReceive()`` and ``cancel()``.
  @discardableResult
  func send(_ input: Input) throws -> Self

  /// The results, always the same sequence: headers, a message, and `complete`.
  func results() -> AsyncStream<StreamResult<Output>>

  /// Ends the request behind what was sent; the response is among the results.
  func closeAndReceive()

  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  func cancel()
}

/// A call that answers one message with a stream.
///
/// Dropping it and its results, and cancelling the task that reads them, cancel the call.
public protocol ServerOnlyAsyncStreamInterface<Input, Output>: Sendable {
  /// The message that the client sends.
  associatedtype Input: ProtobufMessage
  /// The message that the server sends.
  associatedtype Output: ProtobufMessage

  /// Sends the request: once, at the start.
  ///
  /// - Throws: ``ConnectError`` with `failed_precondition` if it was sent before, and behind ``cancel()``.
  func send(_ input: Input) throws

  /// The results, always the same sequence: headers, messages, and `complete`.
  func results() -> AsyncStream<StreamResult<Output>>

  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  func cancel()
}
