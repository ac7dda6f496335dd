// Extracted from Sources/Connect/Connect.docc/ProtocolsAndProxies.md by `make generate`.

import Connect

private func Connect_ProtocolsAndProxies_1() async throws {
  let config = ProtocolClientConfig(host: "http://localhost:50051", networkProtocol: .grpc)
  _ = config
}

private func Connect_ProtocolsAndProxies_2() async throws {
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    networkProtocol: .automatic()  // gRPC, else gRPC-Web, else Connect; or .automatic([.grpc, .connect])
  )
  _ = config
}

private func Connect_ProtocolsAndProxies_3() async throws {
  var config: ProtocolClientConfig = given()
  config.unaryGET = .enabledForLimitedPayloadSizes(maxBytes: 4096)  // or .alwaysEnabled
  _ = config
}

private func Connect_ProtocolsAndProxies_4() async throws {
  var config: ProtocolClientConfig = given()
  config.compression = Compression(
    requests: GzipCompressionPool(),
    minimumRequestBytes: 1024,  // Smaller messages are sent as they are.
    responses: [GzipCompressionPool(), DeflateCompressionPool()]
  )
  let options = CallOptions(requestCompression: .none)  // or .pool(DeflateCompressionPool())
  _ = config
  _ = options
}
