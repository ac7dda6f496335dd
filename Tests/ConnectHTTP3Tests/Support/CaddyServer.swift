internal import ConnectHTTP3
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import TestSupport

/// Caddy in a separate process, which ends when this process ends. It serves TCP and QUIC on one port, and answers with
/// the version of HTTP.
final class CaddyServer: Sendable {
  let port: Int
  let configuration: NIOHTTPClient.Configuration
  private let process: ChildProcess
  private let folder: URL

  /// - Parameter hosts: The addresses to listen on, all with the same port.
  static func start(at hosts: [String] = ["127.0.0.1"]) async throws -> CaddyServer {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized
    let program = root.appending(path: ".venv/bin/caddy")
    guard FileManager.default.isExecutableFile(atPath: program.path()) else {
      throw LoopbackServerError("Caddy is not installed: run `make venv` in \(root.path())")
    }
    let folder = FileManager.default.temporaryDirectory.appending(path: "connect-caddy-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let certificates = try await TestCertificates.make()
    let (chain, key) = (folder.appending(path: "server.pem"), folder.appending(path: "server.key"))
    try Data(certificates.serverCertificatePEM.utf8).write(to: chain)
    try Data(certificates.serverKeyPEM.utf8).write(to: key)
    let port = try await self.freePort()
    let config = """
      {
        "admin": {"disabled": true},
        "storage": {"module": "file_system", "root": "\(folder.path())/storage"},
        "apps": {
          "http": {"servers": {"all": {
            "listen": [\(hosts.map { "\"\($0):\(port)\"" }.joined(separator: ", "))],
            "automatic_https": {"disable": true},
            "tls_connection_policies": [{}],
            "routes": [{"handle": [{"handler": "static_response", "body": "{http.request.proto}"}]}]
          }}},
          "tls": {"certificates": {"load_files": [{"certificate": "\(chain.path())", "key": "\(key.path())"}]}}
        }
      }
      """
    let path = folder.appending(path: "caddy.json")
    try Data(config.utf8).write(to: path)
    let process = try ChildProcess(program, arguments: ["run", "--config", path.path()])
    let server = CaddyServer(process, folder, port, certificates)
    try await server.waitUntilReady()
    return server
  }

  private init(_ process: ChildProcess, _ folder: URL, _ port: Int, _ certificates: TestCertificates) {
    self.process = process
    self.folder = folder
    self.port = port
    self.configuration = NIOHTTPClient.Configuration(
      tls: .init(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8))),
      http3: .discovered
    )
  }

  deinit { try? FileManager.default.removeItem(at: self.folder) }

  var errorOutput: String { self.process.errorOutput }

  /// A port that was free for TCP a moment ago.
  private static func freePort() async throws -> Int {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = channel.localAddress?.port ?? 0
    try await channel.close()
    return port
  }

  private func waitUntilReady() async throws {
    let end = ContinuousClock.now + .seconds(30)
    while ContinuousClock.now < end, self.process.isRunning {
      let connection = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connect(host: "127.0.0.1", port: self.port).get()
      if let connection {
        try await connection.close()
        return
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    throw LoopbackServerError("Caddy did not start: \(self.errorOutput)")
  }
}
