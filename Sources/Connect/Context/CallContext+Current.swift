private enum DeadlineKey: CallContextKey {
  static let defaultValue: CallDeadline? = nil
}

private enum CancellationKey: CallContextKey {
  static let defaultValue: CallCancellation? = nil
}

extension CallContext {
  /// When what the call belongs to has to be over, for example the request that a service handles; nil if there is no
  /// limit. A call ends at this time at the latest.
  public var deadline: CallDeadline? {
    get { self[DeadlineKey.self] }
    set { self[DeadlineKey.self] = newValue }
  }

  /// What cancels the call besides its caller; nil for nothing.
  public var cancellation: CallCancellation? {
    get { self[CancellationKey.self] }
    set { self[CancellationKey.self] = newValue }
  }

  /// The context that calls of this task inherit; nil for none. What a call's ``CallOptions/context`` says goes first.
  @TaskLocal public static var current: CallContext?

  /// Runs `operation` with a context that the calls in it inherit: the present one, changed.
  ///
  /// ```swift
  /// try await CallContext.withValues { context in
  ///   context.deadline = CallDeadline(in: .seconds(2))
  /// } operation: {
  ///   try await answer(request)  // no call in it takes longer than what is left of the two seconds
  /// }
  /// ```
  ///
  /// A deadline can only become earlier. Cancelling the task cancels the calls in it, also those that other tasks wait
  /// for, or callbacks. For calls that are to outlive the operation, bind nil: `CallContext.$current.withValue(nil)`.
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
