public import Connect
internal import ServiceContextModule

/// Takes `ServiceContext.current` along with each call, as the request's `context.serviceContext`. It is bound again
/// around every hook, so that logging and tracing in hooks belong to the caller's trace.
public struct ServiceContextPropagator: ContextPropagator {
  /// A propagator for `ProtocolClientConfig.contextPropagators`.
  public init() {}

  public func capture(into context: inout CallContext) {
    guard context.serviceContext == nil, let current = ServiceContext.current else { return }
    context.serviceContext = current
  }

  public func bind(_ context: CallContext, around hook: () -> Void) {
    ServiceContext.withValue(context.serviceContext, operation: hook)
  }
}
