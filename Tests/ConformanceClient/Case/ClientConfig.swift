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
}
