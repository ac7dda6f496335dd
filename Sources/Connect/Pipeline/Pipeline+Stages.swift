internal import NIOCore

/// Asks the interceptors of a call for their hooks, outermost first. If the call ends meanwhile, it stops asking.
private struct HookQuestion: MethodVisitor {
  let pipeline: Pipeline
  let host: any PipelineHost

  func visit<Input: Sendable, Output: Sendable>(_ method: MethodSpec<Input, Output>) {
    for index in 0..<self.host.interceptorCount {
      self.pipeline.add(self.host.askForCallHooks(index), self.host, method)
      if self.host.isOver { return }
    }
  }
}

// Puts the hooks of interceptors in the order in which the request passes them: message hooks, the codec, byte hooks.
extension Pipeline {
  /// Asks the interceptors of the host for their hooks.
  package func askForHooks(of method: AnyMethod, _ host: any PipelineHost) {
    method.accept(HookQuestion(pipeline: self, host: host))
    self.numberAsyncStages()
  }

  /// Adds what an interceptor has, inside of the others.
  @inline(__always)
  fileprivate func add<Input, Output>(
    _ interceptor: any Interceptor,
    _ host: any PipelineHost,
    _ method: MethodSpec<Input, Output>
  ) {
    if self.order.isUnary {
      self.addUnary(interceptor, host, method)
    } else {
      self.addStream(interceptor, host, method)
    }
  }

  // MARK: Unary calls

  @inline(__always)
  private func addUnary<Input, Output>(
    _ interceptor: any Interceptor,
    _ host: any PipelineHost,
    _ method: MethodSpec<Input, Output>
  ) {
    switch interceptor.asyncUnaryForm {
    case .messages(let form):
      self.addMessages(
        .async(
          AsyncUnaryStage(failure: { .whole(AnyResponse(error: $0)) }) { part, next in
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
        ),
        of: interceptor
      )
    case .bytes(let form):
      let info = method.info
      self.addBytes(
        .async(
          AsyncUnaryStage(failure: { .wholeBytes(HTTPResponse(error: $0)) }) { part, next in
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
          }
        ),
        of: interceptor,
        .asListed
      )
    case nil: break
    }
    let hooks = interceptor.unaryMessageFunction(method)
    if !hooks.isEmpty { self.addMessages(.hooks(UnaryMessageHooks(hooks)), of: interceptor) }
    let byteHooks = interceptor.unaryFunction()
    if !byteHooks.isEmpty { self.addBytes(byteHooks, of: interceptor, host) }
  }

  private func addBytes(_ hooks: UnaryFunction, of interceptor: any Interceptor, _ host: any PipelineHost) {
    if let function = hooks.responseMetricsFunction {
      host.addMetricsHook(MetricsReport.Hook(function: function, interceptor: type(of: interceptor)))
    }
    let placement = hooks.placement
    let stage = UnaryByteHooks(hooks)
    if !stage.kinds.isEmpty { self.addBytes(.hooks(stage), of: interceptor, placement) }
  }

  // MARK: Streams

  private func addStream<Input, Output>(
    _ interceptor: any Interceptor,
    _ host: any PipelineHost,
    _ method: MethodSpec<Input, Output>
  ) {
    switch interceptor.asyncStreamForm {
    case .messages(let form):
      self.addMessages(
        .async(
          AsyncStreamStage(isEncoded: false, maximumReplayBytes: self.maximumReplayBytes) {
            head,
            messages,
            next in
            try await form.interceptStream(
              StreamRequest(head, messages),
              method: method,
              next: StreamNext<Input, Output>(erased: next)
            ).erased
          }
        ),
        of: interceptor
      )
    case .bytes(let form):
      let info = method.info
      self.addBytes(
        .async(
          AsyncStreamStage(isEncoded: true, maximumReplayBytes: self.maximumReplayBytes) {
            head,
            messages,
            next in
            try await form.interceptStreamBytes(
              StreamRequest(head, messages),
              method: info,
              next: StreamNext<ByteBuffer, ByteBuffer>(erased: next)
            ).erased
          }
        ),
        of: interceptor,
        .asListed
      )
    case nil: break
    }
    let hooks = interceptor.streamMessageFunction(method)
    if !hooks.isEmpty { self.addMessages(.hooks(StreamStageHooks(hooks)), of: interceptor) }
    let byteHooks = interceptor.streamFunction()
    if !byteHooks.isEmpty { self.addBytes(byteHooks, of: interceptor, host) }
  }

  private func addBytes(_ hooks: StreamFunction, of interceptor: any Interceptor, _ host: any PipelineHost) {
    if let function = hooks.responseMetricsFunction {
      host.addMetricsHook(MetricsReport.Hook(function: function, interceptor: type(of: interceptor)))
    }
    let stage = StreamStageHooks(hooks)
    if !stage.kinds.isEmpty { self.addBytes(.hooks(stage), of: interceptor, .asListed) }
  }

  // MARK: The order

  private func addMessages(_ form: PipelineOrder.Stage.Form, of interceptor: any Interceptor) {
    self.insert(form, of: interceptor, at: self.order.codec, isMessageStage: true)
  }

  private func addBytes(
    _ form: PipelineOrder.Stage.Form,
    of interceptor: any Interceptor,
    _ placement: HookPlacement
  ) {
    switch placement {
    case .innermost: self.innerCount += 1
    case .userIndependent where self.innerCount > 0: self.innerCount += 1
    case .asListed where self.innerCount > 0:
      self.insert(form, of: interceptor, at: self.stages.count - self.innerCount)
      return
    case .asListed, .userIndependent: break
    }
    self.insert(form, of: interceptor, at: max(self.stages.count, 1))
  }

  private func insert(
    _ form: PipelineOrder.Stage.Form,
    of interceptor: any Interceptor,
    at index: Int,
    isMessageStage: Bool = false
  ) {
    if case .async = form { self.hasAsyncStages = true }
    let stage = PipelineOrder.Stage(form, of: type(of: interceptor))
    self.order.insert(stage, at: index, isMessageStage: isMessageStage)
  }

  /// Tells async stages where they stand, once all are known.
  private func numberAsyncStages() {
    guard self.hasAsyncStages else { return }
    for (index, stage) in self.stages.enumerated() {
      if case .async(let stage) = stage.form { stage.index = index }
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
