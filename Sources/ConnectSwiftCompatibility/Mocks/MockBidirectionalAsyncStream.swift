/// A stream for tests, with results as a sequence. It answers the first message with all ``outputs``.
///
/// Tests set ``onSend``, ``onClose`` and ``outputs``, look at ``inputs``, or override functions in a subclass.
///
/// `@unchecked Sendable`: its only variable is.
open class MockBidirectionalAsyncStream<Input: ProtobufMessage, Output: ProtobufMessage>:
  BidirectionalAsyncStreamInterface, @unchecked Sendable
{
  private let stream: MockStream<Input, Output>

  /// Called by ``close()``.
  public var onClose: (() -> Void)? {
    get { self.stream.read(\.onClose) }
    set { self.stream.write(\.onClose, newValue) }
  }

  /// Called with each message that is sent.
  public var onSend: ((Input) -> Void)? {
    get { self.stream.read(\.onSend) }
    set { self.stream.write(\.onSend, newValue) }
  }

  /// What ``results()`` gives once a message was sent.
  public var outputs: [StreamResult<Output>] {
    get { self.stream.read(\.outputs) }
    set { self.stream.write(\.outputs, newValue) }
  }

  /// The messages that were sent.
  public var inputs: [Input] { self.stream.read(\.inputs) }
  /// Whether ``close()`` was called.
  public var isClosed: Bool { self.stream.read(\.isClosed) }

  /// - Parameter outputs: What the stream answers the first message with.
  public init(outputs: [StreamResult<Output>] = []) {
    self.stream = MockStream(outputs: outputs)
  }

  /// Keeps the message, and calls ``onSend`` with it. The first one releases the outputs.
  @discardableResult
  open func send(_ input: Input) throws -> Self {
    self.stream.send(input)
    return self
  }

  /// The outputs, once a message was sent.
  open func results() -> AsyncStream<StreamResult<Output>> { self.stream.results() }

  /// Sets ``isClosed`` and calls ``onClose``.
  open func close() { self.stream.close() }

  /// Does nothing.
  open func cancel() {}
}

/// A client stream for tests, with results as a sequence. ``closeAndReceive()`` closes it.
///
/// `@unchecked Sendable`: it has no variables.
open class MockClientOnlyAsyncStream<Input: ProtobufMessage, Output: ProtobufMessage>:
  MockBidirectionalAsyncStream<Input, Output>, ClientOnlyAsyncStreamInterface, @unchecked Sendable
{
  /// The same as `close()`.
  open func closeAndReceive() { self.close() }
}
