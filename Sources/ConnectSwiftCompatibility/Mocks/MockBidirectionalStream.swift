/// A stream for tests, with callbacks. It answers the first message with all ``outputs``.
///
/// Tests set ``onSend``, ``onClose`` and ``outputs``, look at ``inputs``, or override functions in a subclass.
///
/// `@unchecked Sendable`: its only variable is.
open class MockBidirectionalStream<Input: ProtobufMessage, Output: ProtobufMessage>:
  BidirectionalStreamInterface, @unchecked Sendable
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

  /// What the callback gets once a message was sent.
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

  /// Generated mocks give the call's callback to it.
  public func deliver(to onResult: @escaping @Sendable (StreamResult<Output>) -> Void) {
    self.stream.whenSent { $0.forEach(onResult) }
  }

  /// Keeps the message, and calls ``onSend`` with it. The first one releases the outputs.
  @discardableResult
  open func send(_ input: Input) -> Self {
    self.stream.send(input)
    return self
  }

  /// Sets ``isClosed`` and calls ``onClose``.
  open func close() { self.stream.close() }

  /// Does nothing.
  open func cancel() {}
}

/// A client stream for tests, with callbacks. ``closeAndReceive()`` closes it.
///
/// `@unchecked Sendable`: it has no variables.
open class MockClientOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>:
  MockBidirectionalStream<Input, Output>, ClientOnlyStreamInterface, @unchecked Sendable
{
  /// The same as `close()`.
  open func closeAndReceive() { self.close() }
}
