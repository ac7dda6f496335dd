internal import Foundation
internal import LoopbackServer
internal import TestSupport

/// `Servers/conformance_server.py` in a separate process, which ends when this process ends.
final class ConformanceServer: Sendable {
  private static let running = Starter()

  /// Ports with TLS, by the offered versions of HTTP.
  struct Ports: Decodable {
    var both: Int
    var http1: Int
    var http2: Int
  }

  let httpPort: Int
  /// The port for HTTP/3.
  let h3Port: Int
  let h3MutualPort: Int
  let httpsPorts: Ports
  /// TLS that requires a client certificate.
  let mutualPorts: Ports
  /// In PEM.
  let certificate: String
  let clientCertificate: String
  let clientKey: String
  private let process: ChildProcess

  /// The server that all tests share; it starts at the first call.
  static func shared() async throws -> ConformanceServer {
    try await self.running.server()
  }

  private init() async throws {
    let here = URL(filePath: #filePath).deletingLastPathComponent()
    let root = here.appending(path: "../../..").standardized
    guard FileManager.default.fileExists(atPath: root.appending(path: ".venv/installed").path()) else {
      throw LoopbackServerError("the Python servers are not installed: run `make venv` in \(root.path())")
    }
    self.process = try ChildProcess(
      root.appending(path: ".venv/bin/python"),
      arguments: ["-B", here.appending(path: "../Servers/conformance_server.py").standardized.path()],
      environment: [
        "CONNECT_TEST_GENERATED": root.appending(path: ".venv/generated").path(),
        "CONNECT_TEST_LAUNCHER": root.appending(path: "Tests/EndToEndTests/Servers").path(),
      ]
    )
    var line = Data()
    while let byte = try await self.process.read(1).first, byte != UInt8(ascii: "\n") { line.append(byte) }
    guard let facts = try? JSONDecoder().decode(Announcement.self, from: line) else {
      throw LoopbackServerError("the conformance server did not start: \(self.process.errorOutput)")
    }
    self.httpPort = facts.http
    self.h3Port = facts.h3
    self.h3MutualPort = facts.h3_mutual
    self.httpsPorts = facts.https
    self.mutualPorts = facts.mtls
    self.certificate = facts.certificate
    self.clientCertificate = facts.client_certificate
    self.clientKey = facts.client_key
  }

  private struct Announcement: Decodable {
    var http: Int
    var h3: Int
    // The names in the script's output.
    // swift-format-ignore: AlwaysUseLowerCamelCase
    var h3_mutual: Int
    var https: Ports
    var mtls: Ports
    var certificate: String
    // swift-format-ignore: AlwaysUseLowerCamelCase
    var client_certificate: String
    // swift-format-ignore: AlwaysUseLowerCamelCase
    var client_key: String
  }

  private actor Starter {
    private var task: Task<ConformanceServer, any Error>?

    func server() async throws -> ConformanceServer {
      let task = self.task ?? Task { try await ConformanceServer() }
      self.task = task
      return try await task.value
    }
  }
}
