internal import Connect
internal import DequeModule
internal import NIOCore

/// A stream of a driver. For each result of the test, its wire carries a placeholder. The inner interceptor puts the result
/// in the place of the placeholder. Request messages end at the inner interceptor.
final class DriverStreamCall<Input: Sendable, Output: Sendable>: DriverCall {
  private var handle: StreamHandle<Input, Output>?
  /// The attempt that runs.
  private var stream: DriverStream?
  /// Results whose placeholders are on the wire.
  private var sent: Deque<(value: StreamResult<Output>, record: HookRecord)> = []
  /// The messages among them, which placeholders are decoded to.
  private var undecoded: Deque<Output> = []
  /// What the async form has given.
  private var answer = StreamAnswer<Output>(messages: [])

  /// - Parameter form: The async form that is driven; nil if `hooks` are.
  func start(_ head: HTTPRequest<Void>?, _ form: AsyncStreamForm?, _ hooks: StreamHooks<Input, Output>) {
    let outer = StreamHooks<Input, Output>(streamResultFunction: { result, proceed in
      self.didPassOut(isOver: proceed.isOver) { self.record(result, $0) }
      proceed(result)
    })
    let driven = form.map { FixedInterceptor(asyncStreamForm: $0) }
    let here = Confined(self, to: self.executor)
    let transport = DriverTransport(self.executor) { here.value.begin($0) }
    let handle = transport.client(self.setup.config).bidirectionalStream(
      MethodSpec<Input, Output>.driver(.bidirectionalStream) { here.value.undecoded.popFirst() },
      options: self.options(head, [outer, driven ?? hooks, self.inner])
    ) { result in
      if case .complete = result { here.value.end() }
    }
    self.didStart { handle.cancel() }
    if !self.isOver { self.handle = handle }
  }

  private var inner: StreamHooks<Input, Output> {
    StreamHooks(
      requestFunction: { head, proceed in
        self.attemptBegins(RequestVerb<HTTPRequest<Void>, StreamAnswer<Output>>.proceed(.success(head))) {
          StreamResultVerb<Output>.retry(head, after: $0)
        }
        proceed(.success(self.ownRequest ?? head))
      },
      requestMessageFunction: { message, proceed in
        self.recorder?.messages.pass(StreamDataVerb.proceed(message))
        proceed.drop()
      },
      streamResultFunction: { placeholder, proceed in
        guard !proceed.isOver, let (result, record) = self.sent.popFirst() else {
          return proceed(placeholder)
        }
        self.passed.append(record)
        proceed(result)
      }
    )
  }

  /// The async form has given a result.
  private func record(_ result: StreamResult<Output>, _ recorder: AsyncRecorder) {
    var answer: RequestVerb<HTTPRequest<Void>, StreamAnswer<Output>>?
    switch result {
    case .headers(let headers): self.answer.headers = headers
    case .message(let message): self.answer.messages.append(message)
    case .complete(_, let error?, _) where self.answer.headers.isEmpty && self.answer.messages.isEmpty:
      answer = .proceed(.failure(error))
    case .complete(_, let error, let trailers):
      (self.answer.error, self.answer.trailers) = (error, trailers)
      answer = .answer(self.answer)
    }
    recorder.pass(result: StreamResultVerb.proceed(result), orAnswer: answer)
  }

  override func sendToCall(_ message: any Sendable) {
    if let message = message as? Input { self.handle?.send(message) }
  }

  override func finishRequest() { self.handle?.finish() }

  override func release() {
    self.handle = nil
    self.drop()
  }

  // MARK: The wire

  private func begin(_ handler: any HTTPStreamHandler) -> any HTTPStream {
    self.drop()
    let (executor, here) = (self.executor, Confined(self, to: self.executor))
    let stream = DriverStream(handler) {
      // Afterwards: what the async form gives in place of these results is recorded first.
      executor.execute { if here.value.stream?.isOpen != true { here.value.drop() } }
    }
    self.stream = stream
    executor.execute { here.value.feed() }
    return stream
  }

  override func feed() {
    while let stream = self.stream, stream.isOpen, let (value, record) = self.arrived.popFirst() {
      guard let result = value as? StreamResult<Output> else { continue }
      switch result {
      case .headers where stream.hasHead && Output.self != ByteBuffer.self:
        // Behind the head, placeholders are messages, and there is none to decode this one to.
        record.report(.notWaiting)
        continue
      case .message(let message) where stream.hasHead: self.undecoded.append(message)
      case .headers, .message, .complete: break
      }
      self.sent.append((result, record))
      if case .complete = result { stream.sendEnd() } else { stream.send() }
    }
  }

  /// Results that were not read are lost with their attempt.
  private func drop() {
    for (_, record) in self.sent { record.report(.notWaiting) }
    self.sent = []
    self.undecoded = []
  }
}
