/// What a call inherits from the caller's task, for its hooks.
final class Inheritance: Sendable {
  private let context: CallContext
  private let propagators: [any ContextPropagator]
  /// Whether there is anything to bind.
  private let binds: Bool
  private let watch: HookWatch?

  /// - Parameters:
  ///   - context: The call's context, including inherited values.
  ///   - binds: Whether the context and the values of propagators are bound around hooks.
  ///   - watch: Measures how long hooks run.
  init(context: CallContext, propagators: [any ContextPropagator], binds: Bool, watch: HookWatch?) {
    self.context = context
    self.propagators = propagators
    self.binds = binds
    self.watch = watch
  }

  private func bind(_ context: CallContext?, around hook: () -> Void) {
    guard self.binds else {
      hook()
      return
    }
    let context = context ?? self.context
    CallContext.$current.withValue(context) {
      self.bind(context, from: 0, around: hook)
    }
  }

  private func bind(_ context: CallContext, from index: Int, around hook: () -> Void) {
    guard index < self.propagators.count else {
      hook()
      return
    }
    self.propagators[index].bind(context) { self.bind(context, from: index + 1, around: hook) }
  }

  /// Runs a hook, or code that calls one, with the inherited values bound.
  ///
  /// - Parameters:
  ///   - context: The context of the hook's request, which another hook may have changed; nil for the call's context.
  ///   - interceptor: The interceptor of the hook.
  func bind<Value, Failure>(
    _ context: CallContext?,
    of interceptor: any Interceptor.Type,
    around hook: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let measurement = self.watch?.begin(interceptor)
    var result: Result<Value, Failure>?
    self.bind(context) {
      do throws(Failure) { result = .success(try hook()) } catch { result = .failure(error) }
    }
    measurement?.end()
    // Nil if a propagator has not run the hook.
    return if let result { try result.get() } else { try hook() }
  }
}

extension Inheritance? {
  /// Runs a hook, or code that calls one, with the inherited values bound, if there are any.
  @inline(__always)
  func bind<Value, Failure>(
    _ context: @autoclosure () -> CallContext?,
    of interceptor: @autoclosure () -> any Interceptor.Type,
    around hook: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    guard let self else { return try hook() }
    return try self.bind(context(), of: interceptor(), around: hook)
  }
}
