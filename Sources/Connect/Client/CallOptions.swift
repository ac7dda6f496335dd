/// The options of one call. They override the client's configuration.
public struct CallOptions: Sendable {
  /// The request's headers, besides those that interceptors and the wire protocol add.
  public var headers: Headers
  /// The time that the call may take; nil for the client's. It is sent to the server and enforced here, too.
  public var timeout: Duration?
  /// How the call's request messages are compressed: by default as the client's configuration says.
  public var requestCompression: RequestCompression
  /// Factories of interceptors for this call alone, inside those of the client and the method.
  public var interceptors: [InterceptorFactory]
  /// How a unary call hedges; nil for what the client's configuration says, or else the service config. Only methods
  /// without side effects are hedged, unless the policy says otherwise. ``HedgingPolicy/disabled`` switches hedging
  /// off for the call.
  public var hedging: HedgingPolicy? {
    get { self.rare?.hedging }
    set { self.rare = Rare(hedging: newValue, arrangement: self.arrangement) }
  }
  /// Whether the call waits, until its deadline, for a server that can be reached; otherwise it fails with `unavailable` as
  /// soon as no server can. Nil for what the client's configuration or the service config says (gRPC's wait for ready).
  public var waitForReady: Bool?
  /// Values for interceptors, not sent.
  public var context: CallContext
  /// Decides which interceptors this call uses. It receives all of them, outermost first, and returns the ones to
  /// use. For tools that look at a call from outside of its interceptors, such as one that measures them.
  package var arrangement: (@Sendable ([any Interceptor]) -> [any Interceptor])? {
    get { self.rare?.arrangement }
    set { self.rare = Rare(hedging: self.hedging, arrangement: newValue) }
  }

  /// Options that few calls have, kept apart so that other calls do not pay for them.
  private final class Rare: Sendable {
    let hedging: HedgingPolicy?
    let arrangement: (@Sendable ([any Interceptor]) -> [any Interceptor])?

    init(hedging: HedgingPolicy?, arrangement: (@Sendable ([any Interceptor]) -> [any Interceptor])?) {
      self.hedging = hedging
      self.arrangement = arrangement
    }
  }

  private var rare: Rare?

  /// Options for one call. What is left out is as the client's configuration says: its timeout, its compression, its
  /// hedging, no further headers or interceptors.
  public init(
    headers: Headers = Headers(),
    timeout: Duration? = nil,
    requestCompression: RequestCompression = .inherited,
    interceptors: [InterceptorFactory] = [],
    hedging: HedgingPolicy? = nil,
    waitForReady: Bool? = nil,
    context: CallContext = CallContext()
  ) {
    self.headers = headers
    self.timeout = timeout
    self.requestCompression = requestCompression
    self.interceptors = interceptors
    self.waitForReady = waitForReady
    self.context = context
    if hedging != nil { self.hedging = hedging }
  }
}
