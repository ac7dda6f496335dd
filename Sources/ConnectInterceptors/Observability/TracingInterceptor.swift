public import Connect
internal import ServiceContextModule
public import Tracing

/// Traces each call with swift-distributed-tracing, by the semantic conventions of OpenTelemetry for RPC, version
/// 1.40.0: a client span for the call, a child span for each attempt, whose context goes to the server in the headers
/// that the tracer knows (W3C: `traceparent` and `tracestate`).
///
/// ```swift
/// let config = ProtocolClientConfig(
///   host: "https://api.example.com",
///   interceptors: [{ TracingInterceptor(config: $0) }]
/// )
/// ```
///
/// | attribute | on the span of | for example |
/// | --- | --- | --- |
/// | `rpc.system.name` | call, attempt | `connectrpc`; `grpc` for gRPC and gRPC-Web |
/// | `rpc.method` | call, attempt | `connectrpc.eliza.v1.ElizaService/Say`, also the name of the call's span |
/// | `server.address`, `server.port` | call, attempt | `demo.connectrpc.com`, 443 |
/// | `rpc.response.status_code` | call, attempt | `OK`, `NOT_FOUND` (gRPC); `not_found` (Connect, absent on success) |
/// | `error.type` | call, attempt | the same; absent on success |
/// | `http.request.resend_count` | attempt | 1 for the second attempt; absent for the first |
/// | `network.peer.address`, `network.peer.port` | attempt | `10.1.2.80`, 443 |
/// | `network.protocol.name`, `network.protocol.version` | attempt | `http`, `2` |
/// | `network.transport` | attempt | `tcp`, `quic` (HTTP/3), `unix`, `vsock` |
/// | `http.response.status_code` | attempt | 200 |
/// | `http.request.body.size`, `http.response.body.size` | attempt | 1024 |
///
/// An error sets a span's status to error, with the error's message. The call's span is a child of the request's
/// `context.serviceContext`, or else of the caller's `ServiceContext.current`. With no backend the interceptor has no
/// hooks.
public final class TracingInterceptor: Interceptor {
  /// What spans are made for.
  public struct Spans: OptionSet, Sendable, Hashable {
    public let rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }

    /// The call, from its first attempt to its end.
    public static let call = Spans(rawValue: 1)
    /// Each attempt. An interceptor further inside that answers in place of the network ends the attempt, too. To see
    /// only what goes out, list an interceptor for calls first and one for attempts last.
    public static let attempts = Spans(rawValue: 2)
  }

  private let tracer: any Tracer
  private let instrument: any Instrument
  /// The system of the protocol in which the call begins.
  private var system = RPCSystem.connect
  private let spans: Spans
  /// The context in which the call is made. Factories run in the caller's task.
  private let callersContext: ServiceContext?

  private var callSpan: (any Span)?
  private var attempt: AttemptSpan?
  private var attemptCount = 0
  /// The parent of all attempts, also of an attempt whose request already has the context of an earlier one.
  private var attemptParent: ServiceContext?

  /// An interceptor for one call, as each factory makes it.
  ///
  /// - Parameters:
  ///   - config: The argument of the interceptor factory.
  ///   - tracer: Makes the spans, and writes their context into headers; nil for the tracer of the process, which is
  ///     looked up for each call.
  ///   - spans: What spans are made for.
  public init(
    config: ProtocolClientConfig,
    tracer: (any Tracer)? = nil,
    spans: Spans = [.call, .attempts]
  ) {
    let instrument = tracer ?? InstrumentationSystem.instrument
    self.instrument = instrument
    self.tracer = tracer ?? (instrument is NoOpInstrument ? NoOpTracer() : InstrumentationSystem.tracer)
    self.spans = spans
    self.callersContext = .current
  }

  private var isEnabled: Bool { !(self.instrument is NoOpInstrument) }

  /// Whether the process has a tracer.
  static var hasBackend: Bool { !(InstrumentationSystem.instrument is NoOpInstrument) }

  // MARK: Calls

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    guard self.isEnabled else { return CallFunction() }
    let finish: (CallOutcome) -> Void = { _ in
      self.attempt?.finish()
      self.callSpan?.end()
    }
    guard self.spans.contains(.call) else { return CallFunction(endFunction: finish) }
    return CallFunction(
      requestFunction: { request in self.beginCall(&request, method) },
      outcomeFunction: { outcome in self.endCall(outcome.code, outcome.error) },
      endFunction: finish
    )
  }

  private func beginCall(_ request: inout HTTPRequest<Void>, _ method: MethodInfo) {
    // A retry from the start belongs to the same call.
    let span = self.callSpan ?? self.startSpan(method.path, "", request, self.parent(of: request))
    self.callSpan = span
    request.context.serviceContext = span.context
    if !self.spans.contains(.attempts) { self.inject(span.context, &request) }
  }

  private func endCall(_ code: Code, _ error: ConnectError?) {
    guard let span = self.callSpan.take() else { return }
    self.attemptParent = nil
    span.setOutcome(code, error, self.system)
    span.end()
  }

  // MARK: Attempts

  public func unaryFunction() -> UnaryFunction {
    guard self.spans.contains(.attempts), self.isEnabled else { return UnaryFunction() }
    return UnaryFunction(
      requestFunction: { request, proceed in proceed(.success(self.beginAttempt(request))) },
      responseFunction: { response, proceed in
        self.attempt?.end(response.code, response.error, self.system)
        proceed(response)
      },
      responseMetricsFunction: self.add
    )
    .placed(.userIndependent)
  }

  public func streamFunction() -> StreamFunction {
    guard self.spans.contains(.attempts), self.isEnabled else { return StreamFunction() }
    return StreamFunction(
      requestFunction: { request, proceed in proceed(.success(self.beginAttempt(request))) },
      streamResultFunction: { result, proceed in
        if case .complete(let code, let error, _) = result { self.attempt?.end(code, error, self.system) }
        proceed(result)
      },
      responseMetricsFunction: self.add
    )
  }

  private func beginAttempt<Message>(_ request: HTTPRequest<Message>) -> HTTPRequest<Message> {
    self.attempt?.finish()
    let parent = self.attemptParent ?? self.parent(of: request)
    self.attemptParent = parent
    let span = self.startSpan(request.url.path, " attempt", request, parent)
    if self.attemptCount > 0, span.isRecording {
      span.attributes[SemanticConventions.resendCount] = self.attemptCount
    }
    self.attemptCount += 1
    self.attempt = AttemptSpan(span, to: request.url.origin)
    var request = request
    request.context.serviceContext = span.context
    self.inject(span.context, &request)
    return request
  }

  private func add(_ metrics: HTTPMetrics, _ proceed: Proceed<HTTPMetrics>) {
    // Metrics of an abandoned attempt may arrive when the next attempt has begun.
    if metrics.attempt >= self.attemptCount { self.attempt?.add(metrics) }
    proceed(metrics)
  }

  // MARK: Both

  private func parent<Message>(of request: HTTPRequest<Message>) -> ServiceContext {
    request.context.serviceContext ?? self.callersContext ?? .topLevel
  }

  private func startSpan<Message>(
    _ path: String,
    _ suffix: String,
    _ request: HTTPRequest<Message>,
    _ parent: ServiceContext
  ) -> any Span {
    self.system = RPCSystem(contentType: request.contentType)
    let method = SemanticConventions.methodName(inPath: path)
    let span: any Span = self.tracer.startSpan(
      suffix.isEmpty ? method : method + suffix,
      context: parent,
      ofKind: .client
    )
    guard span.isRecording else { return span }
    let origin = request.url.origin
    span.updateAttributes { attributes in
      attributes[SemanticConventions.system] = self.system.rawValue
      attributes[SemanticConventions.method] = method
      attributes[SemanticConventions.serverAddress] = origin.host
      if let port = origin.serverPort { attributes[SemanticConventions.serverPort] = port }
    }
    return span
  }

  private func inject<Message>(_ context: ServiceContext, _ request: inout HTTPRequest<Message>) {
    self.instrument.inject(context, into: &request.headers, using: HeadersInjector())
  }
}
