internal import Connect
internal import ConnectNIO
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
