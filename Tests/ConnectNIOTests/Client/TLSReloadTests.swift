import Connect
import ConnectChannels
import ConnectNIO
import Foundation
import Logging
import LoopbackServer
import NIOCore
import NIOPosix
import Synchronization
import XCTest

/// Certificate files that change while a client is in use.
final class TLSReloadTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  private func server(_ certificates: TestCertificates, mutual: Bool = false) async throws -> LoopbackServer {
    var configuration = LoopbackServer.Configuration.tls(certificates)
    configuration.tls?.requiresClientCertificate = mutual
    let server = try await LoopbackServer.start(configuration)
    server.onRaw("/test") { request, responder in try await responder.respond(text: "ok") }
    server.onRaw("/open") { request, responder in
      try await responder.sendHead()
      _ = try await request.body()
      try await responder.sendBody("late")
      try await responder.finish()
    }
    return server
  }

  /// A call to `server` on an endpoint of its own, hence on a connection of its own.
  private func outcome(_ client: NIOHTTPClient, _ server: LoopbackServer) async throws -> TestCall.Outcome {
    let call = try self.call(client, server)
    return try await call.start().outcome()
  }

  private func call(_ client: NIOHTTPClient, _ server: LoopbackServer) throws -> TestCall {
    let origin = Origin(scheme: .https, host: "localhost", port: server.port)
    let endpoint = try client.endpoint(for: origin, on: nil, requiresHTTP2: false)
    return TestCall(endpoint, on: self.eventLoop)
  }

  private let eventLoop = MultiThreadedEventLoopGroup.singleton.next()

  private func client(_ tls: Configuration.TLS, logger: Logger? = nil) -> NIOHTTPClient {
    NIOHTTPClient(
      // HTTP/1.1 opens a connection for each call that is open.
      configuration: Configuration(version: .http1Only, tls: tls, channel: .init(backoff: .quick)),
      eventLoopGroup: self.eventLoop,
      logger: logger
    )
  }

  private func assertSucceeds(
    _ outcome: TestCall.Outcome,
    file: StaticString = #filePath,
    line: UInt = #line
  ) {
    if case .failure(let failure) = outcome { XCTFail("\(failure.error)", file: file, line: line) }
  }

  private func assertFails(
    _ outcome: TestCall.Outcome,
    _ words: String,
    file: StaticString = #filePath,
    line: UInt = #line
  ) {
    guard case .failure(let failure) = outcome else {
      XCTFail("succeeds, expected \(words)", file: file, line: line)
      return
    }
    XCTAssertTrue(failure.error.message?.contains(words) == true, "\(failure.error)", file: file, line: line)
  }

  /// Calls fail at once until the client has tried again.
  private func assertRecovers(_ client: NIOHTTPClient, _ server: LoopbackServer) async throws {
    try await eventually("succeeds") {
      if case .response = try await self.outcome(client, server) { true } else { false }
    }
  }

  func testNewTrustRootsCountForNewConnections() async throws {
    let (old, new) = (try await TestCertificates.make(), try await TestCertificates.make())
    let oldServer = try await self.server(old)
    let newServer = try await self.server(new)
    try await withTemporaryFolder { folder in
      let path = "\(folder)/roots.pem"
      try old.authorityPEM.write(toFile: path, atomically: true, encoding: .utf8)
      let client = self.client(.init(trustRoots: .pemFile(path), fileCheckInterval: .zero))
      let open = try self.call(client, oldServer).start(.post, "/open", body: .streamed)
      try await open.hasHead()
      self.assertFails(try await self.outcome(client, newServer), "unknown CA")

      try new.authorityPEM.write(toFile: path, atomically: true, encoding: .utf8)
      try await self.assertRecovers(client, newServer)
      // The call on the old connection goes on.
      open.finish()
      let text = try await open.response().text
      XCTAssertEqual(text, "late")
      await client.shutdown()
    }
    await oldServer.stop()
    await newServer.stop()
  }

  /// A list that revokes the server's certificate ends no call, and no connection.
  func testRevocationWhileACallRuns() async throws {
    let root = try await TestCertificate.make("root", ["basicConstraints=critical,CA:TRUE"])
    let own = try await TestCertificate.make("own", issuer: root)
    let (before, after) = (try await root.revocationList(), try await root.revocationList(of: [own]))
    let server = try await self.server(TestCertificates().serving(own))
    try await withTemporaryFolder { folder in
      let path = "\(folder)/list.pem"
      try before.write(toFile: path, atomically: true, encoding: .utf8)
      let client = self.client(
        .init(trustRoots: .pemBytes(Array(root.pem.utf8)), revocationLists: [path], fileCheckInterval: .zero)
      )
      let open = try self.call(client, server).start(.post, "/open", body: .streamed)
      try await open.hasHead()
      try after.write(toFile: path, atomically: true, encoding: .utf8)
      // Another origin of the same server, with connections of its own and the same TLS files.
      let origin = Origin(scheme: .https, host: "127.0.0.1", port: server.port)
      let endpoint = try client.endpoint(for: origin, on: nil, requiresHTTP2: false)
      let refused = try await TestCall(endpoint, on: self.eventLoop).start().outcome()
      self.assertFails(refused, "it has been revoked by 'CN=root'")
      open.finish()
      let text = try await open.response().text
      XCTAssertEqual(text, "late")
      await client.shutdown()
    }
    await server.stop()
  }

  /// The two files of a client certificate are exchanged one after the other, the first one by a rewrite in place.
  func testClientCertificateIsExchanged() async throws {
    let (old, new) = (try await TestCertificates.make(), try await TestCertificates.make())
    let server = try await self.server(new, mutual: true)
    let log = RecordedLog()
    try await withTemporaryFolder { folder in
      let (chain, key) = ("\(folder)/chain.pem", "\(folder)/key.pem")
      try old.clientCertificatePEM.write(toFile: chain, atomically: true, encoding: .utf8)
      try old.clientKeyPEM.write(toFile: key, atomically: true, encoding: .utf8)
      let client = self.client(
        .init(
          trustRoots: .pemBytes(Array(new.authorityPEM.utf8)),
          clientCertificate: .pemFiles(chain: chain, privateKey: key),
          fileCheckInterval: .zero
        ),
        logger: log.logger
      )
      self.assertFails(try await self.outcome(client, server), "client certificate")
      try new.clientCertificatePEM.write(toFile: chain, atomically: false, encoding: .utf8)
      // The certificate does not match the key: the old ones stay in use, and the log says so, once.
      for _ in 0..<2 { self.assertFails(try await self.outcome(client, server), "client certificate") }
      XCTAssertEqual(log.warnings.count, 1, "\(log.warnings)")
      XCTAssertTrue(log.warnings.first?.contains("is not the one of the client's certificate") == true)
      try new.clientKeyPEM.write(toFile: key, atomically: true, encoding: .utf8)
      self.assertSucceeds(try await self.outcome(client, server))
      await client.shutdown()
    }
    await server.stop()
  }

  func testBrokenFilesLeaveTheOldOnesInUse() async throws {
    let certificates = try await TestCertificates.make()
    let servers = [
      try await self.server(certificates), try await self.server(certificates),
      try await self.server(certificates),
    ]
    let log = RecordedLog()
    try await withTemporaryFolder { folder in
      let path = "\(folder)/roots.pem"
      try certificates.authorityPEM.write(toFile: path, atomically: true, encoding: .utf8)
      let client = self.client(
        .init(trustRoots: .pemFile(path), fileCheckInterval: .zero),
        logger: log.logger
      )
      self.assertSucceeds(try await self.outcome(client, servers[0]))
      try "broken".write(toFile: path, atomically: true, encoding: .utf8)
      self.assertSucceeds(try await self.outcome(client, servers[1]))
      XCTAssertEqual(log.warnings.count, 1)
      XCTAssertTrue(log.warnings.first?.contains("no certificate in PEM in the file \(path)") == true)
      try FileManager.default.removeItem(atPath: path)
      self.assertSucceeds(try await self.outcome(client, servers[2]))
      XCTAssertEqual(log.warnings.count, 2, "\(log.warnings)")
      await client.shutdown()
    }
    for server in servers { await server.stop() }
  }

  func testFilesThatAppearLater() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(certificates)
    try await withTemporaryFolder { folder in
      let path = "\(folder)/roots.pem"
      let client = self.client(.init(trustRoots: .pemFile(path), fileCheckInterval: .zero))
      self.assertFails(try await self.outcome(client, server), path)
      try certificates.authorityPEM.write(toFile: path, atomically: true, encoding: .utf8)
      try await self.assertRecovers(client, server)
      await client.shutdown()
    }
    await server.stop()
  }

  func testFilesAreNotReadAgainWithinTheInterval() async throws {
    let certificates = try await TestCertificates.make()
    let servers = [try await self.server(certificates), try await self.server(certificates)]
    let log = RecordedLog()
    try await withTemporaryFolder { folder in
      let path = "\(folder)/roots.pem"
      try certificates.authorityPEM.write(toFile: path, atomically: true, encoding: .utf8)
      let client = self.client(
        .init(trustRoots: .pemFile(path), fileCheckInterval: .seconds(3600)),
        logger: log.logger
      )
      self.assertSucceeds(try await self.outcome(client, servers[0]))
      try FileManager.default.removeItem(atPath: path)
      self.assertSucceeds(try await self.outcome(client, servers[1]))
      XCTAssertEqual(log.warnings, [])
      await client.shutdown()
    }
    for server in servers { await server.stop() }
  }
}

/// Keeps warnings with their metadata.
private final class RecordedLog: Sendable {
  private let lines = Mutex<[String]>([])

  var warnings: [String] { self.lines.withLock { $0 } }

  var logger: Logger { Logger(label: "test", factory: { _ in Handler(log: self) }) }

  private struct Handler: LogHandler {
    let log: RecordedLog
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    init(log: RecordedLog) { self.log = log }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { self.metadata[key] }
      set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      self.log.lines.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") }
    }
  }
}
