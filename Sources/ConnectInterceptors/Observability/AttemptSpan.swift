internal import Connect
internal import Tracing

/// The span of one attempt. Its outcome and its metrics come in either order, or one of them not at all; it ends with
/// the second, at the time of the first that was an end.
///
/// Of an attempt that hedges, the last metrics before its outcome are those of the exchange that has decided it; those that
/// come behind are of exchanges that were given up.
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
    // Heard of another exchange before: this one has gone on longer.
    if self.hasMetrics { self.end = nil }
    self.hasMetrics = true
    if span.isRecording {
      span.updateAttributes { self.set(metrics, in: &$0) }
    }
    self.didEnd(isComplete: self.hasOutcome)
  }

  /// Ends the span if it has not ended. Nothing more is heard of the attempt.
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
