internal import Connect

/// An interceptor whose hooks, or whose async forms, are given as values.
struct FixedInterceptor: Interceptor {
  var callHooks = CallFunction()
  var byteHooks: Any = ()
  /// Hooks for messages of the method's types.
  var messageHooks: Any = ()
  var asyncUnaryForm: AsyncUnaryForm?
  var asyncStreamForm: AsyncStreamForm?

  func callFunction(_ method: MethodInfo) -> CallFunction { self.callHooks }

  func unaryFunction() -> UnaryFunction { self.byteHooks as? UnaryFunction ?? UnaryFunction() }

  func streamFunction() -> StreamFunction { self.byteHooks as? StreamFunction ?? StreamFunction() }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    self.messageHooks as? UnaryMessageFunction<Input, Output> ?? UnaryMessageFunction()
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    self.messageHooks as? StreamMessageFunction<Input, Output> ?? StreamMessageFunction()
  }
}
