/// Carries task-local values of the caller to the closure hooks of a call, which run outside of any task.
///
/// Async interceptors do not need it: they see the caller's task-local values.
public protocol ContextPropagator: Sendable {
  /// Stores the values to carry in the call's context. Called in the caller's task when a call is made. Values that are
  /// in the context already were given with the call and take precedence.
  func capture(into context: inout CallContext)

  /// Runs `hook` once, with the values of `context` bound. Called for every hook. If this function does not run the
  /// hook, the hook runs without the values.
  func bind(_ context: CallContext, around hook: () -> Void)
}
