public import Connect

/// What stubs in connect-swift's form make calls with. `ProtocolClient` conforms to it.
///
/// Callbacks run on the call's executor, which for sockets is an event loop: they must not block.
public protocol ProtocolClientInterface: Sendable {
  // MARK: Callbacks

  /// Makes a unary call and calls back once with its outcome.
  ///
  /// - Parameters:
  ///   - path: `/package.Service/Method`.
  ///   - idempotencyLevel: What the proto file says of the method. Only `noSideEffects` allows GET.
  ///   - request: The message to send.
  ///   - headers: The request's metadata.
  ///   - completion: Called once, also if the call fails or is cancelled.
  @discardableResult
  func unary<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    idempotencyLevel: IdempotencyLevel,
    request: Input,
    headers: Headers,
    completion: @escaping @Sendable (ResponseMessage<Output>) -> Void
  ) -> Cancelable

  /// Starts a call with streams in both directions. The last result is `complete`, and comes exactly once.
  func bidirectionalStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> any BidirectionalStreamInterface<Input>

  /// Starts a call that answers a stream of messages with one. The last result is `complete`, and comes exactly once.
  func clientOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> any ClientOnlyStreamInterface<Input>

  /// Starts a call that answers one message, which is sent next, with a stream. The last result is `complete`, and comes
  /// exactly once.
  func serverOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> any ServerOnlyStreamInterface<Input>

  // MARK: async

  /// Makes a unary call and waits for its outcome. Cancelling the task cancels the call.
  nonisolated(nonsending) func unary<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    idempotencyLevel: IdempotencyLevel,
    request: Input,
    headers: Headers
  ) async -> ResponseMessage<Output>

  /// Starts a call with streams in both directions.
  func bidirectionalStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers
  ) -> any BidirectionalAsyncStreamInterface<Input, Output>

  /// Starts a call that answers a stream of messages with one.
  func clientOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers
  ) -> any ClientOnlyAsyncStreamInterface<Input, Output>

  /// Starts a call that answers one message, which is sent next, with a stream.
  func serverOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers
  ) -> any ServerOnlyAsyncStreamInterface<Input, Output>
}
