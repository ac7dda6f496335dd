internal import NIOCore

/// Measures one attempt for call hooks, and reports to the hooks for metrics. Confined to the call's executor.
final class AttemptMeter {
  /// Nil without hooks for metrics: then no times are taken.
  private let report: MetricsReport?
  private let startTime: Duration
  private var hasStarted = false
  /// That of the connection which serves the request, also where it is sent once more.
  private var remoteAddress: String?
  /// Whether somebody looks that closely.
  private let readsEncodings: Bool
  private var metrics: HTTPMetrics

  /// A meter for the attempt that was started last.
  init(_ attempts: Attempts, on executor: any CallExecutor) {
    self.report = attempts.metricsHooks.isEmpty ? nil : MetricsReport(attempts.metricsHooks)
    self.startTime = self.report == nil ? .zero : executor.now
    self.readsEncodings = attempts.plan.isExplained
    self.metrics = HTTPMetrics(attempt: attempts.number)
  }

  func willStart(_ head: HTTPStreamRequest) {
    self.hasStarted = true
    self.remoteAddress = nil
    if self.readsEncodings { self.metrics.requestEncoding = head.headers.announcedEncoding }
    self.metrics.requestBodyBytes = 0
    if case .complete(let body) = head.body { self.metrics.requestBodyBytes = body.readableBytes }
  }

  func willWrite(_ byteCount: Int) {
    self.metrics.requestBodyBytes += byteCount
  }

  func didStart(on connection: HTTPConnectionInfo, _ host: any PipelineHost) {
    self.metrics.connection = connection
    self.remoteAddress = connection.remoteAddress
    if self.report != nil { self.metrics.timeToConnection = self.elapsed(host) }
  }

  func didReceive(_ head: HTTPResponseHead, _ host: any PipelineHost) {
    if self.report != nil { self.metrics.timeToHeaders = self.elapsed(host) }
    self.metrics.httpStatus = head.status
    if self.readsEncodings { self.metrics.responseEncoding = head.headers.announcedEncoding }
  }

  func didReceive(_ byteCount: Int) {
    self.metrics.responseBodyBytes += byteCount
  }

  /// What call hooks are told of the attempt; nil if nothing went to the network.
  var summary: CallOutcome.Exchange? {
    guard self.hasStarted else { return nil }
    return CallOutcome.Exchange(
      httpStatus: self.metrics.httpStatus,
      requestBodyBytes: self.metrics.requestBodyBytes,
      responseBodyBytes: self.metrics.responseBodyBytes,
      remoteAddress: self.remoteAddress
    )
  }

  /// Gives the metrics to the hooks.
  func finish(_ host: any PipelineHost) {
    guard let report = self.report else { return }
    self.metrics.duration = self.elapsed(host)
    report.pass(self.metrics, host)
  }

  /// Gives them to the hooks later, as they are now.
  func finishLater(_ attempts: Attempts, _ host: any PipelineHost) {
    guard let report = self.report else { return }
    self.metrics.duration = self.elapsed(host)
    attempts.pendingMetrics += 1
    let here = Confined((report, self.metrics, attempts), to: host.executor)
    host.executor.execute {
      here.value.2.pendingMetrics -= 1
      here.value.0.pass(here.value.1, host)
    }
  }

  private func elapsed(_ host: any PipelineHost) -> Duration { host.executor.now - self.startTime }
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
