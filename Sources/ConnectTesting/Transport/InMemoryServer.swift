package import Connect
internal import Synchronization

/// The handlers and faults that all servers of an ``InMemoryTransport`` share.
package final class InMemoryServer: Sendable {
  /// Wraps an answer: calls `answer` with the exchange, with a wrapper of the exchange, or not at all.
  package typealias Middleware =
    @Sendable (_ exchange: any ServerExchange, _ answer: @Sendable (any ServerExchange) async -> Void) async
    -> Void

  private struct State {
    var methods: [String: ServerMethod] = [:]
    var rawHandlers: [String: InMemoryTransport.RawHandler] = [:]
    var faults: [String?: FaultPlan] = [:]
  }

  private struct FaultPlan {
    var faults: [InMemoryTransport.Fault]
    var remaining: Int
  }

  package let executor: any CallExecutor
  /// How many bytes of one direction of a stream may be in flight.
  let window: Int
  private let handlerExecutor: any TaskExecutor
  private let options: ServerOptions
  private let middleware: Middleware?
  private let state = Mutex(State())

  /// - Parameter middleware: Nil to answer at once.
  package init(
    on executor: any CallExecutor,
    options: ServerOptions,
    window: Int,
    middleware: Middleware? = nil
  ) {
    self.executor = executor
    self.handlerExecutor = executor.taskExecutor ?? CallTaskExecutor(executor)
    self.options = options
    self.window = window
    self.middleware = middleware
  }

  package func serve(_ method: ServerMethod) {
    self.state.withLock { $0.methods[method.info.path] = method }
  }

  package func serve(_ path: String, with handler: @escaping InMemoryTransport.RawHandler) {
    self.state.withLock { $0.rawHandlers[path] = handler }
  }

  // MARK: Faults

  func inject(_ faults: [InMemoryTransport.Fault], at path: String?, calls: Int) {
    let plan = faults.isEmpty || calls <= 0 ? nil : FaultPlan(faults: faults, remaining: calls)
    self.state.withLock { $0.faults[path] = plan }
  }

  /// The faults of a request.
  private func takeFaults(for head: ServerRequestHead) -> [InMemoryTransport.Fault] {
    self.state.withLock { state in
      guard !state.faults.isEmpty else { return [] }
      let key = [head.path, head.methodPath].first { state.faults[$0] != nil }
      guard var plan = state.faults[key] else { return [] }
      plan.remaining -= 1
      state.faults[key] = plan.remaining > 0 ? plan : nil
      return plan.faults
    }
  }

  // MARK: Streams

  /// Answers a stream. To be called on the executor, after the stream's start.
  ///
  /// - Parameter requiresHTTP2: Whether the stream must go over HTTP/2.
  func receive(_ stream: InMemoryStream, requiresHTTP2: Bool) {
    // A stream that was cancelled before it has arrived uses up no fault.
    guard stream.isOpen else { return }
    let faults = self.takeFaults(for: stream.head)
    if let refusal = faults.lazy.compactMap({ $0.refusal(requiresHTTP2: requiresHTTP2) }).first {
      stream.fail(refusal)
      return
    }
    stream.begin {
      Task(executorPreference: self.handlerExecutor) {
        let bare = InMemoryExchange(stream)
        let exchange: any ServerExchange = faults.isEmpty ? bare : FaultyExchange(bare, faults: faults)
        if let middleware = self.middleware {
          await middleware(exchange) { await self.answer($0) }
        } else {
          await self.answer(exchange)
        }
      }
    }
  }

  private func answer(_ exchange: any ServerExchange) async {
    let head = exchange.head
    let handler = self.state.withLock { $0.rawHandlers[head.path] ?? $0.rawHandlers[head.methodPath] }
    guard let handler else {
      await RPCServer(options: self.options, find: self.method).serve(exchange)
      return
    }
    do {
      try await handler(exchange)
    } catch {
      await exchange.reset(code: 2)
    }
  }

  /// Answers with an error, in the request's protocol.
  package func refuse(_ exchange: any ServerExchange, with error: ConnectError) async {
    await RPCServer(options: self.options) { head in
      let info = self.method(for: head).info
      return ServerMethod(info, failingWith: error)
    }.serve(exchange)
  }

  private func method(for head: ServerRequestHead) -> ServerMethod {
    if let method = self.state.withLock({ $0.methods[head.path] ?? $0.methods[head.methodPath] }) {
      return method
    }
    // The stream type matters only in the Connect protocol, where the content type shows it.
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
