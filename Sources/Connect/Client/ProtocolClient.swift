internal import Logging
internal import Synchronization

/// Makes calls to one host: the entry to the library.
///
/// ```swift
/// let client = ProtocolClient(
///   httpClient: NIOHTTPClient(),
///   config: ProtocolClientConfig(host: "https://demo.connectrpc.com")
/// )
/// let response = await client.unary(say, SayRequest.with { $0.sentence = "Hello" })
/// ```
///
/// Cheap to keep and meant to be shared; connections are the transport's and are opened by the first call.
public final class ProtocolClient: Sendable {
  public let config: ProtocolClientConfig

  /// A number that no other client of the process has, if the transport tells servers who the client is
  /// (``HTTPClientInterface/authenticatesClient``); else nil. Caches that several clients share keep their responses apart
  /// by it.
  public let clientIdentity: UInt64?
  private static let lastIdentity = Atomic<UInt64>(0)

  private let httpClient: any HTTPClientInterface
  private let origin: Origin
  private let pathPrefix: String
  private let endpoint: Result<any HTTPEndpoint, ConnectError>
  private let unaryWriter: RequestWriter
  private let streamWriter: RequestWriter
  private let unaryContentType: String
  /// Of all calls that are not unary.
  private let streamContentType: String
  private let maximumMetadataSize: Int
  /// Whether the interceptors of a call were asked whether the configuration suits them.
  private let hasCheckedInterceptors = Atomic(false)
  let acceptedEncodings: AcceptedEncodings
  let wire: any WireProtocol
  /// Where this client's calls live.
  let executor: any CallExecutor
  /// Where tasks wait for this client's calls at the least cost: the event loop of its connections. A task that prefers
  /// it changes no thread when it starts a call, nor when the outcome arrives.
  ///
  /// ```swift
  /// try await withTaskExecutorPreference(client.taskExecutor) {
  ///   let response = try await client.unary(say, request).get()
  /// }
  /// ```
  ///
  /// What runs there must not block, nor compute for long: all calls on the loop wait for it.
  public let taskExecutor: any TaskExecutor

  /// - Parameter httpClient: The transport, which may serve several clients.
  public init(httpClient: any HTTPClientInterface, config: ProtocolClientConfig) {
    self.httpClient = httpClient
    self.config = config
    self.clientIdentity =
      httpClient.authenticatesClient ? Self.lastIdentity.wrappingAdd(1, ordering: .relaxed).newValue : nil
    let wire = config.networkProtocol.wire
    self.wire = wire
    let acceptedEncodings = AcceptedEncodings(config.compression.responses)
    self.acceptedEncodings = acceptedEncodings
    self.unaryWriter = config.makeWriter(isUnary: true, acceptedEncodings: acceptedEncodings)
    self.streamWriter = config.makeWriter(isUnary: false, acceptedEncodings: acceptedEncodings)
    self.unaryContentType = wire.contentType(codecName: config.codec.name, isUnary: true)
    self.streamContentType = wire.contentType(codecName: config.codec.name, isUnary: false)
    let host: Result<(origin: Origin, pathPrefix: String), ConnectError> = Result { () throws(ConnectError) in
      try Origin.parse(host: config.host)
    }
    self.endpoint = host.flatMap { host in
      Self.endpoint(of: httpClient, for: host.origin, on: nil, wire: wire)
    }
    let usable = try? host.get()
    self.origin = usable?.origin ?? Origin(scheme: .http, host: config.host, port: 0)
    self.pathPrefix = usable?.pathPrefix ?? ""
    let usableEndpoint = try? self.endpoint.get()
    self.maximumMetadataSize = usableEndpoint?.maximumHeaderListSize ?? HeaderListSize.defaultLimit
    self.executor = usableEndpoint?.executor ?? PoolExecutor()
    self.taskExecutor = self.executor.taskExecutor ?? CallTaskExecutor(self.executor)
  }

  // MARK: For calls

  /// Why no call can be made, if the host is not usable.
  var hostError: ConnectError? {
    if case .failure(let error) = self.endpoint { error } else { nil }
  }

  func url(for method: MethodInfo) -> RequestURL {
    RequestURL(
      origin: self.origin,
      path: self.pathPrefix.isEmpty ? method.path : self.pathPrefix + method.path
    )
  }

  func contentType(for streamType: StreamType) -> String {
    streamType == .unary ? self.unaryContentType : self.streamContentType
  }

  func writer(isUnary: Bool, requestCompression: RequestCompression) -> RequestWriter {
    if case .inherited = requestCompression { return isUnary ? self.unaryWriter : self.streamWriter }
    return self.config.makeWriter(
      isUnary: isUnary,
      requestCompression: requestCompression,
      acceptedEncodings: self.acceptedEncodings
    )
  }

  /// New interceptors for a call, outermost first.
  func makeInterceptors(for method: MethodInfo, options: CallOptions) -> [ResolvedInterceptor] {
    let interceptors = self.config.makeInterceptors(for: method, options: options)
    if !interceptors.isEmpty, !self.hasCheckedInterceptors.load(ordering: .relaxed) {
      self.check(interceptors)
    }
    guard let arrangement = options.arrangement else { return interceptors }
    return arrangement(interceptors.map(\.interceptor)).map { ResolvedInterceptor(interceptor: $0) }
  }

  /// Logs once what in the configuration does not suit the interceptors.
  private func check(_ interceptors: [ResolvedInterceptor]) {
    guard !self.hasCheckedInterceptors.exchange(true, ordering: .relaxed) else { return }
    for interceptor in interceptors {
      guard let checking = interceptor.interceptor as? any ConfigurationChecking,
        let problem = checking.problem(in: self.config)
      else { continue }
      self.config.logger.warning("\(problem)")
    }
  }

  /// How a unary call hedges; nil if it does not.
  func hedgingPolicy(for method: MethodInfo, options: CallOptions) -> HedgingPolicy? {
    guard let policy = options.hedging ?? self.config.hedging?(method), policy.applies(to: method) else {
      return nil
    }
    return policy
  }

  /// The way to `origin`, which is another than the client's if an interceptor has said so.
  func endpoint(for origin: Origin) -> Result<any HTTPEndpoint, ConnectError> {
    guard origin != self.origin else { return self.endpoint }
    return Self.endpoint(of: self.httpClient, for: origin, on: self.executor, wire: self.wire)
  }

  /// The one place where a transport is asked for a way, with what the protocol needs of it.
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

  /// Whether calls of `method` go as GET, if their message is not too large for that.
  func mayUseGET(for method: MethodInfo) -> Bool {
    guard self.config.unaryGET != .disabled else { return false }
    return method.idempotencyLevel == .noSideEffects && method.streamType == .unary && self.wire.supportsGET
  }

  func makeDecoder(contentType: String, streamType: StreamType) -> any ResponseDecoder & AnyObject {
    self.wire.makeDecoder(
      contentType: contentType,
      streamType: streamType,
      maximumMessageSize: self.config.limits.maximumReceivedMessageSize,
      maximumMetadataSize: self.maximumMetadataSize,
      acceptedEncodings: self.acceptedEncodings
    )
  }
}
