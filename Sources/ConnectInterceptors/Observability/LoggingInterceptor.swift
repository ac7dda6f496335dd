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
/// It logs a call once, as its caller saw it, with all its attempts. Lines are written with the request's
/// `context.serviceContext` bound, so that a logger's metadata provider finds the trace, if ``TracingInterceptor`` is
/// further outside. With a logger that has no backend the interceptor has no hooks.
public final class LoggingInterceptor: Interceptor {
  private let log: CallLog

  private var method: MethodInfo?
  /// When the call passed here.
  private var startTime: Duration?
  /// The call's request. Copies cost nothing, and lines read from it only when they are written.
  private var request: HTTPRequest<Void>?
  private var requestHeaders = Headers()
  private var sensitiveHeaders: Set<String> = []

  /// An interceptor for one call, in the form that other interceptors have.
  ///
  /// - Parameters:
  ///   - log: Where the lines go; shared by the interceptors of all calls.
  ///   - config: The argument of the interceptor factory.
  public convenience init(_ log: CallLog, config: ProtocolClientConfig) {
    self.init(log)
  }

  init(_ log: CallLog) {
    self.log = log
  }

  private var system: RPCSystem { RPCSystem(contentType: self.request?.contentType ?? "") }

  // MARK: The call

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    guard self.log.hasBackend else { return CallFunction() }
    self.method = method
    return CallFunction(
      requestFunction: { request in self.begin(request) },
      outcomeFunction: { outcome in self.end(outcome) }
    )
  }

  // MARK: Messages

  public func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard let formatter = self.messageFormatter else { return UnaryMessageFunction() }
    return self.messageHooks(formatter)
  }

  /// Out of line, so that calls whose messages are not logged look up no types.
  @inline(never)
  private func messageHooks<Input, Output>(
    _ formatter: @escaping CallLog.MessageFormatter
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(
      requestFunction: { request, proceed in
        self.log(request.message, "message sent", formatter)
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        if let message = response.message { self.log(message, "message received", formatter) }
        proceed(response)
      }
    )
  }

  public func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    guard let formatter = self.messageFormatter else { return StreamMessageFunction() }
    return StreamMessageFunction(
      requestMessageFunction: { message, proceed in
        self.log(message, "message sent", formatter)
        proceed(message)
      },
      streamResultFunction: { result, proceed in
        if case .message(let message) = result { self.log(message, "message received", formatter) }
        proceed(result)
      }
    )
  }

  private var messageFormatter: CallLog.MessageFormatter? {
    guard let formatter = self.log.options.messageFormatter, self.log.hasBackend,
      self.log.isEnabled(self.log.options.messageLevel)
    else { return nil }
    return formatter
  }

  // MARK: Bytes

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: self.logsHeaders ? self.keepHeaders : nil).placed(.userIndependent)
  }

  public func streamFunction() -> StreamFunction {
    StreamFunction(requestFunction: self.logsHeaders ? self.keepHeaders : nil)
  }

  private var logsHeaders: Bool { self.log.options.logsHeaders && self.log.hasBackend }

  private func keepHeaders<Message, Response>(
    _ request: HTTPRequest<Message>,
    _ proceed: Proceed<RequestVerb<HTTPRequest<Message>, Response>>
  ) {
    self.requestHeaders = request.headers
    self.sensitiveHeaders = request.context[SensitiveHeaders.self]
    proceed(.success(request))
  }

  // MARK: Lines

  private func begin(_ request: HTTPRequest<Void>) {
    // A retry from the start belongs to the same call.
    guard self.startTime == nil else { return }
    self.startTime = self.log.now
    self.request = request
    self.write(.start, self.log.options.startLevel, "call started")
  }

  private func end(_ outcome: CallOutcome) {
    guard let start = self.startTime else { return }
    self.startTime = nil
    let error = outcome.error
    let level = error.map { self.log.options.failureLevel($0) } ?? self.log.options.successLevel
    self.write(
      error == nil ? .success : .failure,
      level,
      error == nil ? "call completed" : "call failed"
    ) { metadata in
      metadata["duration_ms"] = "\((self.log.now - start).milliseconds)"
      if let status = self.system.statusCode(outcome.code) {
        metadata[SemanticConventions.statusCode] = "\(status)"
      }
      if let message = error?.message { metadata["error"] = "\(self.log.cut(message))" }
      if self.method?.streamType != .unary {
        metadata["messages.sent"] = "\(outcome.messagesSent)"
        metadata["messages.received"] = "\(outcome.messagesReceived)"
      }
      if let exchange = outcome.exchange {
        metadata["attempts"] = "\(outcome.attempts)"
        Self.add(exchange, to: &metadata)
      }
      if self.log.options.logsHeaders {
        let secrets = self.sensitiveHeaders
        self.log.add(
          self.requestHeaders,
          as: SemanticConventions.requestMetadata,
          redacting: secrets,
          to: &metadata
        )
        var received = outcome.headers
        received.append(contentsOf: outcome.trailers)
        self.log.add(received, as: SemanticConventions.responseMetadata, redacting: secrets, to: &metadata)
      }
    }
  }

  private func log(
    _ message: some Sendable,
    _ text: Logger.Message,
    _ formatter: CallLog.MessageFormatter
  ) {
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
        if let request = self.request {
          metadata[SemanticConventions.serverAddress] = "\(request.url.host)"
          if let port = request.url.origin.serverPort { metadata[SemanticConventions.serverPort] = "\(port)" }
          if let id = request.context.requestID { metadata["request.id"] = "\(self.log.cut(id))" }
        }
        add(&metadata)
        return metadata
      }
    }
    let request = self.request
    if let context = request?.context.serviceContext {
      ServiceContext.withValue(context, operation: write)
    } else {
      write()
    }
  }

  private static func add(_ exchange: CallOutcome.Exchange, to metadata: inout Logger.Metadata) {
    metadata[SemanticConventions.requestBodySize] = "\(exchange.requestBodyBytes)"
    metadata[SemanticConventions.responseBodySize] = "\(exchange.responseBodyBytes)"
    if let status = exchange.httpStatus { metadata[SemanticConventions.httpStatus] = "\(status)" }
    if let peer = exchange.peer { metadata[SemanticConventions.peerAddress] = "\(peer.address)" }
  }
}
