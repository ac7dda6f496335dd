internal import Connect
internal import Tracing

/// The span of one attempt. Outcome and metrics arrive in either order, or only one of them. The span ends once both have
/// arrived, at the time of the first.
///
/// For hedged attempts, the last metrics before the outcome belong to the exchange that decided it. Later metrics belong
/// to abandoned exchanges.
///
/// Confined to the call's executor, like the interceptor that owns it.
final class AttemptSpan {
  private var span: (any Span)?
  private let origin: Origin
  private var end: DefaultTracerClock.Timestamp?
  private var hasOutcome = false
  private var hasMetrics = false

  init(_ span: any Span, to origin: Origin) {
    self.span = span
    self.origin = origin
  }

  /// The response, or the error, has come.
  func end(_ code: Code, _ error: ConnectError?, _ system: RPCSystem) {
    guard let span = self.span, !self.hasOutcome else { return }
    self.hasOutcome = true
    span.setOutcome(code, error, system)
    self.didEnd(isComplete: self.hasMetrics)
  }

  /// The attempt has ended on the wire.
  func add(_ metrics: HTTPMetrics) {
    guard let span = self.span else { return }
    // The earlier metrics were those of another exchange, which ended before this one.
    if self.hasMetrics { self.end = nil }
    self.hasMetrics = true
    if span.isRecording {
      span.updateAttributes { self.set(metrics, in: &$0) }
    }
    self.didEnd(isComplete: self.hasOutcome)
  }

  /// Ends the span if it has not ended. No more events of the attempt arrive.
  func finish() {
    guard let span = self.span else { return }
    self.span = nil
    span.end(at: self.end ?? DefaultTracerClock.now)
  }

  private func didEnd(isComplete: Bool) {
    if self.end == nil { self.end = DefaultTracerClock.now }
    if isComplete { self.finish() }
  }

  private func set(_ metrics: HTTPMetrics, in attributes: inout SpanAttributes) {
    if let connection = metrics.connection {
      if let peer = connection.peer {
        attributes[SemanticConventions.peerAddress] = peer.address
        if let port = peer.port { attributes[SemanticConventions.peerPort] = port }
      }
      attributes[SemanticConventions.protocolName] = "http"
      attributes[SemanticConventions.protocolVersion] = connection.protocolVersion
      attributes[SemanticConventions.transport] = connection.transport(to: self.origin)
    }
    if let status = metrics.httpStatus { attributes[SemanticConventions.httpStatus] = status }
    attributes[SemanticConventions.requestBodySize] = metrics.requestBodyBytes
    attributes[SemanticConventions.responseBodySize] = metrics.responseBodyBytes
  }
}

extension Span {
  /// Sets status code, error type and the span's status.
  func setOutcome(_ code: Code, _ error: ConnectError?, _ system: RPCSystem) {
    guard self.isRecording else { return }
    let status = system.statusCode(code)
    self.updateAttributes { attributes in
      if let status { attributes[SemanticConventions.statusCode] = status }
      if code != .ok, let status { attributes[SemanticConventions.errorType] = status }
    }
    if code != .ok { self.setStatus(SpanStatus(code: .error, message: error?.message)) }
  }
}
