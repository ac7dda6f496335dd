public import Connect
public import NIOCore

/// Runs the hooks of one interceptor with values that a test gives, and hands back what it proceeded with. There is
/// no client and no server.
///
/// ```swift
/// let driver = InterceptorDriver { TokenInterceptor(config: $0) }
/// let outcome = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
/// XCTAssertEqual(outcome.request?.headers["authorization"], ["Bearer t0"])
/// ```
///
/// A driver stands for one call: the factory runs once, and the interceptor's state is kept from value to value. It
/// is driven at one level: ``unary`` and ``stream`` are its byte hooks, ``unaryMessages(_:)`` and
/// ``streamMessages(_:)`` its message hooks, or at either level the interceptor in its async form if it has one there,
/// ``call(_:)`` its call hooks. A hook that is absent passes its value on.
///
/// Hooks run on ``executor``, in virtual time, which passes by itself, as far as the hook needs, while a test waits
/// for an outcome: delays take no real time, and `executor.now` tells of them. An interceptor that sleeps has to be
/// given `executor.clock`.
public final class InterceptorDriver: Sendable {
  public let config: ProtocolClientConfig
  /// Where the hooks run.
  public let executor: VirtualExecutor
  /// The byte hooks for unary calls.
  public let unary: UnaryHookDriver<ByteBuffer, HTTPResponse>
  /// The byte hooks for streams.
  public let stream: StreamHookDriver<ByteBuffer, ByteBuffer>

  private let driven: DrivenInterceptor
  private let time: DriverTime

  /// - Parameters:
  ///   - config: What the factory is given.
  ///   - executor: Where the hooks run; by default one of its own.
  ///   - timeout: How much virtual time a hook has to proceed.
  ///   - patience: How much real time a hook has that waits for something outside of virtual time. Only hooks that
  ///     do not proceed at all take as long.
  ///   - factory: Makes the interceptor, once.
  public init(
    config: ProtocolClientConfig = ProtocolClientConfig(host: "https://interceptor.test"),
    executor: VirtualExecutor = VirtualExecutor(),
    timeout: Duration = .seconds(3600),
    patience: Duration = .seconds(2),
    _ factory: @escaping InterceptorFactory
  ) {
    let driven = DrivenInterceptor(executor.sync { factory(config) }, executor)
    let time = DriverTime(executor: executor, timeout: timeout, patience: patience)
    self.config = config
    self.executor = executor
    self.driven = driven
    self.time = time
    self.unary = Self.unaryBytes(driven, time)
    self.stream = Self.streamBytes(driven, time)
  }

  private static func unaryBytes(
    _ driven: DrivenInterceptor,
    _ time: DriverTime
  ) -> UnaryHookDriver<ByteBuffer, HTTPResponse> {
    if case .bytes(let form) = time.executor.sync({ driven.interceptor.asyncUnaryForm }) {
      let method = MethodInfo(path: Self.defaultPath, streamType: .unary)
      let subject = AsyncUnarySubject(driven.name, form, method, time)
      return UnaryHookDriver(driven, subject, time, keeping: Self.lifetime(time.executor) { subject.end() })
    }
    return UnaryHookDriver(
      driven,
      UnaryHookSubject(driven.name, "unary byte") { driven.interceptor.unaryFunction() },
      time
    )
  }

  private static func streamBytes(
    _ driven: DrivenInterceptor,
    _ time: DriverTime
  ) -> StreamHookDriver<ByteBuffer, ByteBuffer> {
    if case .bytes(let form) = time.executor.sync({ driven.interceptor.asyncStreamForm }) {
      let method = MethodInfo(path: Self.defaultPath, streamType: .bidirectionalStream)
      let subject = AsyncStreamSubject(driven.name, form, method, time)
      return StreamHookDriver(driven, subject, time, keeping: Self.lifetime(time.executor) { subject.end() })
    }
    return StreamHookDriver(
      driven,
      StreamHookSubject(driven.name, "stream byte") { driven.interceptor.streamFunction() },
      time
    )
  }

  /// Tells the interceptor that its call is over, as a call does at its end. What the driver stands for is over too when
  /// it is released: then the interceptor hears of an end with `canceled`. Only the first end counts.
  public func end(_ outcome: CallOutcome = CallOutcome()) {
    self.executor.sync { self.driven.end(outcome) }
    self.executor.runUntilIdle()
  }

  /// The call hooks for a call of `method`.
  public func call(_ method: MethodInfo) -> CallHookDriver {
    CallHookDriver(self.driven, method, self.executor)
  }

  /// The message hooks for unary calls of `method`, or the async form if the interceptor has one. The interceptor is
  /// asked for them anew each time, so use one for the whole of a test.
  public func unaryMessages<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryHookDriver<Input, ResponseMessage<Output>> {
    let driven = self.driven
    self.executor.sync { driven.tell(method.info) }
    if case .messages(let form) = self.executor.sync({ driven.interceptor.asyncUnaryForm }) {
      let subject = AsyncUnarySubject(driven.name, form, method, self.time)
      return UnaryHookDriver(
        driven,
        subject,
        self.time,
        keeping: Self.lifetime(self.executor) { subject.end() }
      )
    }
    return UnaryHookDriver(
      driven,
      UnaryHookSubject(driven.name, "unary message") {
        driven.interceptor.unaryMessageFunction(method)
      },
      self.time
    )
  }

  /// The message hooks for streams of `method`, or the async form if the interceptor has one. The interceptor is
  /// asked for them anew each time, so use one for the whole of a test.
  public func streamMessages<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamHookDriver<Input, Output> {
    let driven = self.driven
    self.executor.sync { driven.tell(method.info) }
    if case .messages(let form) = self.executor.sync({ driven.interceptor.asyncStreamForm }) {
      let subject = AsyncStreamSubject(driven.name, form, method, self.time)
      return StreamHookDriver(
        driven,
        subject,
        self.time,
        keeping: Self.lifetime(self.executor) { subject.end() }
      )
    }
    return StreamHookDriver(
      driven,
      StreamHookSubject(driven.name, "stream message") {
        driven.interceptor.streamMessageFunction(method)
      },
      self.time
    )
  }

  /// Runs `end` on the executor, later: a subject may be holding a lock when it lets go of the last visit.
  private static func lifetime(
    _ executor: VirtualExecutor,
    _ end: @escaping @Sendable () -> Void
  ) -> Lifetime {
    Lifetime { executor.execute(end) }
  }

  /// The method of requests, and what the async forms of byte hooks are told.
  public static var defaultPath: String { "/test.v1.TestService/Method" }

  /// A request to a host that exists nowhere, `https://interceptor.test`, for values that a hook does not look at.
  public func makeRequest<Message>(
    path: String = InterceptorDriver.defaultPath,
    contentType: String = "application/proto",
    headers: Headers = Headers(),
    message: Message,
    context: CallContext? = nil
  ) -> HTTPRequest<Message> {
    HTTPRequest(
      url: RequestURL(origin: Origin(scheme: .https, host: "interceptor.test", port: 443), path: path),
      contentType: contentType,
      headers: headers,
      message: message,
      context: context
    )
  }
}

/// The interceptor of a driver, made and used only on the driver's executor, which makes it `Sendable`.
final class DrivenInterceptor: @unchecked Sendable {
  let interceptor: any Interceptor
  let name: String
  private let executor: VirtualExecutor
  private var method: MethodInfo?
  private var callHooks: CallFunction?
  private var hasEnded = false

  init(_ interceptor: any Interceptor, _ executor: VirtualExecutor) {
    self.interceptor = interceptor
    self.name = "\(type(of: interceptor))"
    self.executor = executor
  }

  deinit {
    guard !self.hasEnded, let function = self.callHooks?.endFunction else { return }
    let end = Confined(function)
    self.executor.execute {
      end.value(CallOutcome(error: ConnectError(code: .canceled, message: "the driver was released")))
    }
  }

  /// The call hooks, for which it is asked once.
  func callHooks(_ method: MethodInfo) -> CallFunction {
    if let hooks = self.callHooks { return hooks }
    let hooks = self.interceptor.callFunction(method)
    self.method = method
    self.callHooks = hooks
    return hooks
  }

  /// Tells it which method is called, as a call does before all else.
  func tell(_ method: MethodInfo) {
    _ = self.callHooks(method)
  }

  /// The request as a call has it. An interceptor that has not been told yet is told that the request's method is called.
  func complete<Message>(_ request: HTTPRequest<Message>, _ streamType: StreamType) -> HTTPRequest<Message> {
    self.tell(request.method ?? MethodInfo(path: request.url.path, streamType: streamType))
    var request = request
    if request.method == nil { request.method = self.method }
    return request
  }

  func end(_ outcome: CallOutcome) {
    guard !self.hasEnded else { return }
    self.hasEnded = true
    self.callHooks?.endFunction?(outcome)
  }
}
