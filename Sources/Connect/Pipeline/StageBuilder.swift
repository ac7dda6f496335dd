internal import NIOCore

/// Asks the interceptors of a call for their hooks, outermost first. Puts the stages in the order in which the request
/// passes them: message hooks, the codec, byte hooks. If the call ends meanwhile, it stops asking.
///
/// Small enough for the existential of a visitor to hold it without an allocation.
struct StageBuilder: MethodVisitor {
  let pipeline: Pipeline
  let interceptors: any InterceptorSource

  func visit<Input: Sendable, Output: Sendable>(_ method: MethodSpec<Input, Output>) {
    let isUnary = self.pipeline.order.isUnary
    for index in 0..<self.interceptors.count {
      let interceptor = self.interceptors.askForCallHooks(index)
      if isUnary { self.addUnary(interceptor, method) } else { self.addStream(interceptor, method) }
      if self.interceptors.isOver { return }
    }
  }

  // MARK: Unary calls

  @inline(__always)
  private func addUnary<Input, Output>(
    _ interceptor: any Interceptor,
    _ method: MethodSpec<Input, Output>
  ) {
    switch interceptor.asyncUnaryForm {
    case .messages(let form):
      self.addMessages(
        AsyncUnaryStage(.response, of: type(of: interceptor)) { part, next in
          guard let request = HTTPRequest<Input>(part) else { throw CancellationError() }
          let response = try await form.interceptUnary(
            request,
            method: method,
            next: UnaryNext { request in
              guard case .whole(let response) = try await next(request.part) else {
                throw CancellationError()
              }
              return ResponseMessage(response)
            }
          )
          return .whole(response.erased)
        }
      )
    case .bytes(let form):
      let info = method.info
      self.addBytes(
        AsyncUnaryStage(.responseBytes, of: type(of: interceptor)) { part, next in
          guard let request = HTTPRequest<ByteBuffer>(part) else { throw CancellationError() }
          let response = try await form.interceptUnaryBytes(
            request,
            method: info,
            next: UnaryByteNext { request in
              guard case .wholeBytes(let response) = try await next(request.part) else {
                throw CancellationError()
              }
              return response
            }
          )
          return .wholeBytes(response)
        },
        .asListed
      )
    case nil: break
    }
    let hooks = interceptor.unaryMessageFunction(method)
    if !hooks.isEmpty { self.addMessages(UnaryMessageStage(hooks, of: type(of: interceptor))) }
    let byteHooks = interceptor.unaryFunction()
    if !byteHooks.isEmpty {
      self.add(byteHooks.responseMetricsFunction, of: interceptor)
      let placement = byteHooks.placement
      let stage = UnaryByteStage(byteHooks, of: type(of: interceptor))
      if !stage.kinds.isEmpty { self.addBytes(stage, placement) }
    }
  }

  // MARK: Streams

  private func addStream<Input, Output>(
    _ interceptor: any Interceptor,
    _ method: MethodSpec<Input, Output>
  ) {
    let maximumReplayBytes = self.pipeline.surroundings.maximumReplayBytes
    switch interceptor.asyncStreamForm {
    case .messages(let form):
      self.addMessages(
        AsyncStreamStage(of: type(of: interceptor), isEncoded: false, maximumReplayBytes: maximumReplayBytes)
        {
          try await form.interceptStream(
            StreamRequest($0, $1),
            method: method,
            next: StreamNext<Input, Output>(erased: $2)
          ).erased
        }
      )
    case .bytes(let form):
      let info = method.info
      self.addBytes(
        AsyncStreamStage(of: type(of: interceptor), isEncoded: true, maximumReplayBytes: maximumReplayBytes) {
          try await form.interceptStreamBytes(
            StreamRequest($0, $1),
            method: info,
            next: StreamNext<ByteBuffer, ByteBuffer>(erased: $2)
          ).erased
        },
        .asListed
      )
    case nil: break
    }
    let hooks = interceptor.streamMessageFunction(method)
    if !hooks.isEmpty { self.addMessages(StreamMessageStage(hooks, of: type(of: interceptor))) }
    let byteHooks = interceptor.streamFunction()
    if !byteHooks.isEmpty {
      self.add(byteHooks.responseMetricsFunction, of: interceptor)
      let stage = StreamByteStage(byteHooks, of: type(of: interceptor))
      if !stage.kinds.isEmpty { self.addBytes(stage, .asListed) }
    }
  }

  // MARK: The order

  private func add(_ metrics: MetricsReport.Function?, of interceptor: any Interceptor) {
    guard let metrics else { return }
    self.pipeline.surroundings.inside.add(
      MetricsReport.Hook(function: metrics, interceptor: type(of: interceptor))
    )
  }

  private func addMessages(_ stage: Stage) {
    self.insert(stage, at: self.pipeline.order.codec, isMessageStage: true)
  }

  private func addBytes(_ stage: Stage, _ placement: HookPlacement) {
    let innerCount = self.pipeline.innerCount
    let isInner = placement == .innermost || (placement == .userIndependent && innerCount > 0)
    if isInner { self.pipeline.innerCount += 1 }
    let index = self.pipeline.order.stages.count - (isInner ? 0 : innerCount)
    self.insert(stage, at: max(index, 1), isMessageStage: false)
  }

  private func insert(_ stage: Stage, at index: Int, isMessageStage: Bool) {
    if case .async = stage.role { self.pipeline.hasAsyncStages = true }
    self.pipeline.order.insert(stage, at: index, isMessageStage: isMessageStage)
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
