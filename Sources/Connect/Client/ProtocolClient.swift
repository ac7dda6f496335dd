/// Makes calls to one host: the entry to the library.
///
/// ```swift
/// let client = ProtocolClient(
///   httpClient: NIOHTTPClient(),
///   config: ProtocolClientConfig(host: "https://demo.connectrpc.com")
/// )
/// let response = await client.unary(say, SayRequest.with { $0.sentence = "Hello" })
/// ```
///
/// Cheap to keep and meant to be shared; connections are the transport's and are opened by the first call.
public final class ProtocolClient: Sendable {
  public let config: ProtocolClientConfig

  private let httpClient: any HTTPClientInterface
  private let origin: Origin
  private let pathPrefix: String
  private let endpoint: Result<any HTTPEndpoint, ConnectError>
  private let unaryContentType: String
  /// Of all calls that are not unary.
  private let streamContentType: String
  let wire: any WireProtocol
  /// Where this client's calls live.
  let executor: any CallExecutor

  /// - Parameter httpClient: The transport, which may serve several clients.
  public init(httpClient: any HTTPClientInterface, config: ProtocolClientConfig) {
    self.httpClient = httpClient
    self.config = config
    let wire = config.networkProtocol.wire
    self.wire = wire
    self.unaryContentType = wire.contentType(codecName: config.codec.name, isUnary: true)
    self.streamContentType = wire.contentType(codecName: config.codec.name, isUnary: false)
    let host: Result<(origin: Origin, pathPrefix: String), ConnectError> = Result { () throws(ConnectError) in
      try Origin.parse(host: config.host)
    }
    self.endpoint = host.flatMap { host in
      Result { () throws(ConnectError) in
        try httpClient.endpoint(for: host.origin, on: nil, requiresHTTP2: wire.requiresHTTP2)
      }
    }
    let usable = try? host.get()
    self.origin = usable?.origin ?? Origin(scheme: .http, host: config.host, port: 0)
    self.pathPrefix = usable?.pathPrefix ?? ""
    self.executor = (try? self.endpoint.get())?.executor ?? TaskExecutor()
  }

  // MARK: For calls

  /// Why no call can be made, if the host is not usable.
  var hostError: ConnectError? {
    if case .failure(let error) = self.endpoint { error } else { nil }
  }

  func url(for method: MethodInfo) -> RequestURL {
    RequestURL(
      origin: self.origin,
      path: self.pathPrefix.isEmpty ? method.path : self.pathPrefix + method.path
    )
  }

  func contentType(for streamType: StreamType) -> String {
    streamType == .unary ? self.unaryContentType : self.streamContentType
  }

  /// The way to `origin`, which is another than the client's if an interceptor has said so.
  func endpoint(for origin: Origin) -> Result<any HTTPEndpoint, ConnectError> {
    guard origin != self.origin else { return self.endpoint }
    return Result { () throws(ConnectError) in
      try self.httpClient.endpoint(
        for: origin,
        on: self.executor,
        requiresHTTP2: self.wire.requiresHTTP2
      )
    }
  }

  func makeDecoder(contentType: String, streamType: StreamType) -> any ResponseDecoder {
    self.wire.makeDecoder(
      contentType: contentType,
      streamType: streamType,
      maximumMessageSize: self.config.limits.maximumReceivedMessageSize
    )
  }
}
