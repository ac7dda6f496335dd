internal import Connect
internal import ConnectNIO
internal import LoopbackServer

/// A server of the test service.
enum ServerKind: String, CaseIterable {
  /// The server in this process.
  case loopback
  /// connectrpc on hypercorn, in Python.
  case hypercorn
}

/// A way to connect to a server.
enum Transport: String, CaseIterable {
  case http1 = "HTTP/1.1"
  case http2 = "h2c"
  case tlsHTTP1 = "HTTP/1.1 over TLS"
  case tlsHTTP2 = "HTTP/2 over TLS"
  case unixHTTP1 = "HTTP/1.1 over a unix socket"
  case unixHTTP2 = "h2c over a unix socket"

  var isHTTP2: Bool {
    switch self {
    case .http1, .tlsHTTP1, .unixHTTP1: false
    case .http2, .tlsHTTP2, .unixHTTP2: true
    }
  }

  /// The version as the servers name it.
  var version: String { self.isHTTP2 ? "2" : "1.1" }

  fileprivate var clientVersion: NIOHTTPClient.Configuration.HTTPVersion {
    switch self {
    // The server chooses HTTP/2.
    case .tlsHTTP2: .automatic
    case .http1, .tlsHTTP1, .unixHTTP1: .http1Only
    case .http2, .unixHTTP2: .http2Only
    }
  }
}

enum Coding: String, CaseIterable {
  case proto
  case json

  var codec: any Codec {
    switch self {
    case .proto: ProtoCodec()
    case .json: JSONCodec()
    }
  }
}

/// A server, a transport, and an encoding: the parameters of a test.
struct Setting: CustomStringConvertible {
  var server: ServerKind
  var transport: Transport
  var coding: Coding

  var description: String { "\(self.server.rawValue), \(self.transport.rawValue), \(self.coding.rawValue)" }

  /// All combinations.
  static let all = ServerKind.allCases.flatMap { server in
    Transport.allCases.flatMap { transport in
      Coding.allCases.map { Setting(server: server, transport: transport, coding: $0) }
    }
  }

  /// Both servers, over HTTP/1.1 and h2c, with the binary encoding.
  static let plain = Self.all.filter { setting in
    setting.coding == .proto && (setting.transport == .http1 || setting.transport == .http2)
  }

  /// The settings of ``all`` over HTTP/2.
  static let http2 = Self.all.filter(\.transport.isHTTP2)

  private func connection() async throws -> (host: String, configuration: NIOHTTPClient.Configuration) {
    let address = try await TestServers.shared.address(of: self.server, over: self.transport)
    var configuration = NIOHTTPClient.Configuration(version: self.transport.clientVersion)
    if let authority = address.authority { configuration.tls.trustRoots = .pemBytes(Array(authority.utf8)) }
    return (address.url, configuration)
  }

  /// Calls `body` with a client for this setting, and shuts the client down.
  @discardableResult
  func withClient<Result>(
    networkProtocol: NetworkProtocol = .connect,
    interceptors: [InterceptorFactory] = [],
    _ body: (ProtocolClient) async throws -> Result
  ) async throws -> Result {
    let (host, configuration) = try await self.connection()
    let httpClient = NIOHTTPClient(configuration: configuration)
    var config = ProtocolClientConfig.forTests(host: host, coding: self.coding, interceptors: interceptors)
    config.networkProtocol = networkProtocol
    let client = ProtocolClient(httpClient: httpClient, config: config)
    do {
      let result = try await body(client)
      try await shutDown(httpClient)
      return result
    } catch {
      await httpClient.shutdown(within: .zero)
      throw error
    }
  }
}

extension ProtocolClientConfig {
  /// A client whose calls end after at most a minute, so that no test hangs.
  static func forTests(
    host: String,
    coding: Coding = .proto,
    interceptors: [InterceptorFactory] = []
  ) -> ProtocolClientConfig {
    ProtocolClientConfig(
      host: host,
      codec: coding.codec,
      interceptors: interceptors,
      timeout: .seconds(60)
    )
  }
}
