public import Connect

/// A transport around another one, with interceptors for the bytes that go through.
///
/// ```swift
/// let tap = WireTap(lines: { print($0, terminator: "") })
/// let transport = WireHTTPClient(
///   NIOHTTPClient(),
///   interceptors: [
///     { _ in RequestSigner(keyID: "k1", secret: secret) },
///     { exchange in WireTapInterceptor(tap, exchange) },
///   ]
/// )
/// let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "https://api.example.com"))
/// ```
///
/// The transport has to be shut down as without interceptors: this one owns nothing.
public final class WireHTTPClient: HTTPClientInterface {
  private let base: any HTTPClientInterface
  private let interceptors: [WireInterceptorFactory]
  private let limits: WireLimits
  public let authenticatesClient: Bool

  /// A transport whose exchanges pass through interceptors.
  ///
  /// - Parameters:
  ///   - base: Carries the exchanges.
  ///   - interceptors: From the first, which is nearest to the call, to the last, which is nearest to the network.
  ///   - limits: How much may wait.
  ///   - authenticatesClient: Whether the interceptors show servers who the client is, for example with a signature. Such
  ///     clients do not share cached responses with others. False is right for interceptors that only look, or change all
  ///     clients' bytes alike.
  public init(
    _ base: any HTTPClientInterface,
    interceptors: [WireInterceptorFactory],
    limits: WireLimits = .defaults,
    authenticatesClient: Bool = true
  ) {
    self.base = base
    self.interceptors = interceptors
    self.limits = limits
    self.authenticatesClient = base.authenticatesClient || authenticatesClient && !interceptors.isEmpty
  }

  public var executors: [any CallExecutor] { self.base.executors }

  public func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    let endpoint = try self.base.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2)
    if self.interceptors.isEmpty { return endpoint }
    return WireEndpoint(endpoint, origin: origin, self.interceptors, self.limits)
  }
}

extension WireHTTPClient: TestDouble {
  package var isTestDouble: Bool { (self.base as? any TestDouble)?.isTestDouble ?? false }
}

/// The way to an origin through interceptors.
private final class WireEndpoint: HTTPEndpoint {
  private let base: any HTTPEndpoint
  private let origin: Origin
  private let interceptors: [WireInterceptorFactory]
  private let limits: WireLimits

  init(
    _ base: any HTTPEndpoint,
    origin: Origin,
    _ interceptors: [WireInterceptorFactory],
    _ limits: WireLimits
  ) {
    self.base = base
    self.origin = origin
    self.interceptors = interceptors
    self.limits = limits
  }

  var executor: any CallExecutor { self.base.executor }
  var maximumHeaderListSize: Int { self.base.maximumHeaderListSize }
  var underlying: (any HTTPEndpoint)? { self.base }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    let exchange = WireExchange(
      origin: self.origin,
      request: request,
      context: request.context,
      executor: self.base.executor
    )
    let hooks = self.interceptors.map { WireHooks($0(exchange)) }
    if hooks.allSatisfy(\.function.isEmpty) { return self.base.startStream(request, handler: handler) }
    return WireStream(request, through: hooks, over: self.base, limits: self.limits, handler: handler)
  }
}
