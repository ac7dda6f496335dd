/// A client stream, or one in both directions, with callbacks.
struct CallbackStream<Input: ProtobufMessage, Output: ProtobufMessage>: BidirectionalStreamInterface,
  ClientOnlyStreamInterface
{
  let sender: MessageSender<Input, Output>

  @discardableResult
  func send(_ input: Input) -> Self {
    try? self.sender.send(input)
    return self
  }

  func close() { self.sender.close() }
  func closeAndReceive() { self.sender.close() }
  func cancel() { self.sender.cancel() }
}

/// A stream from the server with callbacks.
struct ServerOnlyCallbackStream<Input: ProtobufMessage, Output: ProtobufMessage>: ServerOnlyStreamInterface {
  let sender: MessageSender<Input, Output>

  func send(_ input: Input) { try? self.sender.sendOnly(input) }
  func cancel() { self.sender.cancel() }
}

/// A client stream, or one in both directions, whose results are a sequence.
struct AsyncStreamCall<Input: ProtobufMessage, Output: ProtobufMessage>: BidirectionalAsyncStreamInterface,
  ClientOnlyAsyncStreamInterface
{
  let sender: MessageSender<Input, Output>
  let stream: AsyncStream<StreamResult<Output>>

  @discardableResult
  func send(_ input: Input) throws -> Self {
    try self.sender.send(input)
    return self
  }

  func results() -> AsyncStream<StreamResult<Output>> { self.stream }
  func close() { self.sender.close() }
  func closeAndReceive() { self.sender.close() }
  func cancel() { self.sender.cancel() }
}

/// A stream from the server whose results are a sequence.
struct ServerOnlyAsyncStreamCall<Input: ProtobufMessage, Output: ProtobufMessage>:
  ServerOnlyAsyncStreamInterface
{
  let sender: MessageSender<Input, Output>
  let stream: AsyncStream<StreamResult<Output>>

  func send(_ input: Input) throws { try self.sender.sendOnly(input) }
  func results() -> AsyncStream<StreamResult<Output>> { self.stream }
  func cancel() { self.sender.cancel() }
}
