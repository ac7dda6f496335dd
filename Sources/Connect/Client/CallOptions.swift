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
    get { self.rare?.values.hedging }
    set { self.change { $0.hedging = newValue } }
  }
  /// The encoding of the call's messages; nil for what ``ProtocolClientConfig/methodFormats`` says, or else the client's
  /// codec. The content type that is sent, and the one that is expected in the response, follow from its name.
  public var codec: (any Codec)? {
    get { self.format?.codec }
    set {
      self.change {
        $0.format = MethodFormat(codec: newValue, responseParser: $0.format?.responseParser)
      }
    }
  }
  /// Makes the message of the response in place of the codec; nil for what ``ProtocolClientConfig/methodFormats`` says, or
  /// else none.
  public var responseParser: ResponseParser? {
    get { self.format?.responseParser }
    set {
      self.change { $0.format = MethodFormat(codec: $0.format?.codec, responseParser: newValue) }
    }
  }
  /// The call's codec and parser.
  var format: MethodFormat? { self.rare?.values.format }
  @inline(__always) var hasFormat: Bool { self.rare != nil && self.format != nil }
  /// Whether the call waits, until its deadline, for a server that can be reached; otherwise it fails with `unavailable` as
  /// soon as no server can. Nil for what the client's configuration or the service config says (gRPC's wait for ready).
  public var waitForReady: Bool?
  /// What the server is told as its host in place of the client's host (`:authority` of HTTP/2 and HTTP/3, `Host` of
  /// HTTP/1.1): `HOST` or `HOST:PORT`. Nil, the default, for the client's host. Virtual hosts and proxies choose by it.
  ///
  /// The call goes to the same servers and over the same connections as without it. Over TLS, the certificate
  /// of the connection has to name the host; otherwise the call fails with `unavailable` and is not sent
  /// (gRPC's proposal A81). Without TLS, and where certificates or their names are not verified, nothing is checked. Other
  /// text than a host and a port fails the call with `invalid_argument`.
  public var authority: String? {
    get { self.rare?.values.authority?.authority }
    set { self.change { $0.authority = CallDestination(newValue) } }
  }
  /// Values for interceptors, not sent.
  public var context: CallContext
  /// Decides which interceptors this call uses. It receives all of them, outermost first, and returns the ones to
  /// use. For tools that look at a call from outside of its interceptors, such as one that measures them.
  package var arrangement: (@Sendable ([any Interceptor]) -> [any Interceptor])? {
    get { self.rare?.values.arrangement }
    set { self.change { $0.arrangement = newValue } }
  }

  /// Options that few calls have.
  private(set) var rare: RareOptions?

  private mutating func change(_ change: (inout RareOptions.Values) -> Void) {
    var values = self.rare?.values ?? RareOptions.Values()
    change(&values)
    self.rare = RareOptions(values)
  }

  /// Options for one call. What is left out is as the client's configuration says: its timeout, its compression, its
  /// hedging, no further headers or interceptors.
  public init(
    headers: Headers = Headers(),
    timeout: Duration? = nil,
    requestCompression: RequestCompression = .inherited,
    interceptors: [InterceptorFactory] = [],
    hedging: HedgingPolicy? = nil,
    waitForReady: Bool? = nil,
    authority: String? = nil,
    context: CallContext = CallContext()
  ) {
    self.headers = headers
    self.timeout = timeout
    self.requestCompression = requestCompression
    self.interceptors = interceptors
    self.waitForReady = waitForReady
    self.context = context
    guard hedging != nil || authority != nil else { return }
    self.change {
      $0.hedging = hedging
      $0.authority = CallDestination(authority)
    }
  }
}
