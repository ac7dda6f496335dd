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

  /// That of the preferred protocol. Calls in all protocols live on its executor.
  let environment: CallEnvironment
  /// Nil if the client speaks one protocol.
  private let choices: ProtocolChoices?
  /// Whether the interceptors of a call were asked whether the configuration suits them.
  private let hasCheckedInterceptors = Atomic(false)

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
  public var taskExecutor: any TaskExecutor { self.environment.taskExecutor }

  /// - Parameter httpClient: The transport, which may serve several clients.
  public init(httpClient: any HTTPClientInterface, config: ProtocolClientConfig) {
    self.config = config
    let identity =
      httpClient.authenticatesClient ? Self.lastIdentity.wrappingAdd(1, ordering: .relaxed).newValue : nil
    self.clientIdentity = identity
    let ruleWarnings = RuleWarnings()
    var usable: [CallEnvironment] = []
    var unusable: CallEnvironment?
    for wire in config.networkProtocol.wires {
      let environment = config.makeEnvironment(
        wire,
        httpClient,
        clientIdentity: identity,
        ruleWarnings,
        on: usable.first?.executor
      )
      // The HTTP client may not be allowed to speak HTTP/2.
      if environment.hostError == nil {
        usable.append(environment)
      } else {
        unusable = unusable ?? environment
      }
    }
    self.environment =
      usable.first ?? unusable
      ?? config.makeEnvironment(
        config.networkProtocol.wire,
        httpClient,
        clientIdentity: identity,
        ruleWarnings,
        on: nil
      )
    self.choices = usable.count > 1 ? ProtocolChoices(usable) : nil
  }

  // MARK: For calls

  /// Makes a call of a method that starts here and now, in the caller's task.
  ///
  /// - Parameter side: The caller's side of it.
  func makeCall(
    of method: AnyMethod,
    as streamType: StreamType,
    _ options: consuming CallOptions,
    _ side: any CallSide
  ) -> Call {
    let inheritance = self.inherit(into: &options, method: method.info)
    let interceptors = self.makeInterceptors(for: method.info, options: options)
    let environment = self.choices?.current ?? self.environment
    let plan = CallPlan(
      environment: environment,
      choices: self.choices,
      method: method,
      streamType: streamType,
      headers: options.headers,
      context: options.context,
      timeout: options.timeout ?? self.config.timeout,
      hedging: options.hedging,
      waitForReady: options.waitForReady,
      isExplained: options.arrangement != nil,
      inheritance: inheritance,
      writer: environment.writers.writer(isUnary: streamType == .unary, options.requestCompression)
    )
    return Call(plan, interceptors, side)
  }

  /// New interceptors for a call, outermost first.
  private func makeInterceptors(for method: MethodInfo, options: CallOptions) -> [CallHooks.Entry] {
    let interceptors = self.config.makeInterceptors(for: method, options: options)
    if !interceptors.isEmpty, !self.hasCheckedInterceptors.load(ordering: .relaxed) {
      self.check(interceptors)
    }
    guard let arrangement = options.arrangement else { return interceptors }
    return arrangement(interceptors.map(\.interceptor)).map { CallHooks.Entry($0) }
  }

  /// Logs once what in the configuration does not suit the interceptors.
  private func check(_ interceptors: [CallHooks.Entry]) {
    guard !self.hasCheckedInterceptors.exchange(true, ordering: .relaxed) else { return }
    for entry in interceptors {
      guard let checking = entry.interceptor as? any ConfigurationChecking,
        let problem = checking.problem(in: self.config)
      else { continue }
      self.config.logger.warning("\(problem)")
    }
  }
}

extension ProtocolClientConfig {
  /// - Parameter executor: Where calls are to live; nil for where the transport says.
  fileprivate func makeEnvironment(
    _ wire: any WireProtocol,
    _ httpClient: any HTTPClientInterface,
    clientIdentity: UInt64?,
    _ ruleWarnings: RuleWarnings,
    on executor: (any CallExecutor)?
  ) -> CallEnvironment {
    let acceptedEncodings = AcceptedEncodings(self.compression.responses)
    return CallEnvironment(
      settings: self.callSettings,
      httpClient: httpClient,
      host: self.host,
      on: executor,
      problem: self.networkProtocol.problem,
      writers: RequestWriters(
        wire: wire,
        codecName: self.codec.name,
        unaryGET: self.unaryGET,
        compression: self.compression,
        acceptedEncodings: acceptedEncodings,
        maximumMessageSize: self.limits.maximumSentMessageSize
      ),
      decoders: DecoderMaker(
        wire: wire,
        acceptedEncodings: acceptedEncodings,
        maximumMessageSize: self.limits.maximumReceivedMessageSize
      ),
      codec: self.codec,
      unaryGET: self.unaryGET,
      clientIdentity: clientIdentity,
      ruleWarnings: ruleWarnings,
      logger: self.logger
    )
  }

  private var callSettings: CallEnvironment.Settings {
    CallEnvironment.Settings(
      maximumRetries: self.retries.maximumRetries,
      maximumReplayBytes: self.retries.maximumReplayBytes,
      maximumWaitingValues: self.limits.maximumWaitingValues,
      maximumQueuedMessages: self.limits.maximumQueuedMessages,
      holdingPatience: self.hookWarnings.holding,
      hedging: self.hedging,
      waitForReady: self.waitForReady
    )
  }
}
