import Connect
import ConnectTesting
import TestSupport

/// Ways of making calls in memory, all of which must have the same results.
extension WireSetting {
  static let inMemory: [WireSetting] = [NetworkProtocol.connect, .grpc, .grpcWeb, .grpcWebText].flatMap {
    network in
    [ProtoCodec() as any Codec, JSONCodec()].flatMap { codec in
      [false, true].map { WireSetting(network, codec: codec, isCompressed: $0) }
    }
  }

  var transport: InMemoryTransport {
    InMemoryTransport(responseCompression: self.isCompressed ? GzipCompressionPool() : nil)
  }

  func client(_ transport: InMemoryTransport) -> ProtocolClient {
    let compression = Compression(
      requests: self.isCompressed ? GzipCompressionPool() : nil,
      minimumRequestBytes: 0
    )
    return ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "http://memory",
        networkProtocol: self.networkProtocol,
        codec: self.codec,
        compression: compression
      )
    )
  }
}
