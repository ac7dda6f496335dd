import Connect
import ConnectNIO
import Foundation
import LoopbackServer
import NIOCore
import NIOSSL
import XCTest

final class TLSTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  private static func trusting(_ certificates: TestCertificates) -> Configuration.TLS {
    Configuration.TLS(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)))
  }

  private func server(
    _ certificates: TestCertificates,
    _ change: (inout LoopbackServer.Configuration) -> Void = { _ in }
  ) async throws -> LoopbackServer {
    var configuration = LoopbackServer.Configuration.tls(certificates)
    change(&configuration)
    let server = try await LoopbackServer.start(configuration)
    server.onRaw("/test") { request, responder in
      let body = try await request.body()
      try await responder.respond(body: body)
    }
    return server
  }

  private func client(
    _ port: Int,
    host: String = "localhost",
    _ configuration: Configuration,
    requiresHTTP2: Bool = false
  ) throws -> TestClient {
    try TestClient(
      Origin(scheme: .https, host: host, port: port),
      configuration,
      requiresHTTP2: requiresHTTP2
    )
  }

  func testALPNChoosesTheVersion() async throws {
    let certificates = try await TestCertificates.make()
    let tls = Self.trusting(certificates)
    struct Case {
      var offered: LoopbackServer.Configuration.Versions
      var wanted: Configuration.HTTPVersion
      var expected: HTTPConnectionInfo.Version
    }
    let cases = [
      Case(offered: .all, wanted: .automatic, expected: .http2),
      Case(offered: .all, wanted: .http1Only, expected: .http1),
      Case(offered: .all, wanted: .http2Only, expected: .http2),
      Case(offered: .http1Only, wanted: .automatic, expected: .http1),
      Case(offered: .http2Only, wanted: .automatic, expected: .http2),
    ]
    for item in cases {
      let server = try await self.server(certificates) { $0.versions = item.offered }
      let client = try self.client(server.port, Configuration(version: item.wanted, tls: tls))
      let call = client.call().start()
      let text = try await call.response().text
      XCTAssertEqual(text, "ping")
      let info = try await call.connectionInfo()
      XCTAssertEqual(info?.version, item.expected)
      XCTAssertNotNil(info?.remoteAddress)
      await client.shutdown()
      await server.stop()
    }
  }

  func testServerThatDoesNotOfferHTTP2() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(certificates) { $0.versions = .http1Only }
    let cases: [(Configuration.HTTPVersion, requiresHTTP2: Bool, String)] = [
      (.http2Only, false, "the client's configuration"), (.http2Only, true, "the client's configuration"),
      (.automatic, true, "which gRPC needs"),
    ]
    for (version, requiresHTTP2, words) in cases {
      let client = try self.client(
        server.port,
        Configuration(version: version, tls: Self.trusting(certificates)),
        requiresHTTP2: requiresHTTP2
      )
      let failure = try await client.call().start().failure()
      XCTAssertEqual(failure.error.code, .unavailable)
      let message = failure.error.message ?? ""
      XCTAssertTrue(message.contains("does not speak HTTP/2, "), message)
      XCTAssertTrue(message.contains(words), message)
      XCTAssertTrue(message.contains("ALPN"), message)
      await client.shutdown()
    }
    await server.stop()
  }

  func testRequiredHTTP2OverTLS() async throws {
    let certificates = try await TestCertificates.make()
    for versions in [LoopbackServer.Configuration.Versions.all, .http2Only] {
      let server = try await self.server(certificates) { $0.versions = versions }
      let client = try self.client(
        server.port,
        Configuration(tls: Self.trusting(certificates)),
        requiresHTTP2: true
      )
      let call = client.call().start()
      _ = try await call.response()
      let info = try await call.connectionInfo()
      XCTAssertEqual(info?.version, .http2)
      await client.shutdown()
      await server.stop()
    }
  }

  func testIPAddressIsCheckedAgainstTheCertificate() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(certificates)
    let client = try self.client(
      server.port,
      host: "127.0.0.1",
      Configuration(tls: Self.trusting(certificates))
    )
    _ = try await client.call().start().response()
    await client.shutdown()
    await server.stop()
  }

  func testFailuresNameTheCheck() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(certificates)
    let others = try await TestCertificates.make()
    var wrongName = Self.trusting(certificates)
    wrongName.serverName = "other.example"
    let cases: [(Configuration.TLS, String)] = [
      (Self.trusting(others), "unknown CA"),
      (.defaults, "unknown CA"),
      (wrongName, "'other.example'"),
    ]
    for (tls, words) in cases {
      let client = try self.client(server.port, Configuration(tls: tls))
      guard case .failure(let failure) = try await client.call().start().outcome() else {
        XCTFail("no failure: \(words)")
        continue
      }
      XCTAssertEqual(failure.error.code, .unavailable)
      XCTAssertTrue(failure.error.message?.contains(words) == true, "\(failure.error)")
      XCTAssertTrue(failure.error.message?.contains("localhost:\(server.port)") == true)
      XCTAssertFalse(failure.isUnprocessed)
      await client.shutdown()
    }
    // Without verification all of that goes through.
    let careless = try self.client(
      server.port,
      Configuration(tls: .init(certificateVerification: .none, serverName: "other.example"))
    )
    _ = try await careless.call().start().response()
    await careless.shutdown()
    await server.stop()
  }

  func testExpiredCertificate() async throws {
    try await withTemporaryFolder { folder in
      let script = """
        cd '\(folder)' && touch index && echo 01 > serial &&
        printf '%s\\n' '[ca]' 'default_ca=c' '[c]' 'database=index' 'serial=serial' 'new_certs_dir=.' \
          'policy=p' 'default_md=sha256' 'x509_extensions=x' '[p]' 'commonName=supplied' \
          '[x]' 'subjectAltName=DNS:localhost' > conf &&
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost \
          -keyout key.pem -out csr.pem &&
        openssl ca -batch -selfsign -config conf -keyfile key.pem -in csr.pem -out cert.pem -notext \
          -startdate 20200101000000Z -enddate 20200201000000Z
        """
      let (process, _) = try Process.start { process in
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", script]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
      }
      process.waitUntilExit()
      XCTAssertEqual(process.terminationStatus, 0)
      let context = try NIOSSLContext(
        configuration: .makeServerConfiguration(
          certificateChain: NIOSSLCertificate.fromPEMFile("\(folder)/cert.pem").map { .certificate($0) },
          privateKey: .privateKey(try NIOSSLPrivateKey(file: "\(folder)/key.pem", format: .pem))
        )
      )
      let server = try await RawServer(tls: context) { _ in }
      let client = try self.client(
        server.port,
        Configuration(tls: .init(trustRoots: .pemFile("\(folder)/cert.pem")))
      )
      let failure = try await client.call().start().failure()
      XCTAssertEqual(failure.error.code, .unavailable)
      XCTAssertTrue(failure.error.message?.contains("expired") == true, "\(failure.error)")
      await client.shutdown()
      await server.close()
    }
  }

  func testClientCertificate() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(certificates) { $0.tls?.requiresClientCertificate = true }
    var tls = Self.trusting(certificates)
    tls.clientCertificate = .pemBytes(
      chain: Array(certificates.clientCertificatePEM.utf8),
      privateKey: Array(certificates.clientKeyPEM.utf8)
    )
    let client = try self.client(server.port, Configuration(tls: tls))
    _ = try await client.call().start().response()
    await client.shutdown()

    await server.stop()
  }

  /// With TLS 1.3, the client's handshake is over by the time that the server finds fault with its certificate.
  func testClientCertificateThatIsMissingOrUnknown() async throws {
    let certificates = try await TestCertificates.make()
    let others = try await TestCertificates.make()
    var unknown = Self.trusting(certificates)
    unknown.clientCertificate = .pemBytes(
      chain: Array(others.clientCertificatePEM.utf8),
      privateKey: Array(others.clientKeyPEM.utf8)
    )
    let anonymous = Self.trusting(certificates)
    for maximum in [TLSVersion.tlsv12, .tlsv13] {
      let server = try await RawServer(tls: Self.mutualContext(certificates, upTo: maximum)) { _ in }
      for version in [Configuration.HTTPVersion.http1Only, .http2Only] {
        for (tls, words) in [(anonymous, "client certificate"), (unknown, "client certificate")] {
          let client = try self.client(server.port, Configuration(version: version, tls: tls))
          let failure = try await client.call().start().failure()
          XCTAssertEqual(failure.error.code, .unavailable, "\(failure.error)")
          let message = failure.error.message ?? ""
          XCTAssertTrue(message.contains(words), "\(maximum), \(version): \(message)")
          await client.shutdown()
        }
      }
      await server.close()
    }
  }

  private static func mutualContext(
    _ certificates: TestCertificates,
    upTo version: TLSVersion = .tlsv13,
    applicationProtocols: [String] = ["h2", "http/1.1"]
  ) throws -> NIOSSLContext {
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(certificates.serverCertificatePEM.utf8))
        .map { .certificate($0) },
      privateKey: .privateKey(
        try NIOSSLPrivateKey(bytes: Array(certificates.serverKeyPEM.utf8), format: .pem)
      )
    )
    configuration.maximumTLSVersion = version
    configuration.applicationProtocols = applicationProtocols
    configuration.certificateVerification = .noHostnameVerification
    configuration.trustRoots = .certificates(
      try NIOSSLCertificate.fromPEMBytes(Array(certificates.authorityPEM.utf8))
    )
    return try NIOSSLContext(configuration: configuration)
  }

  func testNoCommonTLSVersion() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await RawServer(tls: Self.mutualContext(certificates, upTo: .tlsv12)) { _ in }
    var tls = Self.trusting(certificates)
    tls.minimumVersion = .tls13
    let client = try self.client(server.port, Configuration(tls: tls))
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .unavailable)
    XCTAssertTrue(failure.error.message?.contains("no common TLS version") == true, "\(failure.error)")
    await client.shutdown()
    await server.close()
  }

  func testUnusableConfigurationFailsEachCall() async throws {
    let client = try self.client(1, Configuration(tls: .init(trustRoots: .pemFile("/does/not/exist.pem"))))
    for _ in 0..<2 {
      let failure = try await client.call().start().failure()
      XCTAssertEqual(failure.error.code, .failedPrecondition, "\(failure.error)")
      XCTAssertTrue(failure.error.message?.contains("TLS configuration") == true)
      XCTAssertTrue(failure.error.message?.contains("/does/not/exist.pem") == true)
    }
    await client.shutdown()
  }

  func testBytesThatAreNoCertificates() async throws {
    let certificates = try await TestCertificates.make()
    let others = try await TestCertificates.make()
    let cases: [(Configuration.TLS, String)] = [
      (.init(trustRoots: .pemBytes([])), "no certificate in PEM in the trust roots"),
      (
        .init(clientCertificate: .pemBytes(chain: Array("x".utf8), privateKey: [])),
        "no certificate in PEM in the client's certificate chain"
      ),
      (
        .init(
          clientCertificate: .pemBytes(
            chain: Array(certificates.clientCertificatePEM.utf8),
            privateKey: Array("x".utf8)
          )
        ), "no usable private key in PEM in the client's private key"
      ),
      (
        .init(
          clientCertificate: .pemBytes(
            chain: Array(certificates.clientCertificatePEM.utf8),
            privateKey: Array(others.clientKeyPEM.utf8)
          )
        ), "is not the one of the client's certificate"
      ),
    ]
    for (tls, words) in cases {
      let client = try self.client(1, Configuration(tls: tls))
      let failure = try await client.call().start().failure()
      XCTAssertEqual(failure.error.code, .failedPrecondition)
      XCTAssertTrue(failure.error.message?.contains(words) == true, "\(failure.error)")
      await client.shutdown()
    }
  }

  func testHandshakeTimeout() async throws {
    // Accepts TCP and never answers the handshake.
    let server = try await RawServer { _ in }
    let client = try self.client(
      server.port,
      host: "127.0.0.1",
      Configuration(timeouts: .init(connect: .milliseconds(300)))
    )
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .unavailable)
    let message = failure.error.message ?? ""
    XCTAssertTrue(message.contains("TLS handshake") && message.contains("timed out"), message)
    XCTAssertTrue(message.contains("127.0.0.1:\(server.port)"), message)
    await client.shutdown()
    try await eventually("closed") { server.open == 0 }
    await server.close()
  }

  func testServerThatHangsUpOrSpeaksNoTLS() async throws {
    let scripts: [RawServer.Script] = [
      { $0.close() },
      { $0.reset() },
      { $0.respond("this is not TLS") },
    ]
    for script in scripts {
      let server = try await RawServer(onData: script)
      let client = try self.client(server.port, .defaults)
      let failure = try await client.call().start().failure()
      XCTAssertEqual(failure.error.code, .unavailable, "\(failure.error)")
      XCTAssertTrue(failure.error.message?.contains("TLS") == true, "\(failure.error)")
      await client.shutdown()
      await server.close()
    }
  }
}
