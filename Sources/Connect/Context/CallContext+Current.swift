private enum DeadlineKey: CallContextKey {
  static let defaultValue: CallDeadline? = nil
}

private enum CancellationKey: CallContextKey {
  static let defaultValue: CallCancellation? = nil
}

extension CallContext {
  /// The deadline of the work that the call is part of, for example of the request that a service handles; nil for none.
  /// The call ends at this time at the latest.
  public var deadline: CallDeadline? {
    get { self[DeadlineKey.self] }
    set { self[DeadlineKey.self] = newValue }
  }

  /// Cancels the call together with the work that it is part of; nil if only its caller can cancel it.
  public var cancellation: CallCancellation? {
    get { self[CancellationKey.self] }
    set { self[CancellationKey.self] = newValue }
  }

  /// The context that calls of this task inherit; nil for none. Values in a call's ``CallOptions/context`` take precedence.
  @TaskLocal public static var current: CallContext?

  /// Runs `operation` with a changed copy of the current context, which the calls made in it inherit.
  ///
  /// ```swift
  /// try await CallContext.withValues { context in
  ///   context.deadline = CallDeadline(in: .seconds(2))
  /// } operation: {
  ///   try await answer(request)  // no call in it takes longer than what is left of the two seconds
  /// }
  /// ```
  ///
  /// A deadline can only become earlier. Cancelling the task cancels all calls made in `operation`, also those that other
  /// tasks or callbacks wait for. To let calls outlive the operation, bind nil: `CallContext.$current.withValue(nil)`.
  public static func withValues<Result>(
    _ change: (inout CallContext) -> Void,
    isolation: isolated (any Actor)? = #isolation,
    operation: () async throws -> Result
  ) async rethrows -> Result {
    let outer = Self.current ?? CallContext()
    var context = outer
    change(&context)
    if let deadline = outer.deadline { context.deadline = deadline.earlier(of: context.deadline) }
    let cancellation = CallCancellation()
    outer.cancellation?.add(cancellation)
    context.cancellation = cancellation
    return try await withTaskCancellationHandler {
      try await Self.$current.withValue(context, operation: operation, isolation: isolation)
    } onCancel: {
      cancellation.cancel()
    }
  }
}
