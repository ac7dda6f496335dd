public import Connect

/// Records the duration and the outcome of each call into ``CallMetrics``, and with ``MetricFamilies/grpc`` each attempt.
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
  private var start: Duration?
  private var server: Origin?
  /// The call in gRPC's metrics; nil if there are none.
  private var grpc: GRPCCallRecord?

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
    return CallFunction(
      requestFunction: { request in self.begin(request, method) },
      outcomeFunction: { outcome in self.end(outcome.code, method) }
    )
  }

  public func attemptFunction() -> AttemptFunction? {
    guard self.metrics.observesAttempts else { return nil }
    return { event in self.grpc?.note(event) }
  }

  private func begin(_ request: HTTPRequest<Void>, _ method: MethodInfo) {
    let server = request.url.origin
    self.server = server
    self.system = RPCSystem(contentType: request.contentType)
    // A retry from the start belongs to the same call.
    guard self.start == nil else { return }
    self.start = self.metrics.now
    self.grpc = self.metrics.grpcInstruments(method, server).map { GRPCCallRecord($0) }
  }

  private func end(_ code: Code, _ method: MethodInfo) {
    guard let start = self.start, let server = self.server else { return }
    self.start = nil
    let duration = self.metrics.now - start
    self.metrics.record(duration, system: self.system, method, server: server, code: code)
    self.grpc?.end(code, after: duration)
  }
}
