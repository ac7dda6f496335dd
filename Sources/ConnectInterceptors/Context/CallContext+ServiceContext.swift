public import Connect
public import ServiceContextModule

private enum ServiceContextKey: CallContextKey {
  static let defaultValue: ServiceContext? = nil
}

extension CallContext {
  /// The context of swift-service-context that the call belongs to: the trace, and whatever else the process keeps
  /// there. nil if none is known.
  ///
  /// ``TracingInterceptor`` makes its spans children of this one, and sets it to its own span for what is inside.
  public var serviceContext: ServiceContext? {
    get { self[ServiceContextKey.self] }
    set { self[ServiceContextKey.self] = newValue }
  }
}
