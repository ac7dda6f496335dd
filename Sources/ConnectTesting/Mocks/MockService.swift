public import Connect

/// What the mocks of a service's methods share: a client whose calls they answer, without a network.
///
/// All but the server is real, so that a mock shows what the service's clients would see: streams, cancellation,
/// deadlines, codecs and interceptors. Generated mocks have one; it can also be given to code that wants a
/// `ProtocolClient`:
///
/// ```swift
/// let service = MockService()
/// let say = service.unary(ElizaMethods.say)
/// say.answer(.message(.with { $0.sentence = "Hello" }))
/// let response = await service.client.unary(ElizaMethods.say, request)
/// ```
public final class MockService: Sendable {
  /// A client whose calls the mocks answer.
  public let client: ProtocolClient
  /// The transport of the calls, for example to inject faults.
  public let transport: InMemoryTransport
  private let recorder: MockRecorder

  /// A service whose methods have no answers yet: their calls fail with `unimplemented`.
  ///
  /// - Parameters:
  ///   - config: How the client makes its calls: its protocol, codec, interceptors, time limit. The host can be any.
  ///   - executor: Where calls run, and their clock; nil for one in real time.
  public init(
    config: ProtocolClientConfig = ProtocolClientConfig(host: "http://mock"),
    executor: (any CallExecutor)? = nil
  ) {
    let compressions = config.compression.responses + [config.compression.requests].compactMap(\.self)
    self.transport = InMemoryTransport(
      executor: executor,
      // Methods and calls may have another codec than the client's.
      codecs: [config.codec] + [ProtoCodec(), JSONCodec()].filter { $0.name != config.codec.name },
      requestCompressions: compressions
    )
    var config = config
    let recorder = MockRecorder()
    self.recorder = recorder
    config.interceptors.insert({ _ in MockRecordingInterceptor(recorder) }, at: 0)
    self.client = ProtocolClient(httpClient: self.transport, config: config)
  }

  /// The mock of a unary method. To be called once for each method.
  public func unary<Input, Output>(_ method: MethodSpec<Input, Output>) -> UnaryMock<Input, Output> {
    UnaryMock(self.script(method))
  }

  /// The mock of a method that answers a message with a stream. To be called once for each method.
  public func serverStream<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> ServerStreamMock<Input, Output> {
    ServerStreamMock(self.script(method))
  }

  /// The mock of a method that answers a stream with a message. To be called once for each method.
  public func clientStream<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> ClientStreamMock<Input, Output> {
    ClientStreamMock(self.script(method))
  }

  /// The mock of a method with streams in both directions. To be called once for each method.
  public func bidirectionalStream<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> BidirectionalStreamMock<Input, Output> {
    BidirectionalStreamMock(self.script(method))
  }

  private func script<Input, Output>(_ method: MethodSpec<Input, Output>) -> MockScript<Input, Output> {
    let script = MockScript<Input, Output>(method: method.info)
    self.recorder.add(script)
    self.transport.serve(ServerMethod(method, script.answer))
    return script
  }
}
