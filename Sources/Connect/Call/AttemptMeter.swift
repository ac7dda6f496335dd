internal import NIOCore

/// Measures one attempt for the hooks that want its metrics. Confined to the call's executor.
struct AttemptMeter {
  /// Collects the metrics.
  private let report: MetricsReport
  private let startTime: Duration
  /// Whether the metrics include encodings.
  private let readsEncodings: Bool

  /// A meter for the attempt that was started last.
  init(_ attempts: Attempts, on executor: any CallExecutor) {
    self.report = MetricsReport(HTTPMetrics.Values(attempt: attempts.number), for: attempts.metricsHooks)
    self.startTime = executor.now
    self.readsEncodings = attempts.plan.isExplained
  }

  func willStart(_ head: HTTPStreamRequest) {
    if self.readsEncodings { self.report.metrics.requestEncoding = head.headers.announcedEncoding }
  }

  func didStart(on connection: HTTPConnectionInfo, _ call: Call) {
    self.report.metrics.connection = connection
    self.report.metrics.timeToConnection = self.elapsed(call)
  }

  func didReceive(_ head: HTTPResponseHead, _ call: Call) {
    self.report.metrics.timeToHeaders = self.elapsed(call)
    self.report.metrics.httpStatus = head.status
    if self.readsEncodings { self.report.metrics.responseEncoding = head.headers.announcedEncoding }
  }

  /// Gives the metrics to the hooks.
  func finish(_ traffic: Attempt.Traffic, _ call: Call) {
    self.complete(with: traffic, call)
    self.report.pass(call)
  }

  /// Gives the current metrics to the hooks, in a later job of the executor.
  func finishLater(_ traffic: Attempt.Traffic, _ attempts: Attempts, _ call: Call) {
    self.complete(with: traffic, call)
    attempts.pendingMetrics += 1
    let here = Confined((self.report, attempts), to: call.executor)
    call.executor.execute {
      here.value.1.pendingMetrics -= 1
      here.value.0.pass(call)
    }
  }

  private func complete(with traffic: Attempt.Traffic, _ call: Call) {
    self.report.metrics.requestBodyBytes = traffic.requestBodyBytes
    self.report.metrics.responseBodyBytes = traffic.responseBodyBytes
    self.report.metrics.duration = self.elapsed(call)
  }

  private func elapsed(_ call: Call) -> Duration { call.executor.now - self.startTime }
}

extension HTTPStreamRequest.Body {
  /// The size of a complete body in bytes; 0 for a streamed body.
  var completeSize: Int {
    if case .complete(let body) = self { body.readableBytes } else { 0 }
  }
}

extension Headers {
  /// The message encoding that these headers announce, in any of the protocols; nil for identity.
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
