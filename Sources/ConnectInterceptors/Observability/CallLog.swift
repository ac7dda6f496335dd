internal import Connect
public import Logging
internal import Synchronization

/// The log of a client's calls, with swift-log. Made once; ``LoggingInterceptor`` writes into it.
///
/// Lines are short and constant ("call completed", "call failed", …). Their metadata say what they are about, with the
/// names of OpenTelemetry's semantic conventions where there are any:
///
/// | metadata | for example |
/// | --- | --- |
/// | `rpc.system.name` | `connectrpc`; `grpc` for gRPC and gRPC-Web |
/// | `rpc.method` | `connectrpc.eliza.v1.ElizaService/Say` |
/// | `server.address`, `server.port` | `demo.connectrpc.com`, `443` |
/// | `request.id` | the context's `requestID`, if ``ContextInterceptor`` or the caller has set it |
/// | `rpc.response.status_code` | `OK`, `NOT_FOUND` (gRPC); `not_found` (Connect, absent on success) |
/// | `error` | the error's message |
/// | `duration_ms` | `12.345` |
/// | `attempts` | `2`; absent if nothing went to the network |
/// | `messages.sent`, `messages.received` | for streams |
/// | `message` | what the formatter has made of a message |
/// | `http.response.status_code`, `http.request.body.size`, `http.response.body.size`, `network.peer.address` | of the last attempt that has ended |
/// | `rpc.request.metadata.<name>`, `rpc.response.metadata.<name>` | headers and trailers, if asked for |
/// | `suppressed` | how many such lines were left out before this one, by sampling |
public final class CallLog: Sendable {
  /// The kinds of lines, which are sampled separately.
  enum Event: Int, CaseIterable {
    case start, message, success, failure
  }

  let logger: Logger
  let options: Options
  /// Whether anything is written at all.
  let hasBackend: Bool
  /// The logger's handler, for its level: `logger.handler` makes a copy each time.
  private let handler: any LogHandler
  private let time: ElapsedTime
  private let samplers = Mutex([LogSampler](repeating: LogSampler(), count: Event.allCases.count))

  /// A log for the calls of a client, or of several.
  ///
  /// - Parameters:
  ///   - logger: Where lines go. Its level decides which.
  ///   - options: What is logged, and at which level.
  ///   - clock: What durations, and the intervals of sampling, are measured with.
  public init(
    logger: Logger,
    options: Options = .defaults,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.logger = logger
    self.handler = logger.handler
    self.hasBackend = !(logger.handler is SwiftLogNoOpLogHandler)
    self.options = options
    self.time = ElapsedTime(on: clock)
  }

  var now: Duration { self.time.now }

  /// Whether lines of a level are written.
  func isEnabled(_ level: Logger.Level?) -> Bool {
    guard let level else { return false }
    return self.handler.logLevel <= level
  }

  /// Writes a line, if its level is enabled and it is its turn.
  func write(
    _ event: Event,
    _ level: Logger.Level?,
    _ text: Logger.Message,
    _ metadata: () -> Logger.Metadata
  ) {
    guard let level, self.isEnabled(level) else { return }
    var suppressed = 0
    if let sampling = self.options.sampling {
      let now = self.time.now
      guard let count = self.samplers.withLock({ $0[event.rawValue].take(sampling, at: now) }) else { return }
      suppressed = count
    }
    var metadata = metadata()
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    self.logger.log(level: level, text, metadata: metadata)
  }

  /// Adds headers, redacted and cut.
  ///
  /// - Parameter names: Headers to redact besides those of ``Options/redactedHeaders``.
  func add(
    _ headers: Headers,
    as prefix: String,
    redacting names: Set<String>,
    to metadata: inout Logger.Metadata
  ) {
    var values: [String: [String]] = [:]
    for field in headers {
      values[field.name, default: []].append(
        names.contains(field.name) || self.options.redactedHeaders.contains(field.name)
          ? "<redacted>" : self.cut(field.value)
      )
    }
    for (name, values) in values {
      metadata[prefix + name] = values.count == 1 ? "\(values[0])" : .array(values.map { "\($0)" })
    }
  }

  /// `text`, or its beginning if it is too long.
  func cut(_ text: String) -> String {
    let maximum = max(self.options.maximumLength, 0)
    guard text.utf8.count > maximum, text.count > maximum else { return text }
    return text.prefix(maximum) + "…"
  }
}
