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
/// Outside of what retries, it records a call once, as its caller saw it; inside, each attempt. With no backend it
/// has no hooks.
public final class MetricsInterceptor: Interceptor {
  private let metrics: CallMetrics
  private let system: RPCSystem
  private var path = ""
  private var start: Duration?
  private var server: Origin?

  public init(_ metrics: CallMetrics, config: ProtocolClientConfig) {
    self.metrics = metrics
    self.system = RPCSystem(config.networkProtocol)
  }

  public func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard self.metrics.isEnabled else { return UnaryMessageFunction() }
    self.path = method.path
    return UnaryMessageFunction(
      requestFunction: { request, proceed in
        self.begin(request.url.origin)
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        self.end(response.code)
        proceed(response)
      }
    )
  }

  public func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    guard self.metrics.isEnabled else { return StreamMessageFunction() }
    self.path = method.path
    return StreamMessageFunction(
      requestFunction: { request, proceed in
        self.begin(request.url.origin)
        proceed(.success(request))
      },
      streamResultFunction: { result, proceed in
        if case .complete(let code, _, _) = result { self.end(code) }
        proceed(result)
      }
    )
  }

  private func begin(_ server: Origin) {
    self.server = server
    // Another attempt of the call comes here without an end before: it belongs to the same duration.
    if self.start == nil { self.start = self.metrics.now }
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
