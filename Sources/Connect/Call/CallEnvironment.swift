internal import Logging

/// What all calls of a client have in common: the endpoint, the protocol, the codec, and the limits.
final class CallEnvironment: Sendable {
  /// Limits and habits of calls, from the client's configuration.
  struct Settings: Sendable {
    /// How many attempts a call may make beyond the first.
    var maximumRetries: Int
    /// How many bytes of a stream's request messages are kept for another attempt.
    var maximumReplayBytes: Int
    /// How many values of a stream wait at one hook.
    var maximumWaitingValues: Int
    /// How many messages of the caller wait to be sent.
    var maximumQueuedMessages: Int
    /// How long an interceptor may hold a call up before a warning is logged; nil for no warning.
    var holdingPatience: Duration?
    var hedging: (@Sendable (MethodInfo) -> HedgingPolicy?)?
    /// Whether calls wait for a server that can be reached.
    var waitForReady: Bool
  }

  let settings: Settings
  let codec: any Codec
  let wire: any WireProtocol
  let logger: Logger
  /// Distinguishes clients that the transport authenticates to servers; nil if it does not authenticate them.
  let clientIdentity: UInt64?
  /// Where calls live.
  let executor: any CallExecutor
  /// Where tasks of calls run.
  let taskExecutor: any TaskExecutor
  /// Counts the calls here; nil if all calls of the client live here.
  let load: CallLoad?
  let writers: RequestWriters
  let origin: Origin
  /// The service's rules for its methods; nil if the transport knows none.
  let serviceRules: ServiceRules?
  let ruledEndpoint: (any RuledEndpoint)?
  /// Shared by all environments of the client.
  let ruleWarnings: RuleWarnings
  let decoders: DecoderMaker

  private let httpClient: any HTTPClientInterface
  private let pathPrefix: String
  private let endpoint: Result<any HTTPEndpoint, ConnectError>
  private let unaryContentType: String
  /// Of all calls that are not unary.
  private let streamContentType: String
  private let supportsGET: Bool
  private let maximumMetadataSize: Int

  /// - Parameters:
  ///   - executor: The executor of the calls; nil for the transport's choice.
  ///   - load: Counts the calls on the executor.
  ///   - problem: Why no call can be made, even if the host is usable.
  ///   - unaryGET: Whether calls without side effects go as GET.
  init(
    settings: Settings,
    httpClient: any HTTPClientInterface,
    host: String,
    on executor: (any CallExecutor)?,
    load: CallLoad?,
    problem: ConnectError?,
    writers: RequestWriters,
    decoders: DecoderMaker,
    codec: any Codec,
    unaryGET: UnaryGET,
    clientIdentity: UInt64?,
    ruleWarnings: RuleWarnings,
    logger: Logger
  ) {
    self.settings = settings
    self.httpClient = httpClient
    self.codec = codec
    let wire = decoders.wire
    self.wire = wire
    self.load = load
    self.writers = writers
    self.logger = logger
    self.clientIdentity = clientIdentity
    self.ruleWarnings = ruleWarnings
    self.supportsGET = unaryGET != .disabled && wire.supportsGET
    self.unaryContentType = wire.contentType(codecName: codec.name, isUnary: true)
    self.streamContentType = wire.contentType(codecName: codec.name, isUnary: false)
    let parsed: Result<(origin: Origin, pathPrefix: String), ConnectError> = Result {
      () throws(ConnectError) -> (origin: Origin, pathPrefix: String) in
      if let problem { throw problem }
      return try Origin.parse(host: host)
    }
    self.endpoint = parsed.flatMap { Self.endpoint(of: httpClient, for: $0.origin, on: executor, wire: wire) }
    let usable = try? parsed.get()
    self.origin = usable?.origin ?? Origin(scheme: .http, host: host, port: 0)
    self.pathPrefix = usable?.pathPrefix ?? ""
    let usableEndpoint = try? self.endpoint.get()
    self.maximumMetadataSize = usableEndpoint?.maximumHeaderListSize ?? HeaderListSize.defaultLimit
    self.ruledEndpoint = usableEndpoint.flatMap(Self.ruled)
    self.serviceRules = self.ruledEndpoint?.serviceRules
    self.executor = usableEndpoint?.executor ?? PoolExecutor()
    self.taskExecutor = self.executor.taskExecutor ?? CallTaskExecutor(self.executor)
    var decoders = decoders
    decoders.buffers = (self.executor as? any BufferingExecutor)?.bodyBuffers
    self.decoders = decoders
  }

  /// The same environment with another codec.
  init(_ other: CallEnvironment, using codec: any Codec) {
    self.settings = other.settings
    self.httpClient = other.httpClient
    self.codec = codec
    self.wire = other.wire
    self.load = other.load
    self.writers = other.writers.using(codecName: codec.name)
    self.decoders = other.decoders
    self.logger = other.logger
    self.clientIdentity = other.clientIdentity
    self.ruleWarnings = other.ruleWarnings
    self.supportsGET = other.supportsGET
    self.unaryContentType = other.wire.contentType(codecName: codec.name, isUnary: true)
    self.streamContentType = other.wire.contentType(codecName: codec.name, isUnary: false)
    self.endpoint = other.endpoint
    self.origin = other.origin
    self.pathPrefix = other.pathPrefix
    self.maximumMetadataSize = other.maximumMetadataSize
    self.ruledEndpoint = other.ruledEndpoint
    self.serviceRules = other.serviceRules
    self.executor = other.executor
    self.taskExecutor = other.taskExecutor
  }

  private static func ruled(_ endpoint: any HTTPEndpoint) -> (any RuledEndpoint)? {
    (endpoint as? any RuledEndpoint) ?? endpoint.underlying.flatMap(self.ruled)
  }

  /// Why no call can be made, if the host is not usable.
  var hostError: ConnectError? {
    if case .failure(let error) = self.endpoint { error } else { nil }
  }

  /// The endpoint for `origin`, which differs from the client's origin if an interceptor has changed it.
  func endpoint(for origin: Origin) -> Result<any HTTPEndpoint, ConnectError> {
    guard origin != self.origin else { return self.endpoint }
    return Self.endpoint(of: self.httpClient, for: origin, on: self.executor, wire: self.wire)
  }

  /// Asks the transport for an endpoint that meets the protocol's needs.
  private static func endpoint(
    of httpClient: any HTTPClientInterface,
    for origin: Origin,
    on executor: (any CallExecutor)?,
    wire: any WireProtocol
  ) -> Result<any HTTPEndpoint, ConnectError> {
    Result { () throws(ConnectError) in
      try httpClient.endpoint(for: origin, on: executor, requiresHTTP2: wire.requiresHTTP2)
    }
  }

  /// The content type of requests that no interceptor has changed.
  func contentType(of method: MethodInfo) -> String {
    method.streamType == .unary ? self.unaryContentType : self.streamContentType
  }

  /// The request of a call, without its message.
  func makeRequestHead(
    for method: MethodInfo,
    headers: Headers,
    context: CallContext,
    timeout: Duration?,
    retryRules: RetryRules?,
    authority: CallDestination?
  ) -> RequestHead {
    RequestHead(
      url: RequestURL(
        origin: self.origin,
        path: self.pathPrefix.isEmpty ? method.path : self.pathPrefix + method.path
      ),
      contentType: self.contentType(of: method),
      headers: headers,
      trailers: Headers(),
      context: context,
      isGET: self.supportsGET && method.idempotencyLevel == .noSideEffects && method.streamType == .unary,
      timeout: timeout,
      method: method,
      clientIdentity: self.clientIdentity,
      retryRules: retryRules,
      authority: authority
    )
  }

  /// - Parameter maximumMessageSize: In bytes; the client's own limit counts if it is lower.
  func makeDecoder(contentType: String, streamType: StreamType, maximumMessageSize: Int) -> ResponseReader {
    self.decoders.makeDecoder(
      contentType: contentType,
      streamType: streamType,
      maximumMessageSize: maximumMessageSize,
      maximumMetadataSize: self.maximumMetadataSize
    )
  }
}
