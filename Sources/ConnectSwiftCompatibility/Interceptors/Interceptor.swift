public import Connect

/// What ``UnaryInterceptor`` and ``StreamInterceptor`` have in common. A class conforms to one of these, or to both.
///
/// A ``InterceptorFactory`` makes an interceptor for each call, so it may keep the call's state in itself. Each function is
/// one hook of this library: requests pass the interceptors in the order of the list, responses in the reverse order.
/// All functions pass on what they are given by default.
///
/// `proceed` is called once, also later and from any thread; what is called after that does nothing. If it is released
/// uncalled, the call fails with `internal`. Hooks run on the call's executor, which for sockets is an event loop: they must
/// not block.
public protocol Interceptor: AnyObject, Sendable {
  /// Called at the end of each attempt on the wire. Nothing waits for it.
  @Sendable
  func handleResponseMetrics(_ metrics: HTTPMetrics, proceed: @escaping @Sendable (HTTPMetrics) -> Void)
}

extension Interceptor {
  /// Passes the metrics on.
  @Sendable
  public func handleResponseMetrics(
    _ metrics: HTTPMetrics,
    proceed: @escaping @Sendable (HTTPMetrics) -> Void
  ) {
    proceed(metrics)
  }
}
