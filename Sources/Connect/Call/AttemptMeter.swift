internal import NIOCore

/// Measures one attempt, and reports to the hooks for metrics. Confined to the call's executor.
final class AttemptMeter {
  private let report: MetricsReport
  private let startTime: Duration
  /// Whether somebody looks that closely.
  private let readsEncodings: Bool
  private var metrics: HTTPMetrics

  /// A meter for the attempt that was started last; nil if nobody wants to know.
  static func make(_ call: Call) -> AttemptMeter? {
    call.attempts.metricsHooks.isEmpty ? nil : AttemptMeter(call)
  }

  private init(_ call: Call) {
    self.report = MetricsReport(call.attempts.metricsHooks)
    self.startTime = call.executor.now
    self.readsEncodings = call.plan.isExplained
    self.metrics = HTTPMetrics(attempt: call.attempts.number)
  }

  func willStart(_ head: HTTPStreamRequest) {
    if self.readsEncodings { self.metrics.requestEncoding = head.headers.announcedEncoding }
    self.metrics.requestBodyBytes = 0
    if case .complete(let body) = head.body { self.metrics.requestBodyBytes = body.readableBytes }
  }

  func willWrite(_ byteCount: Int) {
    self.metrics.requestBodyBytes += byteCount
  }

  func didStart(on connection: HTTPConnectionInfo, _ call: Call) {
    self.metrics.connection = connection
    self.metrics.timeToConnection = self.elapsed(call)
  }

  func didReceive(_ head: HTTPResponseHead, _ call: Call) {
    self.metrics.timeToHeaders = self.elapsed(call)
    self.metrics.httpStatus = head.status
    if self.readsEncodings { self.metrics.responseEncoding = head.headers.announcedEncoding }
  }

  func didReceive(_ byteCount: Int) {
    self.metrics.responseBodyBytes += byteCount
  }

  /// Gives the metrics to the hooks.
  func finish(_ call: Call) {
    self.metrics.duration = self.elapsed(call)
    self.report.pass(self.metrics, call)
  }

  /// Gives them to the hooks later, as they are now.
  func finishLater(_ call: Call) {
    self.metrics.duration = self.elapsed(call)
    call.attempts.metricsArePending()
    let here = Confined((self.report, self.metrics), to: call.executor)
    call.executor.execute {
      call.attempts.metricsWereGiven()
      here.value.0.pass(here.value.1, call)
    }
  }

  private func elapsed(_ call: Call) -> Duration { call.executor.now - self.startTime }
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
