/// Measures one exchange for the hooks that want its metrics. Confined to the call's executor.
struct ExchangeMeter {
  let hooks: MetricsHooks
  var metrics: HTTPMetrics
  private let executor: any CallExecutor
  private let startTime: Duration

  init(call: Call, hooks: MetricsHooks) {
    self.hooks = hooks
    self.executor = call.executor
    self.startTime = call.executor.now
    self.metrics = HTTPMetrics(attempt: call.attempt)
  }

  mutating func didStart(on connection: HTTPConnectionInfo) {
    self.metrics.connection = connection
    self.metrics.timeToConnection = self.elapsed
  }

  mutating func didReceiveHead() {
    self.metrics.timeToHeaders = self.elapsed
  }

  func finalMetrics(head: HTTPResponseHead?) -> HTTPMetrics {
    var metrics = self.metrics
    metrics.duration = self.elapsed
    metrics.httpStatus = head?.status
    return metrics
  }

  private var elapsed: Duration { self.executor.now - self.startTime }
}
