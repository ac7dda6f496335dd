public import Connect

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// How a client makes its calls, with connect-swift's options and defaults. The codec is JSON by default.
///
/// What connect-swift does not have is set on ``native``:
///
/// ```swift
/// var config = ProtocolClientConfig(host: "https://demo.connectrpc.com").native
/// config.limits.maximumReceivedMessageSize = 16 * 1024 * 1024
/// let client = ProtocolClient(httpClient: NIOHTTPClient(), config: config)
/// ```
public struct ProtocolClientConfig: Sendable {
  /// For example `https://demo.connectrpc.com`. One that cannot be used makes each call fail with `invalid_argument`.
  public let host: String
  /// The protocol on the wire.
  public let networkProtocol: NetworkProtocol
  /// The encoding of messages.
  public let codec: any Codec
  /// Whether calls without side effects go as HTTP GET.
  public let unaryGET: UnaryGET
  /// The time that a call may take, in seconds; nil for no limit.
  public let timeout: TimeInterval?
  /// How request messages are compressed; nil for not at all.
  public let requestCompression: RequestCompression?
  /// The encodings that responses may be in, the preferred one first.
  public let responseCompressionPools: [any CompressionPool]
  /// Of all calls, outermost first.
  public let interceptors: [InterceptorFactory]

  /// How request messages are compressed.
  public struct RequestCompression: Sendable {
    /// Messages of fewer bytes are sent as they are.
    public let minBytes: Int
    /// What compresses them.
    public let pool: any CompressionPool

    /// - Parameters:
    ///   - minBytes: Messages of fewer bytes are sent as they are.
    ///   - pool: What compresses the others.
    public init(minBytes: Int, pool: any CompressionPool) {
      self.minBytes = minBytes
      self.pool = pool
    }

    /// Whether a message is large enough.
    public func shouldCompress(_ data: Data) -> Bool { data.count >= self.minBytes }
  }

  /// Whether calls without side effects go as HTTP GET, <https://connectrpc.com/docs/protocol#unary-get-request>.
  public typealias UnaryGET = Connect::UnaryGET

  /// - Parameters:
  ///   - host: For example `https://demo.connectrpc.com`.
  ///   - networkProtocol: See ``networkProtocol``.
  ///   - codec: See ``codec``.
  ///   - unaryGET: See ``unaryGET``.
  ///   - timeout: In seconds; more than 100 years count as 100 years.
  ///   - requestCompression: See ``requestCompression``.
  ///   - responseCompressionPools: See ``responseCompressionPools``.
  ///   - interceptors: See ``interceptors``.
  public init(
    host: String,
    networkProtocol: NetworkProtocol = .connect,
    codec: any Codec = JSONCodec(),
    unaryGET: UnaryGET = .disabled,
    timeout: TimeInterval? = nil,
    requestCompression: RequestCompression? = nil,
    responseCompressionPools: [any CompressionPool] = [GzipCompressionPool()],
    interceptors: [InterceptorFactory] = []
  ) {
    self.host = host
    self.networkProtocol = networkProtocol
    self.codec = codec
    self.unaryGET = unaryGET
    self.timeout = timeout
    self.requestCompression = requestCompression
    self.responseCompressionPools = responseCompressionPools
    self.interceptors = interceptors
  }
}

extension ProtocolClientConfig {
  /// The configuration in this library's form, interceptors included.
  ///
  /// Those are in `methodInterceptors`, since a factory is asked for calls of the kinds only that its type has hooks for. What
  /// is in `interceptors` stands outside of them.
  public var native: Connect::ProtocolClientConfig {
    let unary = self.interceptors.filter(\.servesUnaryCalls).map(\.native)
    let stream = self.interceptors.filter(\.servesStreams).map(\.native)
    var config = Connect::ProtocolClientConfig(
      host: self.host,
      networkProtocol: self.networkProtocol,
      codec: self.codec,
      timeout: self.timeout.map { Self.duration(seconds: $0) },
      compression: Compression(
        requests: self.requestCompression?.pool,
        minimumRequestBytes: self.requestCompression?.minBytes ?? Compression.defaults.minimumRequestBytes,
        responses: self.responseCompressionPools
      ),
      unaryGET: self.unaryGET
    )
    guard !self.interceptors.isEmpty else { return config }
    config.methodInterceptors = { .adding($0.streamType == .unary ? unary : stream) }
    return config
  }

  /// What factories are given: a configuration of this library's in connect-swift's form, without interceptors.
  init(_ native: Connect::ProtocolClientConfig) {
    self.init(
      host: native.host,
      networkProtocol: native.networkProtocol,
      codec: native.codec,
      unaryGET: native.unaryGET,
      timeout: native.timeout.map { $0 / .seconds(1) },
      requestCompression: native.compression.requests.map {
        RequestCompression(minBytes: native.compression.minimumRequestBytes, pool: $0)
      },
      responseCompressionPools: native.compression.responses
    )
  }

  /// 100 years, which count as no limit, for what is more or no number; `Duration` would trap.
  private static func duration(seconds: TimeInterval) -> Duration {
    let maximum: TimeInterval = 100 * 365 * 24 * 3600
    return .seconds(seconds < maximum ? max(seconds, 0) : maximum)
  }
}
