internal import Connect

/// An interceptor with a stopwatch around each of its hooks, which runs from when the hook is called until it proceeds.
struct TimedInterceptor: Interceptor {
  private let base: any Interceptor
  private let index: Int
  private let explainer: CallExplainer

  init(_ base: any Interceptor, _ index: Int, _ explainer: CallExplainer) {
    self.base = base
    self.index = index
    self.explainer = explainer
  }

  // MARK: Hooks

  func callFunction(_ method: MethodInfo) -> CallFunction {
    let hooks = self.base.callFunction(method)
    return CallFunction(
      requestFunction: self.timed(hooks.requestFunction),
      outcomeFunction: self.timed(hooks.outcomeFunction)
    )
  }

  private typealias RequestFunction = (inout HTTPRequest<Void>) throws -> Void

  private func timed(_ function: RequestFunction?) -> RequestFunction? {
    guard let function else { return nil }
    let (index, explainer) = (self.index, self.explainer)
    return { request in
      let visit = explainer.begin(index, .request)
      defer { explainer.end(visit) }
      try function(&request)
    }
  }

  private func timed(_ function: ((inout CallOutcome) -> Void)?) -> ((inout CallOutcome) -> Void)? {
    guard let function else { return nil }
    let (index, explainer) = (self.index, self.explainer)
    return { outcome in
      let visit = explainer.begin(index, .response)
      defer { explainer.end(visit) }
      function(&outcome)
    }
  }

  func unaryFunction() -> UnaryFunction { self.timed(self.base.unaryFunction()) }

  func streamFunction() -> StreamFunction { self.timed(self.base.streamFunction()) }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    self.timed(self.base.unaryMessageFunction(method))
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    self.timed(self.base.streamMessageFunction(method))
  }

  private func timed<Message, Response>(
    _ hooks: UnaryHooks<Message, Response>
  ) -> UnaryHooks<Message, Response> {
    UnaryHooks(
      requestFunction: self.timed(hooks.requestFunction, .request),
      responseFunction: self.timed(hooks.responseFunction, .response),
      responseMetricsFunction: hooks.responseMetricsFunction
    )
  }

  private func timed<RequestMessage, ResponseMessage>(
    _ hooks: StreamHooks<RequestMessage, ResponseMessage>
  ) -> StreamHooks<RequestMessage, ResponseMessage> {
    StreamHooks(
      requestFunction: self.timed(hooks.requestFunction, .request),
      requestMessageFunction: self.timed(hooks.requestMessageFunction, .request),
      streamResultFunction: self.timed(hooks.streamResultFunction, .response),
      responseMetricsFunction: hooks.responseMetricsFunction
    )
  }

  private func timed<Value, Verb>(
    _ function: ((Value, Proceed<Verb>) -> Void)?,
    _ direction: CallExplainer.Direction
  ) -> ((Value, Proceed<Verb>) -> Void)? {
    guard let function else { return nil }
    let (index, explainer) = (self.index, self.explainer)
    return { value, proceed in
      let visit = explainer.begin(index, direction)
      function(
        value,
        Proceed(isOver: proceed.isOver) { verb in
          explainer.end(visit)
          proceed.send(verb)
        }
      )
    }
  }

  // MARK: Async forms

  var asyncUnaryForm: (any AsyncUnaryInterceptor)? {
    self.base.asyncUnaryForm.map { TimedAsyncInterceptor(unary: $0, self.index, self.explainer) }
  }

  var asyncStreamForm: (any AsyncStreamInterceptor)? {
    self.base.asyncStreamForm.map { TimedAsyncInterceptor(stream: $0, self.index, self.explainer) }
  }
}

/// An async interceptor with a stopwatch that stands still while it waits for `next`. Of a stream, what it does with
/// the sequences afterwards is not seen.
private struct TimedAsyncInterceptor: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  private let unary: (any AsyncUnaryInterceptor)?
  private let stream: (any AsyncStreamInterceptor)?
  private let index: Int
  private let explainer: CallExplainer

  init(unary: any AsyncUnaryInterceptor, _ index: Int, _ explainer: CallExplainer) {
    (self.unary, self.stream, self.index, self.explainer) = (unary, nil, index, explainer)
  }

  init(stream: any AsyncStreamInterceptor, _ index: Int, _ explainer: CallExplainer) {
    (self.unary, self.stream, self.index, self.explainer) = (nil, stream, index, explainer)
  }

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    guard let unary = self.unary else { return try await next(request) }
    let stopwatch = AsyncStopwatch(self.index, self.explainer)
    defer { stopwatch.stop() }
    return try await unary.interceptUnary(
      request,
      method: method,
      next: UnaryNext { request in
        stopwatch.stop()
        defer { stopwatch.start(.response) }
        return try await next(request)
      }
    )
  }

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    guard let stream = self.stream else { return try await next(request) }
    let stopwatch = AsyncStopwatch(self.index, self.explainer)
    defer { stopwatch.stop() }
    return try await stream.interceptStream(
      request,
      method: method,
      next: StreamNext { request in
        stopwatch.stop()
        defer { stopwatch.start(.response) }
        return try await next(request)
      }
    )
  }
}
