/// What a call takes along from the task that makes it, to where its hooks run.
final class Inheritance: Sendable {
  private let context: CallContext
  private let propagators: [any ContextPropagator]
  /// Whether there is anything to bind.
  private let binds: Bool
  fileprivate let watch: HookWatch?

  /// - Parameters:
  ///   - context: The call's, with all that it has inherited.
  ///   - binds: Whether the context and what propagators bind are bound around hooks.
  ///   - watch: Measures how long hooks run.
  init(context: CallContext, propagators: [any ContextPropagator], binds: Bool, watch: HookWatch?) {
    self.context = context
    self.propagators = propagators
    self.binds = binds
    self.watch = watch
  }

  fileprivate func bind(_ context: CallContext?, around hook: () -> Void) {
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
}

extension Inheritance? {
  /// Runs a hook, or what calls one, with what the call has inherited bound, if there is anything.
  ///
  /// - Parameters:
  ///   - context: That of the request which the hook is given, since another hook may have changed it; nil for
  ///     the call's.
  ///   - interceptor: Whose hook it is.
  @inline(__always)
  func bind<Value, Failure>(
    _ context: @autoclosure () -> CallContext?,
    of interceptor: @autoclosure () -> any Interceptor.Type,
    around hook: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    guard let self else { return try hook() }
    let measurement = self.watch?.begin(interceptor())
    var result: Result<Value, Failure>?
    self.bind(context()) {
      do throws(Failure) { result = .success(try hook()) } catch { result = .failure(error) }
    }
    measurement?.end()
    // Nil if a propagator has not run it.
    return if let result { try result.get() } else { try hook() }
  }
}

extension ProtocolClient {
  /// Adds to the options of a call that is made here and now what it inherits. To be called in the caller's task.
  ///
  /// - Returns: What is to be done around its hooks; nil for nothing.
  func inherit(into options: inout CallOptions, method: MethodInfo) -> Inheritance? {
    let binds = self.inheritContext(into: &options)
    let watch = self.hookWatch(for: method, options)
    guard binds || watch != nil else { return nil }
    return Inheritance(
      context: options.context,
      propagators: self.config.contextPropagators,
      binds: binds,
      watch: watch
    )
  }

  /// - Returns: Whether there is anything to bind around hooks.
  private func inheritContext(into options: inout CallOptions) -> Bool {
    let current = CallContext.current
    let propagators = self.config.contextPropagators
    guard current != nil || !propagators.isEmpty || !options.context.isEmpty else { return false }
    if let current { options.context = options.context.merged(over: current) }
    for propagator in propagators { propagator.capture(into: &options.context) }
    if let deadline = options.context.deadline {
      let inherited = max(deadline.remaining - max(self.config.deadlineMargin.clamped, .zero), .zero)
      let timeout = (options.timeout ?? self.config.timeout).map { min($0, inherited) } ?? inherited
      options.timeout = timeout
      options.context.deadline = deadline.moved(toRemaining: timeout)
    }
    return current != nil || !(propagators.isEmpty || options.context.isEmpty)
  }

  private func hookWatch(for method: MethodInfo, _ options: CallOptions) -> HookWatch? {
    guard let limit = self.config.hookWarnings.blocking, self.config.mayHaveInterceptors(options) else {
      return nil
    }
    return HookWatch(executor: self.executor, limit: limit, logger: self.config.logger, method: method)
  }
}
