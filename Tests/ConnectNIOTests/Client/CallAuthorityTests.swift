import Connect
import ConnectNIO
import LoopbackServer
import NIOCore
import XCTest

/// Calls that ask for another host than their origin's.
final class CallAuthorityTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  /// A server that answers with the host that it was told.
  private func server(_ configuration: LoopbackServer.Configuration = .plaintext) async throws
    -> LoopbackServer
  {
    let server = try await LoopbackServer.start(configuration)
    server.onRaw("/test") { request, responder in
      _ = try await request.body()
      try await responder.respond(text: request.record.headers.first("host") ?? "none")
    }
    return server
  }

  private func host(_ client: TestClient, _ authority: String?) async throws -> String {
    try await client.call().start(authority: authority).response().text
  }

  /// Without TLS nothing is checked. All calls share one connection.
  func testCleartext() async throws {
    for version in [Configuration.HTTPVersion.http1Only, .http2Only] {
      let server = try await self.server()
      let origin = Origin(scheme: .http, host: "127.0.0.1", port: server.port)
      let client = try TestClient(origin, Configuration(version: version))
      for authority in ["api.example", nil, "[::1]:80", "other.example:8443"] {
        let host = try await self.host(client, authority)
        XCTAssertEqual(host, authority ?? "127.0.0.1:\(server.port)")
      }
      let call = client.call().start(authority: "api.example")
      _ = try await call.response()
      let info = try await call.connectionInfo()
      XCTAssertEqual(info?.isReused, true)
      await client.shutdown()
      await server.stop()
    }
  }

  /// The server's certificate is for localhost and the loopback addresses.
  func testTLS() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(.tls(certificates))
    for version in [Configuration.HTTPVersion.http1Only, .http2Only] {
      let tls = Configuration.TLS(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)))
      let client = try TestClient(
        Origin(scheme: .https, host: "localhost", port: server.port),
        Configuration(version: version, tls: tls)
      )
      for authority in [nil, "localhost", "LOCALHOST:8443", "127.0.0.1:1", "[::1]"] {
        let host = try await self.host(client, authority)
        XCTAssertEqual(host, authority ?? "localhost:\(server.port)")
      }
      for authority in ["other.example", "127.0.0.2", "sub.localhost"] {
        let failure = try await client.call().start(authority: authority).failure()
        XCTAssertEqual(failure.error.code, .unavailable)
        XCTAssertFalse(failure.isUnprocessed)
        XCTAssertEqual(
          failure.error.message,
          "the call was not sent: its authority is '\(authority)', and the certificate of "
            + "https://localhost:\(server.port) is for localhost, 127.0.0.1, ::1"
        )
      }
      // The connection goes on.
      let call = client.call().start()
      _ = try await call.response()
      let info = try await call.connectionInfo()
      XCTAssertEqual(info?.isReused, true)
      await client.shutdown()
    }
    XCTAssertFalse(server.requests.contains { $0.headers.first("host") == "other.example" })
    await server.stop()
  }

  /// What counts of names, counts for calls. Without verification nothing is checked, as in gRPC. A verifier of the program's
  /// own has accepted the server for the client's host alone.
  func testModes() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(.tls(certificates))
    let cases: [(Configuration.TLS.CertificateVerification, hasVerifier: Bool, isChecked: Bool)] = [
      (.full, false, true), (.names([.dnsName("localhost")]), false, true), (.chainOnly, false, false),
      (.none, false, false), (.chainOnly, true, true), (.none, true, true),
    ]
    for (mode, hasVerifier, isChecked) in cases {
      let client = try TestClient(
        Origin(scheme: .https, host: "localhost", port: server.port),
        Configuration(
          tls: .init(
            trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)),
            certificateVerification: mode,
            serverVerifier: hasVerifier ? ServerVerifier { _ in } : nil
          )
        )
      )
      let named = try await self.host(client, "127.0.0.1")
      XCTAssertEqual(named, "127.0.0.1", "\(mode)")
      let call = client.call().start(authority: "other.example")
      if isChecked {
        let failure = try await call.failure()
        XCTAssertEqual(failure.error.code, .unavailable, "\(mode)")
      } else {
        let host = try await call.response().text
        XCTAssertEqual(host, "other.example", "\(mode)")
      }
      await client.shutdown()
    }
    await server.stop()
  }
}
