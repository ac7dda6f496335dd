public import Connect

/// Sees and changes the bytes of one exchange with a server, as they go to the transport and come from it: framed, and
/// compressed.
///
/// Interceptors of `Connect` see whole messages. This one sees what a transport does: the head of a request, the chunks of
/// its body, its end, and the same of the response. It may change, add, drop and delay all of them, and fail the exchange.
/// ``WireHTTPClient`` makes a new instance for each exchange: for each attempt of a call, and for each hedge.
///
/// ```swift
/// final class ByteCounter: WireInterceptor {
///   private var count = 0
///
///   func wireFunction() -> WireFunction {
///     WireFunction(
///       responseChunkFunction: { bytes, proceed in
///         self.count += bytes.readableBytes
///         proceed(bytes)
///       },
///       endFunction: { outcome in print("\(self.count) bytes, \(outcome)") }
///     )
///   }
/// }
///
/// let transport = WireHTTPClient(NIOHTTPClient(), interceptors: [{ _ in ByteCounter() }])
/// ```
///
/// An instance, and all of its hooks, are on the executor of the call, one at a time. They must not block.
public protocol WireInterceptor {
  /// The hooks for the exchange. Called once.
  func wireFunction() -> WireFunction
}

/// Makes the interceptor of an exchange when the exchange begins. Called on the executor of the call; it must not block, nor
/// end the call.
public typealias WireInterceptorFactory = @Sendable (WireExchange) -> any WireInterceptor

/// What is known of an exchange before it begins.
public struct WireExchange: Sendable {
  /// Where the request goes.
  public var origin: Origin
  /// The request as the call made it. An interceptor before this one may change it.
  public var request: HTTPStreamRequest
  /// The values that the call carries, which are not sent.
  public var context: CallContext
  /// Where the hooks run. It tells the time, and runs work later, as for delays.
  public var executor: any CallExecutor

  /// The facts of an exchange; for tests of interceptors.
  public init(
    origin: Origin,
    request: HTTPStreamRequest,
    context: CallContext = CallContext(),
    executor: any CallExecutor
  ) {
    self.origin = origin
    self.request = request
    self.context = context
    self.executor = executor
  }
}

/// How an exchange has ended.
public enum WireOutcome: Sendable {
  /// The call has got the whole response, or as much of it as it wanted.
  case completed
  /// There was no whole response.
  case failed(HTTPStreamFailure)
  /// The call was cancelled, another attempt has won, or the call did not need the rest.
  case cancelled
  /// The deadline of the call has passed.
  case expired
}
