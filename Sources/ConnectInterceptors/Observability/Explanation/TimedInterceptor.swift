internal import Connect

/// An interceptor with a stopwatch around each of its hooks, which runs from when the hook is called until it proceeds.
struct TimedInterceptor: Interceptor {
  let base: any Interceptor
  let index: Int
  let call: ExplainedCall

  // MARK: Hooks

  func callFunction(_ method: MethodInfo) -> CallFunction {
    let hooks = self.base.callFunction(method)
    return CallFunction(
      requestFunction: self.timed(hooks.requestFunction),
      outcomeFunction: self.timed(hooks.outcomeFunction),
      retryFunction: hooks.retryFunction,
      endFunction: hooks.endFunction
    )
  }

  private typealias RequestFunction = (inout HTTPRequest<Void>) throws -> Void

  private func timed(_ function: RequestFunction?) -> RequestFunction? {
    guard let function else { return nil }
    let (index, call) = (self.index, self.call)
    return { request in
      let visit = call.begin(index, .request)
      defer { call.end(visit) }
      try function(&request)
    }
  }

  private func timed(_ function: ((inout CallOutcome) -> Void)?) -> ((inout CallOutcome) -> Void)? {
    guard let function else { return nil }
    let (index, call) = (self.index, self.call)
    return { outcome in
      let visit = call.begin(index, .response)
      defer { call.end(visit) }
      function(&outcome)
    }
  }

  func attemptFunction() -> AttemptFunction? { self.base.attemptFunction() }

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
    _ direction: ExplainedCall.Direction
  ) -> ((Value, Proceed<Verb>) -> Void)? {
    guard let function else { return nil }
    let (index, call) = (self.index, self.call)
    return { value, proceed in
      let visit = call.begin(index, direction)
      function(
        value,
        Proceed(around: proceed) { verb in
          call.end(visit)
          proceed.send(verb)
        }
      )
    }
  }

  // MARK: Async forms

  var asyncUnaryForm: AsyncUnaryForm? {
    let (index, call) = (self.index, self.call)
    return switch self.base.asyncUnaryForm {
    case .messages(let form): .messages(TimedAsyncUnaryInterceptor(base: form, index: index, call: call))
    case .bytes(let form): .bytes(TimedAsyncUnaryByteInterceptor(base: form, index: index, call: call))
    case nil: nil
    }
  }

  var asyncStreamForm: AsyncStreamForm? {
    let (index, call) = (self.index, self.call)
    return switch self.base.asyncStreamForm {
    case .messages(let form): .messages(TimedAsyncStreamInterceptor(base: form, index: index, call: call))
    case .bytes(let form): .bytes(TimedAsyncStreamByteInterceptor(base: form, index: index, call: call))
    case nil: nil
    }
  }
}
