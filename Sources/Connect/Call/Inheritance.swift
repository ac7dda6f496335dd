/// What a call takes along from the task that makes it, to where its hooks run.
final class Inheritance: Sendable {
  private let context: CallContext
  private let propagators: [any ContextPropagator]

  /// - Parameter context: The call's, with all that it has inherited.
  init(context: CallContext, propagators: [any ContextPropagator]) {
    self.context = context
    self.propagators = propagators
  }

  fileprivate func bind(_ context: CallContext?, around hook: () -> Void) {
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
  /// - Parameter context: That of the request which the hook is given, since another hook may have changed it; nil for
  ///   the call's.
  @inline(__always)
  func bind<Value, Failure>(
    _ context: @autoclosure () -> CallContext?,
    around hook: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    guard let self else { return try hook() }
    var result: Result<Value, Failure>?
    self.bind(context()) {
      do throws(Failure) { result = .success(try hook()) } catch { result = .failure(error) }
    }
    // Nil if a propagator has not run it.
    return if let result { try result.get() } else { try hook() }
  }
}

extension ProtocolClient {
  /// Adds to the options of a call that is made here and now what it inherits. To be called in the caller's task.
  ///
  /// - Returns: What is to be bound around its hooks; nil for nothing.
  func inherit(into options: inout CallOptions) -> Inheritance? {
    let current = CallContext.current
    let propagators = self.config.contextPropagators
    guard current != nil || !propagators.isEmpty || !options.context.isEmpty else { return nil }
    if let current { options.context = options.context.merged(over: current) }
    for propagator in propagators { propagator.capture(into: &options.context) }
    if let deadline = options.context.deadline {
      let inherited = max(deadline.remaining - max(self.config.deadlineMargin, .zero), .zero)
      let timeout = (options.timeout ?? self.config.timeout).map { min($0, inherited) } ?? inherited
      options.timeout = timeout
      options.context.deadline = deadline.moved(toRemaining: timeout)
    }
    let bindsNothing = current == nil && (propagators.isEmpty || options.context.isEmpty)
    return bindsNothing ? nil : Inheritance(context: options.context, propagators: propagators)
  }
}
