internal import NIOCore

/// Measures one exchange for the hooks that want its metrics. Confined to the call's executor.
struct ExchangeMeter {
  let hooks: MetricsHooks
  var metrics: HTTPMetrics
  private let executor: any CallExecutor
  private let startTime: Duration
  /// Whether somebody looks that closely.
  private let readsEncodings: Bool

  init(call: Call, hooks: MetricsHooks) {
    self.hooks = hooks
    self.executor = call.executor
    self.startTime = call.executor.now
    self.readsEncodings = call.options.arrangement != nil
    self.metrics = HTTPMetrics(attempt: call.attempt)
  }

  mutating func willStart(_ head: HTTPStreamRequest) {
    if self.readsEncodings { self.metrics.requestEncoding = head.headers.announcedEncoding }
    if case .complete(let body) = head.body { self.metrics.requestBodyBytes = body.readableBytes }
  }

  mutating func didStart(on connection: HTTPConnectionInfo) {
    self.metrics.connection = connection
    self.metrics.timeToConnection = self.elapsed
  }

  mutating func didReceive(_ head: HTTPResponseHead) {
    self.metrics.timeToHeaders = self.elapsed
    if self.readsEncodings { self.metrics.responseEncoding = head.headers.announcedEncoding }
  }

  func finalMetrics(head: HTTPResponseHead?) -> HTTPMetrics {
    var metrics = self.metrics
    metrics.duration = self.elapsed
    metrics.httpStatus = head?.status
    return metrics
  }

  private var elapsed: Duration { self.executor.now - self.startTime }
}

extension Headers {
  /// What these say of how messages behind them are compressed, in any of the protocols.
  fileprivate var announcedEncoding: String? {
    for field in self {
      switch field.name {
      case "content-encoding", "connect-content-encoding", "grpc-encoding":
        return field.value == "identity" ? nil : field.value
      default:
        continue
      }
    }
    return nil
  }
}
