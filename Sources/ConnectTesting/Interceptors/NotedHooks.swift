internal import Connect

// The hooks of the interceptor, as the driver's pipeline gets them: what they call `proceed` with is noted. A hook that is
// absent passes its value on.

typealias UnaryRun<Message: Sendable, Response: Sendable> = DrivenPipeline<
  RequestVerb<HTTPRequest<Message>, Response>,
  StreamDataVerb<Never>,
  ResponseVerb<HTTPRequest<Message>, Response>
>

typealias StreamRun<Input: Sendable, Output: Sendable> = DrivenPipeline<
  RequestVerb<HTTPRequest<Void>, StreamAnswer<Output>>,
  StreamDataVerb<Input>,
  StreamResultVerb<Output>
>

extension UnaryHooks {
  /// - Parameter run: The pipeline, which these hooks do not keep.
  func noted(by run: UnaryRun<Message, Response>) -> UnaryHooks {
    let (request, response, metrics) = (
      self.requestFunction, self.responseFunction, self.responseMetricsFunction
    )
    var hooks = UnaryHooks(
      responseFunction: { [weak run] given, proceed in
        guard let run else { return }
        let proceed = run.noting(proceed, run.takeResultRecord()) { verb, isGranted in
          if case .retry = verb, !isGranted { .proceed(given) } else { verb }
        }
        guard let response else { return proceed(given) }
        response(given, proceed)
      },
      responseMetricsFunction: metrics.map { notedMetrics($0, run) }
    )
    if run.hasRequest { hooks.requestFunction = notedRequest(request, run) }
    return hooks
  }
}

extension StreamHooks {
  /// - Parameter run: The pipeline, which these hooks do not keep.
  func noted(by run: StreamRun<RequestMessage, ResponseMessage>) -> StreamHooks {
    let (request, message, result) = (
      self.requestFunction, self.requestMessageFunction, self.streamResultFunction
    )
    var hooks = StreamHooks(
      requestMessageFunction: { [weak run] given, proceed in
        guard let run else { return }
        let proceed = run.noting(proceed, run.takeMessageRecord())
        guard let message else { return proceed(given) }
        message(given, proceed)
      },
      streamResultFunction: { [weak run] given, proceed in
        guard let run else { return }
        let proceed = run.noting(proceed, run.takeResultRecord()) { verb, isGranted in
          switch (verb, given) {
          case (.retry, _) where !isGranted, (.drop, .headers), (.drop, .complete): .proceed(given)
          case (.retry, _), (.drop, _), (.proceed, _): verb
          }
        }
        guard let result else { return proceed(given) }
        result(given, proceed)
      },
      responseMetricsFunction: self.responseMetricsFunction.map { notedMetrics($0, run) }
    )
    if run.hasRequest { hooks.requestFunction = notedRequest(request, run) }
    return hooks
  }
}

private func notedRequest<Message, Response, OfMessage, OfResult>(
  _ function: ((HTTPRequest<Message>, Proceed<RequestVerb<HTTPRequest<Message>, Response>>) -> Void)?,
  _ run: DrivenPipeline<RequestVerb<HTTPRequest<Message>, Response>, OfMessage, OfResult>
) -> (HTTPRequest<Message>, Proceed<RequestVerb<HTTPRequest<Message>, Response>>) -> Void {
  { [weak run] given, proceed in
    guard let run else { return }
    let proceed = run.noting(proceed, run.takeRequestRecord())
    guard let function else { return proceed(.success(given)) }
    function(given, proceed)
  }
}

private func notedMetrics<OfRequest, OfMessage, OfResult>(
  _ function: @escaping (HTTPMetrics, Proceed<HTTPMetrics>) -> Void,
  _ run: DrivenPipeline<OfRequest, OfMessage, OfResult>
) -> (HTTPMetrics, Proceed<HTTPMetrics>) -> Void {
  { [weak run] given, proceed in
    guard let run else { return }
    function(given, run.noting(proceed, run.takeMetricsRecord(), isAwaited: false))
  }
}

/// What the driver's pipeline gets of the interceptor: its hooks or its async form at one level.
struct DrivenLevel: Interceptor {
  var unary = UnaryFunction()
  var stream = StreamFunction()
  /// Functions for messages of the method's types.
  var messages: Any = ()
  var asyncUnaryForm: AsyncUnaryForm?
  var asyncStreamForm: AsyncStreamForm?

  func unaryFunction() -> UnaryFunction { self.unary }

  func streamFunction() -> StreamFunction { self.stream }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    self.messages as? UnaryMessageFunction<Input, Output> ?? UnaryMessageFunction()
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    self.messages as? StreamMessageFunction<Input, Output> ?? StreamMessageFunction()
  }
}
