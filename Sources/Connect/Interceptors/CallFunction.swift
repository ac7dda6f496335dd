/// Call hooks: they see a call of any kind as its caller does, without its messages.
///
/// One function serves unary calls and streams. Call hooks stand outside of all others. The request goes on to the
/// message hooks, and the final outcome comes back after all retries. So a call passes its call hooks once in each
/// direction, unless an interceptor asks for a retry from the start (``RetryStart/start``).
///
/// ```swift
/// func callFunction(_ method: MethodInfo) -> CallFunction {
///   let start = ContinuousClock.now
///   return CallFunction(
///     requestFunction: { request in request.headers["x-client"] = ["example"] },
///     outcomeFunction: { outcome in print("\(method.path): \(outcome.code) after \(ContinuousClock.now - start)") }
///   )
/// }
/// ```
///
/// Call hooks return instead of proceeding, so they cannot wait for anything; a hook that has to wait must be of
/// another level. In exchange, call hooks are the shortest to write and cost the least. Each is optional; one that is
/// absent costs nothing. Hooks run on the call's executor, one at a time, outside of any task.
public struct CallFunction {
  /// Called with the caller's request, without its messages, in the order of the interceptors: once, and again for each
  /// retry from the start. It may change the request, or throw. After a throw, no inner hook is called, and the error
  /// goes up through the outer call hooks. Whatever is thrown becomes the call's error, ``ConnectError`` as it is.
  public var requestFunction: ((inout HTTPRequest<Void>) throws -> Void)?
  /// Called with the outcome, in the reverse order: once, unless an outer call hook has the call start again. It may
  /// change the outcome, but cannot turn a failure into a success. It also receives the error of a cancellation or of a passed deadline; its changes are ignored then. The
  /// headers and messages of a stream have already gone out.
  public var outcomeFunction: ((inout CallOutcome) -> Void)?
  /// Called with the outcome before ``outcomeFunction``. If it returns a retry, the call starts again at its first call hook,
  /// with the retry's request or the caller's, and neither ``outcomeFunction`` nor outer call hooks see the outcome. Not
  /// called when the call is cancelled or its deadline has passed.
  ///
  /// Refused, so that the outcome passes on, when the cap on retries is reached, the delay would pass the call's deadline, a
  /// stream's headers or messages have gone out to the caller, or its sent messages exceed what is kept.
  public var retryFunction: ((CallOutcome) -> RetryRequest?)?
  /// Called exactly once, when the call is over for any reason, with the outcome that the caller gets. Release here the
  /// resources that the interceptor holds for the call. It is called in the reverse order, even if the request has not
  /// reached this interceptor, or the call was cancelled before it began.
  ///
  /// It is the last of an interceptor's hooks, except for a metrics hook that waits for the metrics hook of another
  /// interceptor. Tasks of an interceptor may go on longer.
  ///
  /// When a call is cancelled or its deadline passes, a hook may be on the stack, or metrics hooks may be outstanding.
  /// The end hooks then come after these, and possibly after the caller has got the outcome.
  public var endFunction: ((CallOutcome) -> Void)?

  /// The hooks of one interceptor for one call; those that are nil are absent.
  @inlinable @inline(__always)
  public init(
    requestFunction: ((inout HTTPRequest<Void>) throws -> Void)? = nil,
    outcomeFunction: ((inout CallOutcome) -> Void)? = nil,
    retryFunction: ((CallOutcome) -> RetryRequest?)? = nil,
    endFunction: ((CallOutcome) -> Void)? = nil
  ) {
    self.requestFunction = requestFunction
    self.outcomeFunction = outcomeFunction
    self.retryFunction = retryFunction
    self.endFunction = endFunction
  }

  @inline(__always)
  var isEmpty: Bool { self.isTransparent && self.endFunction == nil }

  /// Whether the request passes unchanged, and no hook waits for the outcome.
  @inline(__always)
  var isTransparent: Bool { self.requestFunction == nil && !self.seesOutcome }

  /// Whether a hook waits for the outcome.
  @inline(__always)
  var seesOutcome: Bool { self.outcomeFunction != nil || self.retryFunction != nil }
}
