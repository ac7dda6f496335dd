public import Connect
internal import Logging
internal import ServiceContextModule

/// Logs calls into a ``CallLog``: their end, and if asked for their start, headers and messages.
///
/// ```swift
/// let log = CallLog(logger: Logger(label: "calls"))
/// let config = ProtocolClientConfig(
///   host: "https://api.example.com",
///   interceptors: [{ LoggingInterceptor(log, config: $0) }]
/// )
/// ```
///
/// Outside of what retries, it logs a call once, as its caller saw it; inside, each attempt. Lines are written with the
/// request's `context.serviceContext` bound, so that a logger's metadata provider finds the trace, if
/// ``TracingInterceptor`` is further outside. With a logger that has no backend the interceptor has no hooks.
public final class LoggingInterceptor: Interceptor {
  private let log: CallLog
  private let system: RPCSystem

  private var method: MethodInfo?
  private var start: Duration?
  private var server: Origin?
  private var context: ServiceContext?
  private var requestID: String?
  private var sentCount = 0
  private var receivedCount = 0
  private var requestHeaders = Headers()
  private var sensitiveHeaders: Set<String> = []
  private var responseHeaders = Headers()
  private var metrics: HTTPMetrics?

  public init(_ log: CallLog, config: ProtocolClientConfig) {
    self.log = log
    self.system = RPCSystem(config.networkProtocol)
  }

  // MARK: Messages

  public func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard self.log.hasBackend else { return UnaryMessageFunction() }
    self.method = method.info
    return UnaryMessageFunction(
      requestFunction: { request, proceed in
        self.begin(request)
        self.logMessage(request.message, "message sent")
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        if self.log.options.messageFormatter != nil, let message = response.message {
          self.logMessage(message, "message received")
        }
        self.end(response.code, response.error, response.headers, response.trailers)
        proceed(response)
      }
    )
  }

  public func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    guard self.log.hasBackend else { return StreamMessageFunction() }
    self.method = method.info
    return StreamMessageFunction(
      requestFunction: { request, proceed in
        self.begin(request)
        proceed(.success(request))
      },
      requestMessageFunction: { message, proceed in
        self.sentCount += 1
        self.logMessage(message, "message sent")
        proceed(message)
      },
      streamResultFunction: { result, proceed in
        switch result {
        case .headers(let headers):
          if self.log.options.logsHeaders { self.responseHeaders = headers }
        case .message(let message):
          self.receivedCount += 1
          self.logMessage(message, "message received")
        case .complete(let code, let error, let trailers):
          self.end(code, error, self.responseHeaders, trailers)
        }
        proceed(result)
      }
    )
  }

  // MARK: Bytes

  public func unaryFunction() -> UnaryFunction {
    guard self.log.hasBackend else { return UnaryFunction() }
    return UnaryFunction(
      requestFunction: self.log.options.logsHeaders ? self.keepHeaders : nil,
      responseMetricsFunction: self.keep
    )
  }

  public func streamFunction() -> StreamFunction {
    guard self.log.hasBackend else { return StreamFunction() }
    return StreamFunction(
      requestFunction: self.log.options.logsHeaders ? self.keepHeaders : nil,
      responseMetricsFunction: self.keep
    )
  }

  private func keepHeaders<Message, Response>(
    _ request: HTTPRequest<Message>,
    _ proceed: Proceed<RequestVerb<HTTPRequest<Message>, Response>>
  ) {
    self.requestHeaders = request.headers
    self.sensitiveHeaders = request.context[SensitiveHeaders.self]
    proceed(.success(request))
  }

  private func keep(_ metrics: HTTPMetrics, _ proceed: Proceed<HTTPMetrics>) {
    self.metrics = metrics
    proceed(metrics)
  }

  // MARK: Lines

  private func begin<Message>(_ request: HTTPRequest<Message>) {
    let isFirst = self.start == nil
    // Another attempt of the call comes here without an end before: it belongs to the same duration.
    if isFirst {
      self.start = self.log.now
      self.metrics = nil
    }
    self.server = request.url.origin
    self.context = request.context.serviceContext
    self.requestID = request.context.requestID
    self.sentCount = 0
    self.receivedCount = 0
    self.responseHeaders = Headers()
    self.write(.start, self.log.options.startLevel, isFirst ? "call started" : "call started again")
  }

  private func end(
    _ code: Code,
    _ error: ConnectError?,
    _ headers: Headers,
    _ trailers: Headers
  ) {
    guard let start = self.start else { return }
    self.start = nil
    let level = error.map { self.log.options.failureLevel($0) } ?? self.log.options.successLevel
    self.write(
      error == nil ? .success : .failure,
      level,
      error == nil ? "call completed" : "call failed"
    ) { metadata in
      metadata["duration_ms"] = "\((self.log.now - start).milliseconds)"
      if let status = self.system.statusCode(code) { metadata[SemanticConventions.statusCode] = "\(status)" }
      if let message = error?.message { metadata["error"] = "\(self.log.cut(message))" }
      if self.method?.streamType != .unary {
        metadata["messages.sent"] = "\(self.sentCount)"
        metadata["messages.received"] = "\(self.receivedCount)"
      }
      if let metrics = self.metrics { Self.add(metrics, to: &metadata) }
      if self.log.options.logsHeaders {
        let secrets = self.sensitiveHeaders
        self.log.add(
          self.requestHeaders,
          as: SemanticConventions.requestMetadata,
          redacting: secrets,
          to: &metadata
        )
        var received = headers
        received.append(contentsOf: trailers)
        self.log.add(received, as: SemanticConventions.responseMetadata, redacting: secrets, to: &metadata)
      }
    }
  }

  private func logMessage(_ message: some Sendable, _ text: Logger.Message) {
    guard let formatter = self.log.options.messageFormatter else { return }
    self.write(.message, self.log.options.messageLevel, text) { metadata in
      metadata["message"] = "\(self.log.cut(formatter(message)))"
    }
  }

  private func write(
    _ event: CallLog.Event,
    _ level: Logger.Level?,
    _ text: Logger.Message,
    _ add: (inout Logger.Metadata) -> Void = { _ in }
  ) {
    guard self.log.isEnabled(level) else { return }
    func write() {
      self.log.write(event, level, text) {
        var metadata: Logger.Metadata = [
          SemanticConventions.system: "\(self.system.rawValue)",
          SemanticConventions.method: "\(SemanticConventions.methodName(inPath: self.method?.path ?? ""))",
        ]
        if let server = self.server {
          metadata[SemanticConventions.serverAddress] = "\(server.host)"
          if let port = server.serverPort { metadata[SemanticConventions.serverPort] = "\(port)" }
        }
        if let id = self.requestID { metadata["request.id"] = "\(self.log.cut(id))" }
        add(&metadata)
        return metadata
      }
    }
    if let context = self.context { ServiceContext.withValue(context, operation: write) } else { write() }
  }

  private static func add(_ metrics: HTTPMetrics, to metadata: inout Logger.Metadata) {
    metadata["attempts"] = "\(metrics.attempt)"
    metadata[SemanticConventions.requestBodySize] = "\(metrics.requestBodyBytes)"
    metadata[SemanticConventions.responseBodySize] = "\(metrics.responseBodyBytes)"
    if let status = metrics.httpStatus { metadata[SemanticConventions.httpStatus] = "\(status)" }
    if let peer = metrics.connection?.peer { metadata[SemanticConventions.peerAddress] = "\(peer.address)" }
  }
}
