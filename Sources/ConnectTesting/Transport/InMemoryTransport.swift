public import Connect
public import ConnectChannels
internal import Logging
internal import Synchronization

/// A transport without sockets: functions answer the calls, by path, in the same process.
///
/// All else is real: interceptors, codecs, compression, framing, flow control and cancellation, in each of the
/// protocols. Calls to any host are served, below any base path. By default one server answers them; a channel with a resolver
/// brings several (see ``init(executor:codecs:requestCompressions:responseCompression:window:channel:)``).
///
/// ```swift
/// let transport = InMemoryTransport()
/// transport.onUnary(say) { request, context in
///   context.responseHeaders["x-served-by"] = ["memory"]
///   return .with { $0.sentence = "You said \(request.sentence)" }
/// }
/// let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "http://memory"))
/// ```
///
/// An error that a handler throws fails the call: a `ConnectError` with its details and metadata, any other error as
/// `internal`. When the client cancels a call, the handler's task is cancelled. A method without a handler fails with
/// `unimplemented`, and its name in the message.
///
/// Handlers run on the call's executor, one at a time between their suspensions; they must not block.
public final class InMemoryTransport: HTTPClientInterface, TestDouble {
  /// Answers a request in any way that HTTP allows.
  public typealias RawHandler = @Sendable (any ServerExchange) async throws -> Void

  private struct ChannelKey: Hashable {
    var origin: Origin
    var requiresHTTP2: Bool
  }

  private struct State {
    var channels = ChannelTable<ChannelKey>()
    var channelCount: UInt64 = 0
  }

  /// Where calls, and the handlers, run.
  public let executor: any CallExecutor
  private let server: InMemoryServer
  let network: InMemoryNetwork
  private let channel: ChannelConfiguration
  private let state = Mutex(State())

  /// A transport without handlers: calls fail with `unimplemented`.
  ///
  /// - Parameters:
  ///   - executor: Where calls run, and their clock; nil for a new one in real time.
  ///   - codecs: Codecs besides protobuf and JSON, or in their place.
  ///   - requestCompressions: The compressions that requests may be in. Others fail with `unimplemented`.
  ///   - responseCompression: Compresses the messages of responses, if the client accepts that; nil for none.
  ///   - window: How many bytes of one direction of a stream may be in flight, as in a window of HTTP/2. A handler that
  ///     sends more waits until the client has taken some, and the other way round.
  ///   - channel: How the transport finds its servers and spreads calls over them, as in `NIOHTTPClient`. The default has
  ///     one server and no idle timeout, and sets no timers, which tests in virtual time would see. With a resolver, each of
  ///     its addresses is a server, and ``ServerContext/serverAddress`` tells handlers which. Random choices of channels
  ///     are the same in each run.
  public init(
    executor: (any CallExecutor)? = nil,
    codecs: [any Codec] = [],
    requestCompressions: [any CompressionPool] = [GzipCompressionPool(), DeflateCompressionPool()],
    responseCompression: (any CompressionPool)? = nil,
    window: Int = 65535,
    channel: ChannelConfiguration = ChannelConfiguration(idleTimeout: .seconds(Int64.max))
  ) {
    let executor = executor ?? RealTimeExecutor()
    self.executor = executor
    self.server = InMemoryServer(
      on: executor,
      options: ServerOptions(
        codecs: codecs + [ProtoCodec(), JSONCodec()],
        requestCompressions: requestCompressions,
        responseCompression: responseCompression
      ),
      window: max(window, 1)
    )
    self.network = InMemoryNetwork(self.server)
    self.channel = channel
  }

  deinit {
    for channel in self.state.withLock({ $0.channels.all }) { channel.closeWhenIdle() }
  }

  // MARK: Handlers

  /// Answers the calls of a unary method, from now on.
  public func onUnary<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ handler: @escaping UnaryHandler<Input, Output>
  ) {
    self.serve(ServerMethod(method, StreamForm.unary(handler)))
  }

  /// Answers the calls of a method that answers a message with a stream, from now on.
  public func onServerStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ handler: @escaping ServerStreamHandler<Input, Output>
  ) {
    self.serve(ServerMethod(method, StreamForm.serverStream(handler)))
  }

  /// Answers the calls of a method that answers a stream with a message, from now on.
  public func onClientStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ handler: @escaping ClientStreamHandler<Input, Output>
  ) {
    self.serve(ServerMethod(method, StreamForm.clientStream(handler)))
  }

  /// Answers the calls of a method with streams in both directions, from now on.
  public func onBidirectionalStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ handler: @escaping BidirectionalStreamHandler<Input, Output>
  ) {
    self.serve(ServerMethod(method, handler))
  }

  /// Answers the requests to a path with the handler's HTTP responses, in place of a method.
  ///
  /// A response that the handler does not end stays open; a thrown error resets the stream.
  public func onRaw(_ path: String, _ handler: @escaping RawHandler) {
    self.server.serve(path, with: handler)
  }

  func serve(_ method: ServerMethod) {
    self.server.serve(method)
  }

  // MARK: Faults

  /// Injects faults, from now on.
  ///
  /// - Parameters:
  ///   - faults: The faults, all in the same response; none to remove earlier faults.
  ///   - path: The path of the requests concerned; nil for all paths without separate faults.
  ///   - calls: How many requests have the faults.
  public func inject(_ faults: Fault..., at path: String? = nil, calls: Int = .max) {
    self.server.inject(faults, at: path, calls: calls)
  }

  // MARK: HTTPClientInterface

  public var authenticatesClient: Bool { false }

  public func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    let key = ChannelKey(origin: origin, requiresHTTP2: requiresHTTP2)
    return self.state.withLock { state in
      let number = state.channelCount
      return state.channels.channel(key) {
        state.channelCount += 1
        return self.makeChannel(key, number: number)
      }
    }
  }

  private func makeChannel(_ key: ChannelKey, number: UInt64) -> OriginChannel {
    OriginChannel(
      ChannelEnvironment(
        origin: key.origin,
        executor: self.executor,
        opener: InMemoryOpener(network: self.network, origin: key.origin, requiresHTTP2: key.requiresHTTP2),
        resolver: StaticResolver([Endpoint(InMemoryNetwork.onlyAddress)]),
        configuration: self.channel,
        limits: ConnectionLimits(waitingCalls: .max, idleTimeout: .longest),
        version: .http2,
        logger: Logger(label: "connect.memory", factory: { _ in SwiftLogNoOpLogHandler() }),
        // Tests should do the same in each run.
        seed: number
      ),
      onIdle: { [weak self] _ in self?.forget(key) }
    )
  }

  /// The channel has had no calls for a long time. Endpoints that are still in use keep it.
  private func forget(_ key: ChannelKey) {
    // Released outside of the lock.
    _ = self.state.withLock { $0.channels.release(key) }
  }
}
