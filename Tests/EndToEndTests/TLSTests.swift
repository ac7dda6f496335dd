internal import Connect
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// What is checked of the server, and what the server may ask for. That calls work over TLS is shown by the
/// tests that run over everything.
final class TLSTests: XCTestCase {
  private func run(
    _ certificates: TestCertificates,
    versions: LoopbackServer.Configuration.Versions = .all,
    requiresClientCertificate: Bool = false,
    version: NIOHTTPClient.Configuration.HTTPVersion = .automatic,
    host: String = "localhost",
    tls: (inout NIOHTTPClient.Configuration.TLS) -> Void = { _ in },
    _ body: (ProtocolClient, LoopbackServer) async throws -> Void
  ) async throws {
    var server = LoopbackServer.Configuration.tls(certificates)
    server.tls?.requiresClientCertificate = requiresClientCertificate
    server.versions = versions
    try await EmbeddedServer.run(
      .http2,
      server: server,
      configure: { http, config in
        http.version = version
        http.tls.trustRoots = .pemBytes(Array(certificates.authorityPEM.utf8))
        tls(&http.tls)
        config.host = config.host.replacing("localhost", with: host)
      }
    ) { try await body($0.client, $0.server) }
  }

  func testUnknownAuthority() async throws {
    let (certificates, others) = try await (TestCertificates.make(), TestCertificates.make())
    let roots: [NIOHTTPClient.Configuration.TLS.TrustRoots] = [
      .pemBytes(Array(others.authorityPEM.utf8)), .systemDefault,
    ]
    for root in roots {
      try await self.run(certificates, tls: { $0.trustRoots = root }) { client, server in
        let expected = ExpectedError(.unavailable, "unknown CA")
        try await client.expectFailure(TestMethods.echo, expected, "\(root)")
        try await client.expectStreamFailure(TestMethods.count, expected, "\(root)")
        XCTAssertEqual(server.requests.count, 0)
      }
    }
  }

  /// A failed handshake is a matter of that server alone.
  func testOtherServersAfterAFailure() async throws {
    let (wrong, right) = try await (TestCertificates.make(), TestCertificates.make())
    for version in Version.allCases {
      let servers = try await (LoopbackServer.start(.tls(wrong)), LoopbackServer.start(.tls(right)))
      var configuration = version.configuration
      configuration.tls.trustRoots = .pemBytes(Array(right.authorityPEM.utf8))
      let httpClient = NIOHTTPClient(configuration: configuration)
      let bad = ProtocolClient(httpClient: httpClient, config: .forTests(host: servers.0.url))
      let good = ProtocolClient(httpClient: httpClient, config: .forTests(host: servers.1.url))
      for _ in 0..<2 {
        let failure = await bad.unary(TestMethods.echo, EchoRequest())
        ExpectedError(.unavailable, "unknown CA").check(failure.error, version.rawValue)
        let response = await good.unary(TestMethods.echo, EchoRequest())
        XCTAssertEqual(response.code, .ok, "\(version.rawValue): \(response)")
      }
      XCTAssertEqual(servers.0.requests.count, 0, version.rawValue)
      XCTAssertEqual(servers.1.journal.snapshot.acceptedConnections, 1, version.rawValue)
      try await shutDown(httpClient)
      await servers.0.stop()
      await servers.1.stop()
    }
  }

  /// The same server works once the file of trusted roots is right.
  func testTheSameServerAfterAFailure() async throws {
    let (others, certificates) = try await (TestCertificates.make(), TestCertificates.make())
    let path = FileManager.default.temporaryDirectory.appending(path: "roots-\(UUID().uuidString).pem").path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    for version in [NIOHTTPClient.Configuration.HTTPVersion.http1Only, .http2Only, .automatic] {
      try others.authorityPEM.write(toFile: path, atomically: true, encoding: .utf8)
      try await self.run(
        certificates,
        version: version,
        tls: { tls in
          tls.trustRoots = .pemFile(path)
          tls.fileCheckInterval = .zero
        }
      ) { client, server in
        let failure = await client.unary(TestMethods.echo, EchoRequest())
        ExpectedError(.unavailable, "unknown CA").check(failure.error, "\(version)")
        try certificates.authorityPEM.write(toFile: path, atomically: true, encoding: .utf8)
        let response = await client.unary(
          TestMethods.echo,
          EchoRequest(),
          options: CallOptions(waitForReady: true)
        )
        XCTAssertEqual(response.code, .ok, "\(version): \(response)")
        let stream = client.serverStream(TestMethods.count, .with { $0.instruction.messageCount = 2 })
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.messages.count, 2, "\(version): \(outcome.ends)")
        XCTAssertEqual(server.requests.count, 2, "\(version)")
      }
    }
  }

  func testWrongHostName() async throws {
    let certificates = try await TestCertificates.make()
    try await self.run(certificates, tls: { $0.serverName = "example.org" }) { client, server in
      let expected = ExpectedError(.unavailable, "example.org")
      try await client.expectFailure(TestMethods.echo, expected, "server name")
      XCTAssertEqual(server.requests.count, 0)
    }
  }

  func testAddressInTheCertificate() async throws {
    let certificates = try await TestCertificates.make()
    try await self.run(certificates, host: "127.0.0.1") { client, server in
      let response = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(response.code, .ok, "\(response)")
    }
  }

  func testUncheckedCertificate() async throws {
    let certificates = try await TestCertificates.make()
    try await self.run(
      certificates,
      tls: { tls in
        tls.trustRoots = .systemDefault
        tls.certificateVerification = .none
      }
    ) { client, server in
      let response = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(response.code, .ok, "\(response)")
    }
  }

  func testTheServerChoosesTheVersion() async throws {
    let certificates = try await TestCertificates.make()
    for (versions, seen) in [
      (LoopbackServer.Configuration.Versions.all, "2"), (.http1Only, "1.1"), (.http2Only, "2"),
    ] {
      try await self.run(certificates, versions: versions) { client, server in
        let response = await client.unary(TestMethods.echo, EchoRequest())
        XCTAssertEqual(response.message?.seen.httpVersion, seen, "\(versions): \(response)")
      }
    }
  }

  func testNoCommonVersion() async throws {
    let certificates = try await TestCertificates.make()
    try await self.run(certificates, versions: .http1Only, version: .http2Only) { client, server in
      try await client.expectFailure(
        TestMethods.echo,
        ExpectedError(.unavailable),
        "h2 of an HTTP/1.1 server"
      )
    }
  }

  func testClientCertificate() async throws {
    let certificates = try await TestCertificates.make()
    try await self.run(
      certificates,
      requiresClientCertificate: true,
      tls: { tls in
        tls.clientCertificate = .pemBytes(
          chain: Array(certificates.clientCertificatePEM.utf8),
          privateKey: Array(certificates.clientKeyPEM.utf8)
        )
      }
    ) { client, server in
      let response = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(response.code, .ok, "\(response)")
    }
    try await self.run(certificates, requiresClientCertificate: true) { client, server in
      try await client.expectFailure(TestMethods.echo, ExpectedError(.unavailable), "no client certificate")
    }
  }

  /// Either end speaks no TLS.
  func testTLSOnOneSideOnly() async throws {
    try await EmbeddedServer.run(
      .http2,
      configure: { http, config in
        http.version = .automatic
        config.host = config.host.replacing("http:", with: "https:")
      }
    ) { embedded in
      try await embedded.client.expectFailure(
        TestMethods.echo,
        ExpectedError(.unavailable, "TLS"),
        "cleartext server"
      )
    }
    let certificates = try await TestCertificates.make()
    for version in Version.allCases {
      try await self.run(certificates) { _, server in
        try await withPlainClient(version, host: "http://127.0.0.1:\(server.port)") { client in
          let response = await client.unary(TestMethods.echo, EchoRequest())
          XCTAssertTrue(
            [.unavailable, .internalError].contains(response.code),
            "\(version.rawValue): \(response)"
          )
        }
      }
    }
  }
}
