internal import Connect
internal import ConnectNIO
internal import LoopbackServer

/// A way to connect to the grpcio server.
enum GRPCSetting: String, CaseIterable {
  case plain, tls, mutual, unix, abstract

  /// Calls `body` with a client of the gRPC protocol, and shuts the client down. The client chooses the version of
  /// HTTP.
  @discardableResult
  func withClient<Result>(
    configure: (inout NIOHTTPClient.Configuration, inout ProtocolClientConfig) -> Void = { _, _ in },
    _ body: (ProtocolClient) async throws -> Result
  ) async throws -> Result {
    let server = try await PythonServer.shared(.grpc)
    let host =
      switch self {
      case .plain: "http://127.0.0.1:\(try server.port("plain"))"
      case .tls, .mutual: "https://localhost:\(try server.port(self.rawValue))"
      case .unix: "unix:\(try server.text("unix"))"
      case .abstract: "unix-abstract:\(try server.text("abstract"))"
      }
    let (authority, chain, key) = (
      try server.text("authority"), try server.text("client_chain"), try server.text("client_key")
    )
    return try await withPlainClient(
      .http2,
      host: host,
      configure: { http, config in
        http = .defaults
        http.tls.trustRoots = .pemBytes(Array(authority.utf8))
        if self == .mutual {
          http.tls.clientCertificate = .pemBytes(chain: Array(chain.utf8), privateKey: Array(key.utf8))
        }
        config.networkProtocol = .grpc
        configure(&http, &config)
      },
      body
    )
  }
}
