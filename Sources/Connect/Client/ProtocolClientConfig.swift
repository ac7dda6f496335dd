public import Logging

/// How a ``ProtocolClient`` makes its calls.
public struct ProtocolClientConfig: Sendable {
  /// `http://host:port`, `https://host:port`, `unix:/path`, `unix-abstract:NAME` or `vsock:CID:PORT`, with an optional
  /// base path for the first two. An unusable host makes each call fail with `invalid_argument`.
  public var host: String
  /// The protocol on the wire, or several protocols from which the client selects the first that works.
  public var networkProtocol: NetworkProtocol
  /// The encoding of messages.
  public var codec: any Codec
  /// Factories of the interceptors of all calls, outermost first. Those of the process (``ClientSystem``) are outside of them.
  public var interceptors: [InterceptorFactory]
  /// Factories of further interceptors of a method's calls, inside those of the client or in their place.
  public var methodInterceptors: (@Sendable (MethodInfo) -> MethodInterceptors)?
  /// Chooses further interceptors of a call by its request, inside those of the client and the method or in their place.
  public var interceptorProvider: (any InterceptorProvider)?
  /// How the messages of a method are coded, where it differs from ``codec``; a call's options come first.
  public var methodFormats: (@Sendable (MethodInfo) -> MethodFormat?)?
  /// The time that a call may take, from its start to its end, unless its options say otherwise; nil for no
  /// limit. More than 100 years count as 100 years, as in all durations that are given to the library.
  public var timeout: Duration?
  /// How request messages are compressed, and which compressions are accepted in responses. A call's options may
  /// choose another compression for its request.
  public var compression: Compression
  /// Whether calls without side effects go as HTTP GET, which caches understand.
  public var unaryGET: UnaryGET
  /// Bounds on the size of messages and on what waits in a stream.
  public var limits: Limits
  /// Bounds on the attempts that interceptors start.
  public var retries: Retries
  /// Carry task-local values from a caller's task to the hooks of its calls, besides ``CallContext/current``.
  public var contextPropagators: [any ContextPropagator]
  /// Time subtracted from an inherited deadline (``CallContext/deadline``), so that the caller can still respond. At
  /// least zero.
  public var deadlineMargin: Duration
  /// How unary calls of a method hedge; nil for what the service config says, which is mostly nothing. Called when a
  /// request goes out, on the call's executor. Only methods without side effects are hedged, unless the policy says
  /// otherwise.
  public var hedging: (@Sendable (MethodInfo) -> HedgingPolicy?)?
  /// Whether calls wait, until their deadline, for a server that can be reached, unless their options say otherwise. False by
  /// default: calls fail with `unavailable` as soon as no server can be reached, with the last connection error (gRPC's wait
  /// for ready).
  public var waitForReady: Bool
  /// When the ``logger`` warns of interceptors that hold calls up.
  public var hookWarnings: HookWarnings
  /// Logs what no call's error reports: problems of the client's configuration or of a service config, slow hooks, and
  /// the protocol that was found. By default nothing is logged.
  public var logger: Logger
  /// Factories of the interceptors of all clients, outside of all others. Set when a client is made, so that a copy of the
  /// configuration of another client does not have them twice.
  var processInterceptors: [InterceptorFactory] = []

  /// A configuration for calls to `host`. All else has a default: the Connect protocol, protobuf's binary encoding, no
  /// interceptors, no time limit, no GET, no hedging. Requests are not compressed, and responses may be in gzip.
  ///
  /// - Parameters:
  ///   - host: See ``host``. It is not checked here: each call fails with
  ///     `invalid_argument` if it cannot be used.
  ///   - networkProtocol: See ``networkProtocol``; the Connect protocol by default.
  ///   - codec: See ``codec``; protobuf's binary encoding by default.
  ///   - interceptors: See ``interceptors``; none by default.
  ///   - methodInterceptors: See ``methodInterceptors``; nil, the default, for none.
  ///   - interceptorProvider: See ``interceptorProvider``; nil, the default, for none.
  ///   - methodFormats: See ``methodFormats``; nil, the default, for ``codec`` in all calls.
  ///   - timeout: See ``timeout``; nil, the default, for no limit.
  ///   - compression: See ``compression``; ``Compression/defaults`` by default.
  ///   - unaryGET: See ``unaryGET``; disabled by default.
  ///   - limits: See ``limits``; ``Limits/defaults`` by default.
  ///   - retries: See ``retries``; ``Retries/defaults`` by default.
  ///   - contextPropagators: See ``contextPropagators``; none by default.
  ///   - deadlineMargin: See ``deadlineMargin``; 10 milliseconds by default.
  ///   - hedging: See ``hedging``; nil, the default, for what the service config says.
  ///   - waitForReady: See ``waitForReady``; false by default.
  ///   - hookWarnings: See ``hookWarnings``; ``HookWarnings/defaults`` by default.
  ///   - logger: See ``logger``; nothing is logged by default.
  public init(
    host: String,
    networkProtocol: NetworkProtocol = .connect,
    codec: any Codec = ProtoCodec(),
    interceptors: [InterceptorFactory] = [],
    methodInterceptors: (@Sendable (MethodInfo) -> MethodInterceptors)? = nil,
    interceptorProvider: (any InterceptorProvider)? = nil,
    methodFormats: (@Sendable (MethodInfo) -> MethodFormat?)? = nil,
    timeout: Duration? = nil,
    compression: Compression = .defaults,
    unaryGET: UnaryGET = .disabled,
    limits: Limits = .defaults,
    retries: Retries = .defaults,
    contextPropagators: [any ContextPropagator] = [],
    deadlineMargin: Duration = .milliseconds(10),
    hedging: (@Sendable (MethodInfo) -> HedgingPolicy?)? = nil,
    waitForReady: Bool = false,
    hookWarnings: HookWarnings = .defaults,
    logger: Logger = Logger(label: "connect", factory: { _ in SwiftLogNoOpLogHandler() })
  ) {
    self.host = host
    self.networkProtocol = networkProtocol
    self.codec = codec
    self.interceptors = interceptors
    self.methodInterceptors = methodInterceptors
    self.interceptorProvider = interceptorProvider
    self.methodFormats = methodFormats
    self.timeout = timeout
    self.compression = compression
    self.unaryGET = unaryGET
    self.limits = limits
    self.retries = retries
    self.contextPropagators = contextPropagators
    self.deadlineMargin = deadlineMargin
    self.hedging = hedging
    self.waitForReady = waitForReady
    self.hookWarnings = hookWarnings
    self.logger = logger
  }
}

extension ProtocolClientConfig {
  /// Bounds on what one call may hold.
  public struct Limits: Sendable, Hashable {
    /// The largest message that is received, in bytes, after decompression. A larger one fails the call with
    /// `resource_exhausted` before it is buffered, or while it is decompressed.
    public var maximumReceivedMessageSize: Int
    /// The largest message that is sent, in bytes, before compression; nil for no limit. A larger one fails the
    /// call with `resource_exhausted`, and nothing of it is sent.
    public var maximumSentMessageSize: Int?
    /// How many values of a stream wait at a hook that has not yet proceeded with an earlier value. Beyond this, the
    /// stream is held back. At least 2, so that a hook can hold headers back until the first message.
    public var maximumWaitingValues: Int
    /// How many messages the callback form of a stream may have sent that were not yet accepted. Beyond, a
    /// send fails with `resource_exhausted`. At least 1.
    public var maximumQueuedMessages: Int

    /// Limits as given; those of ``defaults`` where none is given.
    public init(
      maximumReceivedMessageSize: Int = 4 * 1024 * 1024,
      maximumSentMessageSize: Int? = nil,
      maximumWaitingValues: Int = 16,
      maximumQueuedMessages: Int = 1024
    ) {
      self.maximumReceivedMessageSize = maximumReceivedMessageSize
      self.maximumSentMessageSize = maximumSentMessageSize
      self.maximumWaitingValues = maximumWaitingValues
      self.maximumQueuedMessages = maximumQueuedMessages
    }

    /// 4 MiB for a received message, no limit for a sent one, 16 waiting values, 1,024 queued messages.
    public static var defaults: Limits { Limits() }
  }

  /// Bounds on the attempts that interceptors start.
  public struct Retries: Sendable, Hashable {
    /// How many attempts a call may make beyond the first, by all interceptors together. Hedges are not counted: their
    /// own limit is ``HedgingPolicy/maximumAttempts``.
    public var maximumRetries: Int
    /// How many bytes of a stream's request messages are kept, so that a retry can send them again. A stream
    /// that has sent more, or more than 1,024 messages, is not retried.
    public var maximumReplayBytes: Int

    /// Bounds as given; those of ``defaults`` where none is given.
    public init(maximumRetries: Int = 3, maximumReplayBytes: Int = 256 * 1024) {
      self.maximumRetries = maximumRetries
      self.maximumReplayBytes = maximumReplayBytes
    }

    /// 3 retries, 256 KiB.
    public static var defaults: Retries { Retries() }
  }
}

extension ProtocolClientConfig {
  func mayHaveInterceptors(_ options: CallOptions) -> Bool {
    !self.interceptors.isEmpty || self.methodInterceptors != nil || !options.interceptors.isEmpty
      || !self.processInterceptors.isEmpty
  }

  /// New interceptors for a call, outermost first.
  ///
  /// - Parameters:
  ///   - provided: What the ``interceptorProvider`` has chosen; nil without one.
  ///   - processCount: Is set to the number of those that all clients of the process have. They come first.
  func makeInterceptors(
    for method: MethodInfo,
    options: CallOptions,
    provided: MethodInterceptors?,
    processCount: inout Int
  ) -> [CallHooks.Entry] {
    guard provided != nil || self.mayHaveInterceptors(options) else { return [] }
    var interceptors: [CallHooks.Entry] = []
    interceptors.reserveCapacity(
      self.processInterceptors.count + self.interceptors.count + options.interceptors.count
    )
    self.append(self.processInterceptors, to: &interceptors)
    processCount = interceptors.count
    switch provided {
    case nil:
      self.appendOwn(for: method, to: &interceptors)
    case .adding(let factories):
      self.appendOwn(for: method, to: &interceptors)
      self.append(factories, to: &interceptors)
    case .replacing(let factories):
      self.append(factories, to: &interceptors)
    }
    self.append(options.interceptors, to: &interceptors)
    return interceptors
  }

  /// Those of the client and the method.
  private func appendOwn(for method: MethodInfo, to interceptors: inout [CallHooks.Entry]) {
    switch self.methodInterceptors?(method) {
    case nil:
      self.append(self.interceptors, to: &interceptors)
    case .adding(let factories):
      self.append(self.interceptors, to: &interceptors)
      self.append(factories, to: &interceptors)
    case .replacing(let factories):
      self.append(factories, to: &interceptors)
    }
  }

  private func append(_ factories: [InterceptorFactory], to interceptors: inout [CallHooks.Entry]) {
    for factory in factories {
      // Appended before the check: a local variable would copy the entry.
      interceptors.append(CallHooks.Entry(factory(self)))
      if interceptors[interceptors.count - 1].isNone { interceptors.removeLast() }
    }
  }
}
