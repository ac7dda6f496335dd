public import Connect
public import NIOCore

/// Runs one interceptor with values that a test gives, and hands back what it proceeded with. There is no client and no
/// server, but the interceptor stands in a call's own pipeline: the driver accepts and refuses what a call does.
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
/// At each level, a request begins a call, and ends the one before. A response waits until the request has passed the
/// interceptor. A value that no call would bring, such as a second response, does not get to the interceptor, which is a
/// ``HookMisuse``. After a retry, once its delay is over, the request passes the hooks again, and the next response belongs
/// to the new attempt. A retry that a call refuses passes the response on. The cap on retries and the limits of streams are
/// those of ``config``; there is no deadline.
///
/// A test of response hooks may leave the request out: the driver begins a call whose request the interceptor does not see,
/// and another one for a value behind the end. The async form needs a request.
///
/// Hooks run on ``executor``, in virtual time, which passes by itself, as far as the hook needs, while a test waits
/// for an outcome: delays take no real time, and `executor.now` tells of them. An interceptor that sleeps has to be
/// given `executor.clock`.
public final class InterceptorDriver: Sendable {
  /// The configuration that the factory was given. Its limits and its cap on retries are those of the driver.
  public let config: ProtocolClientConfig
  /// Where the hooks run.
  public let executor: VirtualExecutor
  /// The byte hooks for unary calls.
  public let unary: UnaryHookDriver<ByteBuffer, HTTPResponse>
  /// The byte hooks for streams.
  public let stream: StreamHookDriver<ByteBuffer, ByteBuffer>

  private let driven: Confined<DrivenInterceptor>
  private let time: DriverTime

  /// A driver with a new interceptor and no call.
  ///
  /// - Parameters:
  ///   - config: What the factory is given, with the limits of the pipeline.
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
    let time = DriverTime(executor: executor, timeout: timeout, patience: patience)
    self.config = config
    self.executor = executor
    self.time = time
    (self.driven, self.unary, self.stream) = executor.sync {
      let driven = DrivenInterceptor(factory(config), executor)
      return (
        Confined(driven, to: executor),
        UnaryHookDriver(driven, config, time),
        StreamHookDriver(driven, config, time)
      )
    }
  }

  /// Tells the interceptor that its call is over, as a call does at its end. What the driver stands for is over too when
  /// it is released: then the interceptor hears of an end with `canceled`. Only the first end counts.
  public func end(_ outcome: CallOutcome = CallOutcome()) {
    self.executor.sync { self.driven.value.end(outcome) }
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
    self.executor.sync { UnaryHookDriver(self.driven.value, method, self.config, self.time) }
  }

  /// The message hooks for streams of `method`, or the async form if the interceptor has one. The interceptor is
  /// asked for them anew each time, so use one for the whole of a test.
  public func streamMessages<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamHookDriver<Input, Output> {
    self.executor.sync { StreamHookDriver(self.driven.value, method, self.config, self.time) }
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
