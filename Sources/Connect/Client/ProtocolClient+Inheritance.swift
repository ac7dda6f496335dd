extension ProtocolClient {
  /// Adds inherited context and deadline to a call's options. Must be called in the caller's task.
  ///
  /// - Parameter executor: Where the call will live.
  /// - Returns: What to bind or measure around the call's hooks; nil for nothing.
  @inline(__always)
  func inherit(
    into options: inout CallOptions,
    method: MethodInfo,
    on executor: any CallExecutor
  ) -> Inheritance? {
    let binds = self.inheritContext(into: &options)
    let watch = self.hookWatch(for: method, options, on: executor)
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

  private func hookWatch(
    for method: MethodInfo,
    _ options: CallOptions,
    on executor: any CallExecutor
  ) -> HookWatch? {
    guard let limit = self.config.hookWarnings.blocking, self.config.mayHaveInterceptors(options) else {
      return nil
    }
    return HookWatch(
      executor: executor,
      limit: limit,
      logger: self.config.logger,
      method: method
    )
  }
}
