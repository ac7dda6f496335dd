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
    .placed(hooks.placement)
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

  var asyncUnaryForm: AsyncUnaryForm? {
    switch self.base.asyncUnaryForm {
    case .messages(let form): .messages(TimedAsyncUnaryInterceptor(form, self.index, self.explainer))
    case .bytes(let form): .bytes(TimedAsyncUnaryByteInterceptor(form, self.index, self.explainer))
    case nil: nil
    }
  }

  var asyncStreamForm: AsyncStreamForm? {
    switch self.base.asyncStreamForm {
    case .messages(let form): .messages(TimedAsyncStreamInterceptor(form, self.index, self.explainer))
    case .bytes(let form): .bytes(TimedAsyncStreamByteInterceptor(form, self.index, self.explainer))
    case nil: nil
    }
  }
}
