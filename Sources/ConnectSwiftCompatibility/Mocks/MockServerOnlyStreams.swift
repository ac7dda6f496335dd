/// A stream from the server for tests, with results as a sequence. It answers the request with ``outputs``.
///
/// `@unchecked Sendable`: its only variable is.
open class MockServerOnlyAsyncStream<Input: ProtobufMessage, Output: ProtobufMessage>:
  ServerOnlyAsyncStreamInterface, @unchecked Sendable
{
  private let stream: MockStream<Input, Output>

  /// Called with the request.
  public var onSend: ((Input) -> Void)? {
    get { self.stream.read(\.onSend) }
    set { self.stream.write(\.onSend, newValue) }
  }

  /// What ``results()`` gives once the request was sent.
  public var outputs: [StreamResult<Output>] {
    get { self.stream.read(\.outputs) }
    set { self.stream.write(\.outputs, newValue) }
  }

  /// The requests that were sent.
  public var inputs: [Input] { self.stream.read(\.inputs) }

  /// - Parameter outputs: What the stream answers the first message with.
  public init(outputs: [StreamResult<Output>] = []) {
    self.stream = MockStream(outputs: outputs)
  }

  /// Keeps the request, calls ``onSend`` with it, and releases the outputs.
  open func send(_ input: Input) throws { self.stream.send(input) }

  /// The outputs, once a message was sent.
  open func results() -> AsyncStream<StreamResult<Output>> { self.stream.results() }

  /// Does nothing.
  open func cancel() {}
}

/// A stream from the server for tests, with callbacks. It answers the request with ``outputs``.
///
/// `@unchecked Sendable`: its only variable is.
open class MockServerOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>:
  ServerOnlyStreamInterface, @unchecked Sendable
{
  private let stream: MockStream<Input, Output>

  /// Called with the request.
  public var onSend: ((Input) -> Void)? {
    get { self.stream.read(\.onSend) }
    set { self.stream.write(\.onSend, newValue) }
  }

  /// What the callback gets once the request was sent.
  public var outputs: [StreamResult<Output>] {
    get { self.stream.read(\.outputs) }
    set { self.stream.write(\.outputs, newValue) }
  }

  /// The requests that were sent.
  public var inputs: [Input] { self.stream.read(\.inputs) }

  /// - Parameter outputs: What the stream answers the first message with.
  public init(outputs: [StreamResult<Output>] = []) {
    self.stream = MockStream(outputs: outputs)
  }

  /// Generated mocks give the call's callback to it.
  public func deliver(to onResult: @escaping @Sendable (StreamResult<Output>) -> Void) {
    self.stream.whenSent { $0.forEach(onResult) }
  }

  /// Keeps the request, calls ``onSend`` with it, and releases the outputs.
  open func send(_ input: Input) { self.stream.send(input) }

  /// Does nothing.
  open func cancel() {}
}
