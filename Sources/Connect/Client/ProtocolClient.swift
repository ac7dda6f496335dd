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
  /// The configuration that the client was created with.
  public let config: ProtocolClientConfig

  /// A number unique in the process, if the transport authenticates the client to servers
  /// (``HTTPClientInterface/authenticatesClient``); else nil. A cache that several clients share uses this number to
  /// keep their responses apart.
  package let clientIdentity: UInt64?
  private static let lastIdentity = Atomic<UInt64>(0)

  private let shards: ClientShards
  /// Whether methods may have other formats than the client's. Stored, as is the next: a look into the configuration would copy
  /// what is there.
  private let hasMethodFormats: Bool
  /// Whether an ``InterceptorProvider`` is asked.
  private let hasProvider: Bool
  /// Whether interceptors have been asked if the configuration suits them.
  private let hasCheckedInterceptors = Atomic(false)

  /// Where tasks wait for this client's calls at the least cost: the event loop of its connections. A task that prefers
  /// it changes no thread when it starts a call, nor when the outcome arrives.
  ///
  /// ```swift
  /// let response = try await withTaskExecutorPreference(client.taskExecutor) {
  ///   try await client.unary(say, request).get()
  /// }
  /// ```
  ///
  /// Tasks on this executor must not block, nor compute for long: all calls on the loop wait for them. Where the
  /// transport spreads calls over several event loops, this is the first loop; ``taskExecutors`` has all of them.
  public var taskExecutor: any TaskExecutor { self.shards.first.environment.taskExecutor }

  /// The executors of all event loops on which calls of this client live. There is more than one only if the transport
  /// says so (``HTTPClientInterface/executors``). A call that is made on one of these loops lives there.
  public var taskExecutors: [any TaskExecutor] { self.shards.all.map(\.environment.taskExecutor) }

  /// A client that makes its calls over `httpClient`. It opens no connection. A configuration that cannot be used
  /// fails each call; see ``ProtocolClientConfig/host``.
  ///
  /// - Parameters:
  ///   - httpClient: The transport, which may serve several clients.
  ///   - config: The host and how calls are made. It holds for the client's whole life.
  public init(httpClient: any HTTPClientInterface, config: ProtocolClientConfig) {
    var config = config
    let isTestDouble = (httpClient as? any TestDouble)?.isTestDouble ?? false
    config.processInterceptors =
      ClientRegistry.current.settings(isTestDouble: isTestDouble)?.interceptors ?? []
    self.config = config
    let identity =
      httpClient.authenticatesClient ? Self.lastIdentity.wrappingAdd(1, ordering: .relaxed).newValue : nil
    self.clientIdentity = identity
    self.hasMethodFormats = config.methodFormats != nil
    self.hasProvider = config.interceptorProvider != nil
    self.shards = ClientShards(config, httpClient, clientIdentity: identity)
  }

  // MARK: For calls

  /// Makes a call of a method. Must be called in the caller's task.
  ///
  /// - Parameter side: The caller's side of the call.
  func makeCall(
    of method: AnyMethod,
    as streamType: StreamType,
    _ options: consuming CallOptions,
    _ side: any CallSide
  ) -> Call {
    let shard = self.shards.take()
    let format =
      self.hasMethodFormats || options.hasFormat
      ? CallFormat.make(self.config, method.info, options, shard) : nil
    let choices = format == nil ? shard.choices : format?.choices
    let environment = format?.environment ?? shard.choices?.current ?? shard.environment
    let inheritance = self.inherit(into: &options, method: method.info, on: environment.executor)
    let provided =
      self.hasProvider ? ProviderVisitor.ask(self.config, method, options, side, environment) : nil
    let interceptors = self.makeInterceptors(for: method.info, options: options, provided)
    let plan = CallPlan(
      environment: environment,
      choices: choices,
      method: method,
      streamType: streamType,
      headers: options.headers,
      context: options.context,
      timeout: options.timeout ?? self.config.timeout,
      waitForReady: options.waitForReady,
      rare: options.rare,
      isExplained: options.arrangement != nil,
      inheritance: inheritance,
      parser: format?.parser,
      writer: environment.writers.writer(isUnary: streamType == .unary, options.requestCompression)
    )
    return Call(plan, interceptors, side)
  }

  /// New interceptors for a call, outermost first.
  private func makeInterceptors(
    for method: MethodInfo,
    options: CallOptions,
    _ provided: MethodInterceptors?
  ) -> [CallHooks.Entry] {
    var processCount = 0
    let interceptors = self.config.makeInterceptors(
      for: method,
      options: options,
      provided: provided,
      processCount: &processCount
    )
    if !interceptors.isEmpty, !self.hasCheckedInterceptors.load(ordering: .relaxed) {
      self.check(interceptors, processCount: processCount)
    }
    guard let arrangement = options.arrangement else { return interceptors }
    return arrangement(interceptors.map(\.interceptor)).map { CallHooks.Entry($0) }
  }

  /// Logs once what in the configuration does not suit the interceptors.
  ///
  /// - Parameter processCount: How many of them, at the start, all clients of the process have.
  private func check(_ interceptors: [CallHooks.Entry], processCount: Int) {
    guard !self.hasCheckedInterceptors.exchange(true, ordering: .relaxed) else { return }
    for (index, entry) in interceptors.enumerated() {
      guard let checking = entry.interceptor as? any ConfigurationChecking,
        index >= processCount || checking.suitsEachClient,
        let problem = checking.problem(in: self.config)
      else { continue }
      self.config.logger.warning("\(problem)")
    }
  }
}
