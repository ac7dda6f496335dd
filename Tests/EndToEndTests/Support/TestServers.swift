internal import Foundation
internal import LoopbackServer

/// The servers of the test service that all tests of this process share.
actor TestServers {
  struct Address {
    var url: String
    /// The certificate authority to trust, in PEM.
    var authority: String?
  }

  private enum Listener: Hashable {
    case plain, tls, unix
  }

  static let shared = TestServers()

  private var loopback: [Listener: Task<LoopbackServer, any Error>] = [:]

  func address(of server: ServerKind, over transport: Transport) async throws -> Address {
    let listener: Listener =
      switch transport {
      case .http1, .http2: .plain
      case .tlsHTTP1, .tlsHTTP2: .tls
      case .unixHTTP1, .unixHTTP2: .unix
      }
    switch server {
    case .loopback:
      let server = try await self.loopbackServer(listener)
      return Address(url: server.url, authority: server.configuration.tls?.certificates.authorityPEM)
    case .hypercorn:
      let server = try await PythonServer.shared(.connect)
      return switch listener {
      case .plain: Address(url: "http://127.0.0.1:\(try server.port("http"))")
      case .tls:
        Address(url: "https://localhost:\(try server.port("https"))", authority: try server.text("authority"))
      case .unix: Address(url: "unix:\(try server.text("unix"))")
      }
    }
  }

  private func loopbackServer(_ listener: Listener) async throws -> LoopbackServer {
    let server =
      self.loopback[listener]
      ?? Task {
        switch listener {
        case .plain: try await .start()
        case .tls: try await .start(.tls(.make()))
        case .unix: try await .start(.unixSocket(temporarySocketPath()))
        }
      }
    self.loopback[listener] = server
    return try await server.value
  }
}

/// A path where no file exists yet.
func temporarySocketPath() -> String {
  FileManager.default.temporaryDirectory.appending(path: "connect-\(UUID().uuidString.prefix(8)).sock").path()
}
