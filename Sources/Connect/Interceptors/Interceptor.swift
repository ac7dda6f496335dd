/// Wraps calls: sees, changes, answers, fails or repeats them.
///
/// An ``InterceptorFactory`` makes a new interceptor for each call. So an interceptor may store the call's state in its
/// own properties, also across retries. Its hooks run one at a time on the call's executor. A hook that has to wait for
/// something does so in ``Proceed/task(_:)``. Such a task runs on the same executor, and so may use the interceptor's
/// state.
///
/// With interceptors A, B and C, requests pass A, B, C and responses C, B, A. There are three levels. *Call hooks* see
/// the call as a whole, without its messages. *Message hooks* see the method's own types. *Byte hooks* see the encoded
/// message and the HTTP request. On the way down, all call hooks come first, then all message hooks, then all byte
/// hooks. On the way up, the order is reversed. Byte hooks of unary calls may have another place than that of the list,
/// for example in a cache: see ``HookPlacement``.
///
/// All hooks are absent by default. An interceptor can also be written with `async` functions, see
/// ``AsyncUnaryInterceptor`` and ``AsyncStreamInterceptor``, or, on the level of bytes, ``AsyncUnaryByteInterceptor`` and
/// ``AsyncStreamByteInterceptor``.
public protocol Interceptor {
  /// Call hooks, for unary calls and streams alike. Asked once per call, before any other function is asked for.
  func callFunction(_ method: MethodInfo) -> CallFunction

  /// What observes the call's attempts on the wire; nil for nothing. Asked once per call, for calls of all kinds.
  ///
  /// The function is called on the call's executor with each ``AttemptEvent``, also for hedges, for transparent retries, and
  /// for attempts that the call abandons. It changes nothing. A call that nothing observes does not pay for it.
  func attemptFunction() -> AttemptFunction?

  /// Byte hooks for unary calls. Asked once per call.
  func unaryFunction() -> UnaryFunction

  /// Byte hooks for streams. Asked once per call.
  func streamFunction() -> StreamFunction

  /// Message hooks for unary calls. Asked once per call.
  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output>

  /// Message hooks for streams. Asked once per call.
  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output>

  /// The interceptor in its async form, if it has one. Implemented by ``AsyncUnaryInterceptor`` and
  /// ``AsyncUnaryByteInterceptor``.
  var asyncUnaryForm: AsyncUnaryForm? { get }

  /// The interceptor in its async form, if it has one. Implemented by ``AsyncStreamInterceptor`` and
  /// ``AsyncStreamByteInterceptor``.
  var asyncStreamForm: AsyncStreamForm? { get }
}

extension Interceptor {
  public func callFunction(_ method: MethodInfo) -> CallFunction { CallFunction() }

  public func attemptFunction() -> AttemptFunction? { nil }

  public func unaryFunction() -> UnaryFunction { UnaryFunction() }

  public func streamFunction() -> StreamFunction { StreamFunction() }

  public func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction()
  }

  public func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction()
  }

  public var asyncUnaryForm: AsyncUnaryForm? { nil }
  public var asyncStreamForm: AsyncStreamForm? { nil }
}

/// An interceptor without hooks, for factories that have nothing to do for a call. It is left out, and costs nothing.
public struct NoInterceptor: Interceptor {
  /// An interceptor without hooks.
  public init() {}
}
