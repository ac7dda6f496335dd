import Connect
import ConnectTesting

/// A way of making calls in memory, of which all must lead to the same results.
struct Setting: CustomStringConvertible {
  var networkProtocol: NetworkProtocol
  var codec: any Codec
  var isCompressed: Bool

  var description: String {
    "\(self.networkProtocol), \(self.codec.name)" + (self.isCompressed ? ", gzip" : "")
  }

  static let all: [Setting] = [NetworkProtocol.connect, .grpc, .grpcWeb, .grpcWebText].flatMap { network in
    [ProtoCodec() as any Codec, JSONCodec()].flatMap { codec in
      [false, true].map { Setting(networkProtocol: network, codec: codec, isCompressed: $0) }
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
