internal import ConformanceMessages
internal import Connect

/// Makes the library's configuration of a request's settings.
enum ClientConfig {
  static func make(for request: CompatRequest) throws(CaseFailure) -> ProtocolClientConfig {
    guard !request.hasRawRequest else { throw CaseFailure("raw requests are for the suite's own client") }
    let scheme = request.serverTlsCert.isEmpty ? "http" : "https"
    let host = request.host.contains(":") && !request.host.hasPrefix("[") ? "[\(request.host)]" : request.host
    var config = ProtocolClientConfig(
      host: "\(scheme)://\(host):\(request.port)",
      networkProtocol: try self.networkProtocol(request.protocol),
      codec: try self.codec(request.codec)
    )
    config.compression = try self.compression(request.compression)
    config.unaryGET = request.useGetHTTPMethod ? .alwaysEnabled : .disabled
    if request.messageReceiveLimit > 0 {
      config.limits.maximumReceivedMessageSize = Int(request.messageReceiveLimit)
    }
    return config
  }

  private static func networkProtocol(
    _ value: Connectrpc_Conformance_V1_Protocol
  ) throws(CaseFailure) -> NetworkProtocol {
    switch value {
    case .connect: .connect
    case .grpc: .grpc
    case .grpcWeb: .grpcWeb
    default: throw CaseFailure("protocol \(value) is not supported")
    }
  }

  private static func codec(_ value: Connectrpc_Conformance_V1_Codec) throws(CaseFailure) -> any Codec {
    switch value {
    case .proto: ProtoCodec()
    case .json: JSONCodec()
    default: throw CaseFailure("codec \(value) is not supported")
    }
  }

  /// Requests are compressed however short they are, and responses may be compressed in the same way alone.
  private static func compression(
    _ value: Connectrpc_Conformance_V1_Compression
  ) throws(CaseFailure) -> Compression {
    guard let pool = try self.compressionPool(value) else {
      return Compression(requests: nil, minimumRequestBytes: 0, responses: [])
    }
    return Compression(requests: pool, minimumRequestBytes: 0, responses: [pool])
  }

  /// Nil for no compression.
  private static func compressionPool(
    _ value: Connectrpc_Conformance_V1_Compression
  ) throws(CaseFailure) -> (any CompressionPool)? {
    switch value {
    case .unspecified, .identity: nil
    case .gzip: Self.gzip
    case .deflate: Self.deflate
    #if Brotli
    case .br: Self.brotli
    #endif
    #if Zstd
    case .zstd: Self.zstd
    #endif
    #if Snappy
    case .snappy: Self.snappy
    #endif
    default: throw CaseFailure("this build does not have compression \(value)")
    }
  }

  // All cases share them, so that their contexts are used again.
  private static let gzip = GzipCompressionPool()
  private static let deflate = DeflateCompressionPool()
  #if Brotli
  private static let brotli = BrotliCompressionPool()
  #endif
  #if Zstd
  private static let zstd = ZstdCompressionPool()
  #endif
  #if Snappy
  private static let snappy = SnappyCompressionPool()
  #endif
}
