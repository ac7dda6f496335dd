/// A call with streams in both directions, whose results come to a callback. Dropping it does not cancel.
public protocol BidirectionalStreamInterface<Input>: Sendable {
  /// The message that the client sends.
  associatedtype Input: ProtobufMessage

  /// Sends a message as soon as the server takes it. Messages are sent in the order of these calls. Behind ``close()`` and
  /// ``cancel()`` it does nothing.
  @discardableResult
  func send(_ input: Input) -> Self

  /// Ends the request behind what was sent; the response goes on.
  func close()

  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  func cancel()
}

/// A call that answers a stream of messages with one, which comes to a callback. Dropping it does not cancel.
public protocol ClientOnlyStreamInterface<Input>: Sendable {
  /// The message that the client sends.
  associatedtype Input: ProtobufMessage

  /// Sends a message as soon as the server takes it. Messages are sent in the order of these calls.
  @discardableResult
  func send(_ input: Input) throws -> Self

  /// Ends the request behind what was sent; the response comes to the callback.
  func closeAndReceive()

  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  func cancel()
}

/// A call that answers one message with a stream, whose results come to a callback. Dropping it does not cancel.
public protocol ServerOnlyStreamInterface<Input>: Sendable {
  /// The message that the client sends.
  associatedtype Input: ProtobufMessage

  /// Sends the request: once, at the start. A second one is ignored.
  func send(_ input: Input)

  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  func cancel()
}
