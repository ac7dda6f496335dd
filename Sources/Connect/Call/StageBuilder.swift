internal import NIOCore

/// Asks the interceptors of a call for their hooks, outermost first. If the call ends meanwhile, it stops asking.
///
/// Small enough for the existential of a visitor to hold it without an allocation.
struct StageBuilder: MethodVisitor {
  let pipeline: Pipeline
  let interceptors: CallHooks
  let attempts: Attempts

  func visit<Input: Sendable, Output: Sendable>(_ method: MethodSpec<Input, Output>) {
    var stages = BuiltStages(of: self.interceptors.count)
    for index in 0..<self.interceptors.count {
      let interceptor = self.interceptors.askForCallHooks(index)
      if self.pipeline.isUnary {
        self.addUnary(interceptor, method, to: &stages)
      } else {
        self.addStream(interceptor, method, to: &stages)
      }
      if self.interceptors.isOver { break }
    }
    stages.finish(self.pipeline, self.attempts)
  }

  @inline(never)
  private func add(_ function: @escaping AttemptFunction, of interceptor: any Interceptor.Type) {
    let observers = self.attempts.observers ?? AttemptObservers(self.attempts.plan.inheritance)
    observers.add(function, of: interceptor)
    self.attempts.observers = observers
  }

  // MARK: Unary calls

  @inline(__always)
  private func addUnary<I: Interceptor, Input, Output>(
    _ interceptor: I,
    _ method: MethodSpec<Input, Output>,
    to stages: inout BuiltStages
  ) {
    switch interceptor.asyncUnaryForm {
    case .messages(let form):
      let stage = AsyncUnaryStage(.response, of: I.self) { part, next in
        guard let request = HTTPRequest<Input>(part) else { throw CancellationError() }
        return .whole(try await form.interceptUnary(request, method: method, next: UnaryNext(next)).erased)
      }
      stages.add(messages: .async(stage))
    case .bytes(let form):
      let info = method.info
      let stage = AsyncUnaryStage(.responseBytes, of: I.self) { part, next in
        guard let request = HTTPRequest<ByteBuffer>(part) else { throw CancellationError() }
        return .wholeBytes(
          try await form.interceptUnaryBytes(request, method: info, next: UnaryByteNext(next))
        )
      }
      stages.add(bytes: .async(stage))
    case nil: break
    }
    let messages = interceptor.unaryMessageFunction(method)
    let bytes = interceptor.unaryFunction()
    let (messageKinds, byteKinds, placement) = (messages.kinds, bytes.kinds, bytes.placement)
    stages.add(bytes.responseMetricsFunction, of: I.self)
    if let function = interceptor.attemptFunction() { self.add(function, of: I.self) }
    guard !messageKinds.isEmpty || !byteKinds.isEmpty else { return }
    let functions =
      messageKinds.isEmpty
      ? UnaryByteHooks(bytes, of: I.self) : UnaryMessageHooks(messages, bytes, of: I.self)
    if !messageKinds.isEmpty { stages.add(messages: .hooks(functions, messageKinds, .response)) }
    if !byteKinds.isEmpty { stages.add(bytes: .hooks(functions, byteKinds, .responseBytes), placement) }
  }

  // MARK: Streams

  private func addStream<I: Interceptor, Input, Output>(
    _ interceptor: I,
    _ method: MethodSpec<Input, Output>,
    to stages: inout BuiltStages
  ) {
    let maximumReplayBytes = self.attempts.plan.environment.settings.maximumReplayBytes
    switch interceptor.asyncStreamForm {
    case .messages(let form):
      let stage = AsyncStreamStage(of: I.self, isEncoded: false, maximumReplayBytes: maximumReplayBytes) {
        try await form.interceptStream(
          StreamRequest($0, $1),
          method: method,
          next: StreamNext<Input, Output>(erased: $2)
        ).erased
      }
      stages.add(messages: .async(stage))
    case .bytes(let form):
      let info = method.info
      let stage = AsyncStreamStage(of: I.self, isEncoded: true, maximumReplayBytes: maximumReplayBytes) {
        try await form.interceptStreamBytes(
          StreamRequest($0, $1),
          method: info,
          next: StreamNext<ByteBuffer, ByteBuffer>(erased: $2)
        ).erased
      }
      stages.add(bytes: .async(stage))
    case nil: break
    }
    let messages = interceptor.streamMessageFunction(method)
    let bytes = interceptor.streamFunction()
    let (messageKinds, byteKinds) = (messages.kinds, bytes.kinds)
    stages.add(bytes.responseMetricsFunction, of: I.self)
    if let function = interceptor.attemptFunction() { self.add(function, of: I.self) }
    guard !messageKinds.isEmpty || !byteKinds.isEmpty else { return }
    let functions =
      messageKinds.isEmpty
      ? StreamByteHooks(bytes, of: I.self) : StreamMessageHooks(messages, bytes, of: I.self)
    if !messageKinds.isEmpty { stages.add(messages: .hooks(functions, messageKinds, .stream)) }
    if !byteKinds.isEmpty { stages.add(bytes: .hooks(functions, byteKinds, .streamBytes)) }
  }
}

/// The stages of a call, in the order in which the request passes them: message hooks, the codec, byte hooks.
private struct BuiltStages {
  private var stages: [Stage] = []
  /// The index of the codec.
  private var codec = 0
  /// How many byte hooks, at the end, stand inside of all hooks that are placed as listed.
  private var innermostCount = 0
  private var metrics: [MetricsReport.Hook] = []
  private let interceptorCount: Int

  init(of interceptorCount: Int) {
    self.interceptorCount = interceptorCount
  }

  mutating func add(messages stage: Stage) {
    self.begin()
    self.stages.insert(stage, at: self.codec)
    self.codec += 1
  }

  mutating func add(bytes stage: Stage, _ placement: HookPlacement = .asListed) {
    self.begin()
    if placement == .innermost || (placement == .userIndependent && self.innermostCount > 0) {
      self.stages.append(stage)
      self.innermostCount += 1
    } else if self.innermostCount == 0 {
      self.stages.append(stage)
    } else {
      self.stages.insert(stage, at: self.stages.count - self.innermostCount)
    }
  }

  /// Without hooks there is not even a codec.
  private mutating func begin() {
    guard self.stages.isEmpty else { return }
    self.stages.reserveCapacity(2 * self.interceptorCount + 1)
    self.stages.append(.codec)
  }

  mutating func add(_ metrics: MetricsReport.Function?, of interceptor: any Interceptor.Type) {
    guard let metrics else { return }
    if self.metrics.isEmpty { self.metrics.reserveCapacity(self.interceptorCount) }
    self.metrics.append(MetricsReport.Hook(function: metrics, interceptor: interceptor))
  }

  consuming func finish(_ pipeline: Pipeline, _ attempts: Attempts) {
    if !self.metrics.isEmpty { attempts.metricsHooks = self.metrics }
    if !self.stages.isEmpty { pipeline.begin(with: self.stages, codec: self.codec) }
  }
}

extension HTTPRequest {
  /// Nil if it is not a whole request.
  fileprivate init?(_ part: RequestPart) {
    switch part {
    case .whole(let head, let message): self.init(head: head, box: .of(message))
    case .wholeBytes(let head, let bytes): self.init(head: head, box: .of(MessageBox(bytes)))
    case .head, .message, .bytes, .end: return nil
    }
  }
}

// MARK: - Streams of messages without their types

extension StreamRequest {
  init(_ head: RequestHead, _ messages: AsyncStreamStage.Messages) {
    self.init(
      head: HTTPRequest(head: head),
      messages: messages.mapped { MessageBox<Input>.of($0).message }
    )
  }
}

extension StreamNext {
  init(erased next: @escaping AsyncStreamStage.Next) {
    self.init { request in
      let results = try await next(request.head.head, request.messages.mapped { MessageBox($0) })
      return StreamResponse(results: results.mapped { StreamResult($0) })
    }
  }
}

extension StreamResponse {
  var erased: AsyncStreamStage.Results { self.results.mapped { $0.part } }
}
