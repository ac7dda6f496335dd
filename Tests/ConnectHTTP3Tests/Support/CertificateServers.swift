internal import Connect
internal import ConnectChannels
internal import ConnectHTTP3
internal import ConnectNIO
internal import Foundation
internal import Logging
internal import LoopbackServer
internal import NIOCore
internal import TestSupport

/// Servers on 127.0.0.1, over TCP and over QUIC, one of each for each certificate.
final class CertificateServers: Sendable {
  enum Transport: CaseIterable {
    case tcp, quic
  }

  private let tcp: [LoopbackServer]
  private let quicPorts: [Int]
  private let process: ChildProcess

  private struct Announcement: Decodable {
    var ports: [Int]
  }

  /// Starts servers, calls `body`, and stops them.
  ///
  /// - Parameter chains: What each server shows, its own certificate first.
  static func with(_ chains: [[TestCertificate]], _ body: (CertificateServers) async throws -> Void)
    async throws
  {
    let servers = try await CertificateServers(chains)
    do {
      try await body(servers)
      await servers.stop()
    } catch {
      await servers.stop()
      throw error
    }
  }

  private init(_ chains: [[TestCertificate]]) async throws {
    var tcp: [LoopbackServer] = []
    let folder = FileManager.default.temporaryDirectory.appending(path: "connect-chains-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    for (number, chain) in chains.enumerated() {
      try Data(chain.map(\.pem).joined().utf8).write(to: folder.appending(path: "\(number).pem"))
      try Data(chain[0].keyPEM.utf8).write(to: folder.appending(path: "\(number).key"))
      let certificates = TestCertificates().serving(chain[0], issuers: Array(chain.dropFirst()))
      let server = try await LoopbackServer.start(.tls(certificates))
      server.onRaw("/") { _, responder in try await responder.respond(text: "tcp") }
      tcp.append(server)
    }
    self.tcp = tcp
    let here = URL(filePath: #filePath).deletingLastPathComponent()
    let root = here.appending(path: "../../..").standardized
    self.process = try ChildProcess(
      root.appending(path: ".venv/bin/python"),
      arguments: [
        "-B", here.appending(path: "../Servers/h3_certificates.py").standardized.path(), folder.path(),
      ],
      environment: ["CONNECT_TEST_LAUNCHER": root.appending(path: "Tests/EndToEndTests/Servers").path()]
    )
    var line = Data()
    while let byte = try await self.process.read(1).first, byte != UInt8(ascii: "\n") { line.append(byte) }
    guard let facts = try? JSONDecoder().decode(Announcement.self, from: line) else {
      throw LoopbackServerError("the HTTP/3 servers did not start: \(self.process.errorOutput)")
    }
    self.quicPorts = facts.ports
  }

  private func stop() async {
    for server in self.tcp { await server.stop() }
    self.process.signal(SIGTERM)
  }

  /// Makes a request with a new client.
  ///
  /// - Parameters:
  ///   - host: The host of the origin. Whatever it is, the client connects to 127.0.0.1.
  ///   - endpointName: The name that the endpoint brings.
  /// - Returns: The response's body, or the error.
  func get(
    _ number: Int,
    over transport: Transport,
    host: String = "localhost",
    endpointName: String? = nil,
    _ tls: NIOHTTPClient.Configuration.TLS
  ) async -> Result<String, ConnectError> {
    await self.withClient(number, over: transport, host: host, endpointName: endpointName, tls) { client in
      let record = await client()
      return record.failure.map { .failure($0.error) } ?? .success(record.text)
    }
  }

  /// A client that makes a request each time that it is called.
  typealias Client = () async -> StreamRecord

  /// Calls `body` with a client. Parameters as in ``get(_:over:host:endpointName:_:)``.
  ///
  /// - Parameter change: Changes the configuration.
  func withClient<R>(
    _ number: Int,
    over transport: Transport,
    host: String = "localhost",
    endpointName: String? = nil,
    _ tls: NIOHTTPClient.Configuration.TLS,
    logger: Logger? = nil,
    _ change: (inout NIOHTTPClient.Configuration) -> Void = { _ in },
    _ body: (Client) async throws -> R
  ) async rethrows -> R {
    let port = self.port(number, over: transport)
    var configuration = NIOHTTPClient.Configuration(tls: tls, http3: transport == .tcp ? nil : .alone)
    configuration.channel.backoff = .init(initial: .milliseconds(5), maximum: .milliseconds(20))
    let addresses = ["127.0.0.1:\(port)"].compactMap { EndpointAddress($0) }
    configuration.channel.resolver = StaticResolver([Endpoint(addresses: addresses, serverName: endpointName)]
    )
    change(&configuration)
    let client = NIOHTTPClient(configuration: configuration, logger: logger)
    let origin = Origin(scheme: .https, host: host, port: port)
    do {
      let result = try await body { await self.get(origin, client) }
      await client.shutdown(within: .seconds(5))
      return result
    } catch {
      await client.shutdown(within: .seconds(5))
      throw error
    }
  }

  private func get(_ origin: Origin, _ client: NIOHTTPClient) async -> StreamRecord {
    let endpoint: any HTTPEndpoint
    do throws(ConnectError) {
      endpoint = try client.endpoint(for: origin, on: nil, requiresHTTP2: false)
    } catch {
      var record = StreamRecord()
      record.failure = HTTPStreamFailure(error: error)
      return record
    }
    return await StreamRecord.run(
      HTTPStreamRequest(method: .get, target: "/", headers: [:], body: .complete(ByteBuffer())),
      on: endpoint
    )
  }

  func port(_ number: Int, over transport: Transport) -> Int {
    transport == .tcp ? self.tcp[number].port : self.quicPorts[number]
  }

  /// How many requests the servers over TCP have had.
  var requestCount: Int { self.tcp.reduce(0) { $0 + $1.requests.count } }
}
