public import Connect
internal import NIOCore
internal import Synchronization

/// A transport without sockets: functions answer the calls, by path, in the same process.
///
/// All else is real: interceptors, codecs, compression, framing, flow control and cancellation, in each of the
/// protocols. Calls to any host are served, below any base path.
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
/// A handler fails the call with what it throws: a ``ConnectError`` with its details and metadata, any other error
/// as `internal`. When the client gives a call up, the handler's task is cancelled. A method without a handler fails
/// with `unimplemented`, and its name in the message.
///
/// Handlers run on the call's executor, one at a time between their suspensions; they must not block.
public final class InMemoryTransport: HTTPClientInterface {
  /// Answers a request in any way that HTTP allows.
  public typealias RawHandler = @Sendable (any ServerExchange) async throws -> Void

  private struct State {
    var methods: [String: ServerMethod] = [:]
    var rawHandlers: [String: RawHandler] = [:]
    var faults: [String?: FaultPlan] = [:]
  }

  private struct FaultPlan {
    var faults: [Fault]
    var remaining: Int
  }

  /// Where calls, and the handlers, run.
  public let executor: any CallExecutor
  private let handlerExecutor: CallTaskExecutor
  private let options: ServerOptions
  private let window: Int
  private let state = Mutex(State())

  /// - Parameters:
  ///   - executor: Where calls run, and their clock; nil for one of its own in real time.
  ///   - codecs: What is understood besides protobuf and JSON, or in their place.
  ///   - requestCompressions: The compressions that requests may be in. Others fail with `unimplemented`.
  ///   - responseCompression: Compresses the messages of responses, if the client accepts that; nil for none.
  ///   - window: How many bytes of one direction of a stream may be under way, as a window of HTTP/2. A handler that
  ///     sends more waits until the client has taken some, and the other way round.
  public init(
    executor: (any CallExecutor)? = nil,
    codecs: [any Codec] = [],
    requestCompressions: [any CompressionPool] = [GzipCompressionPool(), DeflateCompressionPool()],
    responseCompression: (any CompressionPool)? = nil,
    window: Int = 65535
  ) {
    let executor = executor ?? RealTimeExecutor()
    self.executor = executor
    self.handlerExecutor = CallTaskExecutor(executor)
    self.options = ServerOptions(
      codecs: codecs + [ProtoCodec(), JSONCodec()],
      requestCompressions: requestCompressions,
      responseCompression: responseCompression
    )
    self.window = max(window, 1)
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

  /// Answers the requests to a path with HTTP responses of the handler's own making, in place of a method.
  ///
  /// A response that the handler does not end stays open; what it throws resets the stream.
  public func onRaw(_ path: String, _ handler: @escaping RawHandler) {
    self.state.withLock { $0.rawHandlers[path] = handler }
  }

  func serve(_ method: ServerMethod) {
    self.state.withLock { $0.methods[method.info.path] = method }
  }

  // MARK: Faults

  /// Lets the transport misbehave, from now on.
  ///
  /// - Parameters:
  ///   - faults: What goes wrong, all in the same response; nothing to let it behave again.
  ///   - path: Of the requests concerned; nil for all paths that have no faults of their own.
  ///   - calls: How many requests it happens to.
  public func inject(_ faults: Fault..., at path: String? = nil, calls: Int = .max) {
    let plan = faults.isEmpty || calls <= 0 ? nil : FaultPlan(faults: faults, remaining: calls)
    self.state.withLock { $0.faults[path] = plan }
  }

  private func takeFaults(for head: ServerRequestHead) -> [Fault] {
    self.state.withLock { state in
      let key = [head.path, head.methodPath].first { state.faults[$0] != nil }
      guard var plan = state.faults[key] else { return [] }
      plan.remaining -= 1
      state.faults[key] = plan.remaining > 0 ? plan : nil
      return plan.faults
    }
  }

  // MARK: HTTPClientInterface

  public var authenticatesClient: Bool { false }

  public func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    InMemoryEndpoint(self, requiresHTTP2: requiresHTTP2)
  }
}

// MARK: - Streams

/// The way into an ``InMemoryTransport``, the same for each origin.
private final class InMemoryEndpoint: HTTPEndpoint {
  private let transport: InMemoryTransport
  private let requiresHTTP2: Bool

  init(_ transport: InMemoryTransport, requiresHTTP2: Bool) {
    self.transport = transport
    self.requiresHTTP2 = requiresHTTP2
  }

  var executor: any CallExecutor { self.transport.executor }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.transport.startStream(request, handler: handler, requiresHTTP2: self.requiresHTTP2)
  }
}

extension InMemoryTransport {
  fileprivate func startStream(
    _ request: HTTPStreamRequest,
    handler: any HTTPStreamHandler,
    requiresHTTP2: Bool
  ) -> any HTTPStream {
    let stream = InMemoryStream(request, handler: handler, executor: self.executor, window: self.window)
    let faults = self.takeFaults(for: stream.head)
    self.executor.execute {
      if let refusal = faults.lazy.compactMap({ $0.refusal(requiresHTTP2: requiresHTTP2) }).first {
        stream.fail(refusal)
      } else {
        stream.begin {
          Task(executorPreference: self.handlerExecutor) {
            await self.answer(faults.isEmpty ? stream : FaultyExchange(stream, faults: faults))
          }
        }
      }
    }
    return stream
  }

  private func answer(_ exchange: any ServerExchange) async {
    guard let handler = self.state.withLock({ $0.rawHandlers[exchange.head.path] }) else {
      await RPCServer(options: self.options, find: self.method).serve(exchange)
      return
    }
    do {
      try await handler(exchange)
    } catch {
      await exchange.reset(code: 2)
    }
  }

  private func method(for head: ServerRequestHead) -> ServerMethod {
    if let method = self.state.withLock({ $0.methods[head.path] ?? $0.methods[head.methodPath] }) {
      return method
    }
    // What it is can be seen in the content type only where it makes a difference.
    let isStream = head.headers.first("content-type")?.hasPrefix("application/connect+") == true
    let info = MethodInfo(
      path: head.path,
      streamType: isStream ? .bidirectionalStream : .unary,
      idempotencyLevel: .noSideEffects
    )
    let error = ConnectError(code: .unimplemented, message: "\(head.path) has no handler in this transport")
    return ServerMethod(info, failingWith: error)
  }
}

extension ServerRequestHead {
  /// The service and the method, without the base path that a client's host may have.
  fileprivate var methodPath: String {
    "/" + self.path.split(separator: "/").suffix(2).joined(separator: "/")
  }
}
