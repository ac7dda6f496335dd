/// Takes task-local values of the caller along with a call, to where closure hooks run, which is outside of any task.
///
/// Async interceptors need none of this: they see the caller's task-local values anyhow.
public protocol ContextPropagator: Sendable {
  /// Puts what is to be taken along into the call's context. Called in the caller's task when a call is made; what is
  /// in the context already was given with the call and goes first.
  func capture(into context: inout CallContext)

  /// Runs `hook` once with what is in the context bound. Called for every hook; one that it does not run is run all the same.
  func bind(_ context: CallContext, around hook: () -> Void)
}
