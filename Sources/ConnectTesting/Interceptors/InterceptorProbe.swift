public import Connect
internal import NIOCore
internal import Synchronization

/// Records every invocation of a hook at its places in a chain of interceptors, in order, with what passed. It changes
/// nothing.
///
/// One probe has any number of places, each with a name, so that the order across a chain shows:
///
/// ```swift
/// let probe = InterceptorProbe()
/// config.interceptors = [probe.factory("outside"), { MyInterceptor(config: $0) }, probe.factory("inside")]
/// // … a call …
/// XCTAssertEqual(
///   probe.events.filter { $0.level == .message }.transcript,
///   """
///   outside message request: hello
///   inside message request: hello, I said
///   inside message response unavailable: try later
///   outside message response ok: from the cache
///   """
/// )
/// ```
///
/// It records hooks, and no attempts, which pass no chain. It keeps all that passes, so it is for calls of tests, which end.
public final class InterceptorProbe: Sendable {
  private let executor: (any CallExecutor)?
  private let log = Mutex<[HookEvent]>([])

  /// A probe that has seen nothing.
  ///
  /// - Parameter executor: Whose clock gives the events their times.
  public init(executor: (any CallExecutor)? = nil) {
    self.executor = executor
  }

  /// What has passed so far, oldest first. May be read from any thread.
  public var events: [HookEvent] { self.log.withLock { $0 } }

  /// Forgets what has passed so far.
  public func removeAll() {
    self.log.withLock { $0.removeAll() }
  }

  /// A place in a chain.
  ///
  /// - Parameters:
  ///   - name: What the events of this place are called.
  ///   - levels: Which hooks are there. With ``HookEvent/Level/async`` the place is also an interceptor in the async
  ///     form.
  ///   - metrics: Whether metrics hooks are there, too. Nothing waits for them, so in streams their place in the order
  ///     is not certain.
  public func factory(
    _ name: String,
    levels: Set<HookEvent.Level> = [.message, .byte],
    metrics: Bool = false
  ) -> InterceptorFactory {
    { _ in ProbingInterceptor(probe: self, name: name, levels: levels, recordsMetrics: metrics) }
  }

  fileprivate func record(
    _ name: String,
    _ level: HookEvent.Level,
    _ hook: HookEvent.Hook,
    _ value: some Sendable
  ) {
    let event = HookEvent(
      interceptor: name,
      level: level,
      hook: hook,
      value: value,
      time: self.executor?.now
    )
    self.log.withLock { $0.append(event) }
  }
}

/// One place of a probe in the chain of one call.
private struct ProbingInterceptor: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  let probe: InterceptorProbe
  let name: String
  let levels: Set<HookEvent.Level>
  let recordsMetrics: Bool

  // MARK: Hooks

  func callFunction(_ method: MethodInfo) -> CallFunction {
    guard self.levels.contains(.call) else { return CallFunction() }
    return CallFunction(
      requestFunction: { request in self.record(.call, .request, request) },
      outcomeFunction: { outcome in self.record(.call, .outcome, outcome) }
    )
  }

  func unaryFunction() -> UnaryFunction {
    var hooks: UnaryFunction = self.unaryHooks(.byte).placed(.userIndependent)
    if self.recordsMetrics { hooks.responseMetricsFunction = self.metricsFunction }
    return hooks
  }

  func streamFunction() -> StreamFunction {
    var hooks: StreamFunction = self.streamHooks(.byte)
    if self.recordsMetrics { hooks.responseMetricsFunction = self.metricsFunction }
    return hooks
  }

  private func metricsFunction(_ metrics: HTTPMetrics, _ proceed: Proceed<HTTPMetrics>) {
    self.record(.byte, .metrics, metrics)
    proceed(metrics)
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    self.unaryHooks(.message)
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    self.streamHooks(.message)
  }

  private func unaryHooks<Message, Response>(_ level: HookEvent.Level) -> UnaryHooks<Message, Response> {
    guard self.levels.contains(level) else { return UnaryHooks() }
    return UnaryHooks(
      requestFunction: { request, proceed in
        self.record(level, .request, request)
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        self.record(level, .response, response)
        proceed(response)
      }
    )
  }

  private func streamHooks<Message, Response>(_ level: HookEvent.Level) -> StreamHooks<Message, Response> {
    guard self.levels.contains(level) else { return StreamHooks() }
    return StreamHooks(
      requestFunction: { head, proceed in
        self.record(level, .request, head)
        proceed(.success(head))
      },
      requestMessageFunction: { message, proceed in
        self.record(level, .requestMessage, message)
        proceed(message)
      },
      streamResultFunction: { result, proceed in
        self.record(level, .result, result)
        proceed(result)
      }
    )
  }

  private func record(_ level: HookEvent.Level, _ hook: HookEvent.Hook, _ value: some Sendable) {
    self.probe.record(self.name, level, hook, value)
  }

  // MARK: Async form

  var asyncUnaryForm: AsyncUnaryForm? { self.levels.contains(.async) ? .messages(self) : nil }

  var asyncStreamForm: AsyncStreamForm? { self.levels.contains(.async) ? .messages(self) : nil }

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    self.record(.async, .request, request)
    do {
      let response = try await next(request)
      self.record(.async, .response, response)
      return response
    } catch {
      self.record(.async, .response, ResponseMessage<Output>(error: ConnectError(error)))
      throw error
    }
  }

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    self.record(.async, .request, request.head)
    let request = request.map { message in
      self.record(.async, .requestMessage, message)
      return message
    }
    do {
      return StreamResponse(
        results: try await next(request).results.mapped { result in
          self.record(.async, .result, result)
          return result
        }
      )
    } catch {
      self.record(.async, .result, StreamResult<Output>.failed(ConnectError(error)))
      throw error
    }
  }
}
