/// Call hooks: they see a call as its caller does, of whatever kind it is, and nothing of its messages.
///
/// One function serves unary calls and streams. The hooks stand outside of all others: what they pass on goes to the
/// message hooks, and what those, retries among them, have made of the call comes back. So a call passes them once in each
/// direction.
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
/// They return what they have to say instead of proceeding, so they cannot wait for anything; what has to wait belongs into
/// the other hooks. In exchange they are the shortest to write and cost the least. Each is optional; one that is absent
/// costs nothing. Hooks run on the call's executor, one at a time, outside of any task.
public struct CallFunction {
  /// Called once with the request as the caller made it, but for its messages, in the order of the interceptors. It may
  /// change the request, or throw: then nothing inside is touched, and the error goes up through the call hooks outside.
  /// Whatever is thrown becomes the call's error, ``ConnectError`` as it is.
  public var requestFunction: ((inout HTTPRequest<Void>) throws -> Void)?
  /// Called once with the outcome, in the reverse order. It may change it, but not make a call succeed that has failed.
  /// When the call's own deadline passes or it is cancelled, it is called with that error too, and what it changes then is
  /// ignored. The headers and messages of a stream have gone out by then.
  public var outcomeFunction: ((inout CallOutcome) -> Void)?
  /// Called exactly once, when the call is over, whatever the reason, with the outcome as its caller gets it: the place to
  /// give back what the interceptor has taken for the call. It is called in the reverse order, also where the request has
  /// not got to this interceptor, or where the call was cancelled before it had begun.
  ///
  /// It is the last of an interceptor's hooks, but for a metrics hook that waits for another interceptor's; what an
  /// interceptor does in tasks may go on longer. A call that is cancelled, or whose deadline passes, may have a hook on the
  /// stack or metrics that are still to be told: then the end hooks come after those, and maybe after its caller has got the
  /// outcome.
  public var endFunction: ((CallOutcome) -> Void)?

  /// The hooks of one interceptor for one call; those that are nil are absent.
  @inlinable @inline(__always)
  public init(
    requestFunction: ((inout HTTPRequest<Void>) throws -> Void)? = nil,
    outcomeFunction: ((inout CallOutcome) -> Void)? = nil,
    endFunction: ((CallOutcome) -> Void)? = nil
  ) {
    self.requestFunction = requestFunction
    self.outcomeFunction = outcomeFunction
    self.endFunction = endFunction
  }

  @inline(__always)
  var isEmpty: Bool { self.isTransparent && self.endFunction == nil }

  /// Whether the request passes it as it is, and nothing waits for the outcome.
  @inline(__always)
  var isTransparent: Bool { self.requestFunction == nil && self.outcomeFunction == nil }
}
