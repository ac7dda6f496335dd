public import Connect

/// Records the duration and the outcome of each call into ``CallMetrics``.
///
/// ```swift
/// let metrics = CallMetrics()
/// let config = ProtocolClientConfig(
///   host: "https://api.example.com",
///   interceptors: [{ MetricsInterceptor(metrics, config: $0) }]
/// )
/// ```
///
/// It records a call once, as its caller saw it, with all its attempts. With no backend it has no hooks.
public final class MetricsInterceptor: Interceptor {
  private let metrics: CallMetrics
  /// The system of the protocol in which the call begins.
  private var system = RPCSystem.connect
  private var path = ""
  private var start: Duration?
  private var server: Origin?

  /// An interceptor for one call, as each factory makes it.
  ///
  /// - Parameters:
  ///   - metrics: Where the call is recorded; shared by the interceptors of all calls.
  ///   - config: The client's configuration, as factories receive it. Not used at present.
  public init(_ metrics: CallMetrics, config: ProtocolClientConfig) {
    self.metrics = metrics
  }

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    guard self.metrics.isEnabled else { return CallFunction() }
    self.path = method.path
    return CallFunction(
      requestFunction: { request in
        self.server = request.url.origin
        self.system = RPCSystem(contentType: request.contentType)
        // A retry from the start belongs to the same call.
        self.start = self.start ?? self.metrics.now
      },
      outcomeFunction: { outcome in self.end(outcome.code) }
    )
  }

  private func end(_ code: Code) {
    guard let start = self.start, let server = self.server else { return }
    self.start = nil
    self.metrics.record(
      self.metrics.now - start,
      system: self.system,
      path: self.path,
      server: server,
      code: code
    )
  }
}
