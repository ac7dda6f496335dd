public import Connect
public import NIOCore

/// Runs one interceptor with a test's values, and returns what it proceeded with. There is no server, but the interceptor
/// stands in a real call: the driver accepts and refuses what a call does.
///
/// ```swift
/// let driver = InterceptorDriver { TokenInterceptor(config: $0) }
/// let outcome = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
/// XCTAssertEqual(outcome.request?.headers["authorization"], ["Bearer t0"])
/// ```
///
/// A driver stands for one call: the factory runs once, and the interceptor's state is kept from value to value. It
/// is driven at one level: ``unary`` and ``stream`` for byte hooks, ``unaryMessages(_:)`` and ``streamMessages(_:)`` for
/// message hooks, ``call(_:)`` for call hooks and for what observes attempts. An interceptor with an async form at a level is driven in this form. A
/// hook that is absent passes its value on.
///
/// At each level, a request begins a call, and cancels the previous call. A response waits until the request has passed the
/// interceptor. A value that no call would bring, such as a second response, does not reach the interceptor, which is a
/// ``HookMisuse``. After a retry, once its delay is over, the request passes the hooks again, and the next response belongs
/// to the new attempt. If the call refuses a retry, the response is passed on. The cap on retries, the timeout that no delay
/// of a retry may pass, and the limits of streams are those of ``config``. As any call, it ends when the timeout has passed.
/// Hooks that wait for the response of a call hear of its end, also when another request ends it.
///
/// A test of response hooks may leave the request out: the driver begins a call whose request the interceptor does not see,
/// and another call for a value after the end. The async form needs a request.
///
/// Hooks run on ``executor``, in virtual time. While a test waits for an outcome, time passes by itself as far as the hook
/// needs: delays take no real time, and `executor.now` shows them. An interceptor that sleeps needs `executor.clock`.
public final class InterceptorDriver: Sendable {
  /// The configuration that the factory was given. Its limits and its cap on retries are those of the driver.
  public let config: ProtocolClientConfig
  /// Where the hooks run.
  public let executor: VirtualExecutor
  /// The byte hooks for unary calls.
  public let unary: UnaryHookDriver<ByteBuffer, HTTPResponse>
  /// The byte hooks for streams.
  public let stream: StreamHookDriver<ByteBuffer, ByteBuffer>

  private let driven: Confined<InterceptorUnderTest>
  private let setup: DriverSetup

  /// A driver with a new interceptor and no call.
  ///
  /// - Parameters:
  ///   - config: The factory's argument, with the limits of the pipeline.
  ///   - executor: Where the hooks run; by default a new one.
  ///   - timeout: How much virtual time a hook has to proceed.
  ///   - patience: How much real time a hook has that waits for something outside of virtual time. Only hooks that never
  ///     proceed take this long.
  ///   - factory: Makes the interceptor, once.
  public init(
    config: ProtocolClientConfig = ProtocolClientConfig(host: "https://interceptor.test"),
    executor: VirtualExecutor = VirtualExecutor(),
    timeout: Duration = .seconds(3600),
    patience: Duration = .seconds(2),
    _ factory: @escaping InterceptorFactory
  ) {
    let time = DriverTime(executor: executor, timeout: timeout, patience: patience)
    let setup = DriverSetup(config: config, time: time)
    self.config = config
    self.executor = executor
    self.setup = setup
    (self.driven, self.unary, self.stream) = executor.sync {
      let driven = InterceptorUnderTest(factory(config), executor)
      return (
        Confined(driven, to: executor),
        UnaryHookDriver(driven, setup),
        StreamHookDriver(driven, setup)
      )
    }
  }

  /// Tells the interceptor that its call is over, as a call does at its end. A driver that is released ends the call, too,
  /// with `canceled`. Only the first end counts.
  public func end(_ outcome: CallOutcome = CallOutcome()) {
    self.executor.sync { self.driven.value.end(outcome) }
    self.executor.runUntilIdle()
  }

  /// The call hooks for a call of `method`.
  public func call(_ method: MethodInfo) -> CallHookDriver {
    CallHookDriver(self.driven, method, self.executor)
  }

  /// The message hooks for unary calls of `method`, or the async form if the interceptor has one. Each use asks the
  /// interceptor for new hooks, so use one for the whole of a test.
  public func unaryMessages<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryHookDriver<Input, ResponseMessage<Output>> {
    self.executor.sync { UnaryHookDriver(self.driven.value, method, self.setup) }
  }

  /// The message hooks for streams of `method`, or the async form if the interceptor has one. Each use asks the
  /// interceptor for new hooks, so use one for the whole of a test.
  public func streamMessages<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamHookDriver<Input, Output> {
    self.executor.sync { StreamHookDriver(self.driven.value, method, self.setup) }
  }

  /// The path of requests, and of the method that the async forms of byte hooks see.
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
