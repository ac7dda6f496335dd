import Connect
import ConnectChannels
import ConnectNIO
import Foundation
import LoopbackServer
import XCTest

/// Which certificates are trusted that are not, or not only, authorities that sign themselves. Over real sockets.
final class TrustAnchorTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  private static let usages: [String?] = [
    nil, "keyUsage=digitalSignature,keyEncipherment", "keyUsage=digitalSignature,keyCertSign",
  ]
  private static let constraints: [String?] = [nil, "basicConstraints=CA:FALSE", "basicConstraints=CA:TRUE"]
  private static let authority = ["basicConstraints=critical,CA:TRUE", "keyUsage=keyCertSign"]

  private func withServer(
    _ certificate: TestCertificate,
    issuers: [TestCertificate] = [],
    mutual certificates: TestCertificates? = nil,
    _ body: (LoopbackServer) async throws -> Void
  ) async throws {
    var configuration = LoopbackServer.Configuration.tls(
      (certificates ?? TestCertificates()).serving(certificate, issuers: issuers)
    )
    configuration.tls?.requiresClientCertificate = certificates != nil
    let server = try await LoopbackServer.start(configuration)
    server.onRaw("/test") { request, responder in try await responder.respond(text: "ok") }
    try await body(server)
    await server.stop()
  }

  private func roots(_ certificates: [TestCertificate]) -> Configuration.TLS.TrustRoots {
    .pemBytes(Array(certificates.map(\.pem).joined().utf8))
  }

  /// What a call of a new client ends with; nil if it succeeds.
  private func failure(
    _ server: LoopbackServer,
    _ tls: Configuration.TLS,
    host: String = "localhost",
    version: Configuration.HTTPVersion = .automatic
  ) async throws -> ConnectError? {
    let client = try TestClient(
      Origin(scheme: .https, host: host, port: server.port),
      Configuration(version: version, tls: tls)
    )
    let outcome = try await client.call().start().outcome()
    await client.shutdown()
    guard case .failure(let failure) = outcome else { return nil }
    return failure.error
  }

  private func assertRefused(
    _ server: LoopbackServer,
    _ tls: Configuration.TLS,
    host: String = "localhost",
    _ words: [String],
    line: UInt = #line
  ) async throws {
    let requests = server.requests.count
    let error = try await self.failure(server, tls, host: host)
    XCTAssertEqual(error?.code, .unavailable, line: line)
    let message = error?.message ?? "accepted"
    for word in words { XCTAssertTrue(message.contains(word), "no \(word) in: \(message)", line: line) }
    XCTAssertFalse(message.contains("BoringSSL") || message.contains(".cc"), message, line: line)
    XCTAssertEqual(server.requests.count, requests, "a request was sent", line: line)
  }

  // MARK: The server's own certificate

  func testServerCertificateThatIsATrustRoot() async throws {
    let mutual = try await TestCertificates.make()
    let client = Configuration.TLS.ClientCertificate.pemBytes(
      chain: Array(mutual.clientCertificatePEM.utf8),
      privateKey: Array(mutual.clientKeyPEM.utf8)
    )
    for usage in Self.usages {
      for constraint in Self.constraints {
        let name = "\(usage ?? "no key usage"), \(constraint ?? "no basic constraints")"
        let certificate = try await TestCertificate.make("pinned", [usage, constraint].compactMap { $0 })
        try await self.withServer(certificate) { server in
          for version in [Configuration.HTTPVersion.http1Only, .http2Only] {
            let tls = Configuration.TLS(trustRoots: self.roots([certificate]))
            let error = try await self.failure(server, tls, version: version)
            XCTAssertNil(error, name)
          }
          let address = try await self.failure(
            server,
            .init(trustRoots: self.roots([certificate])),
            host: "127.0.0.1"
          )
          XCTAssertNil(address, name)
        }
        try await self.withServer(certificate, mutual: mutual) { server in
          let tls = Configuration.TLS(trustRoots: self.roots([certificate]), clientCertificate: client)
          let error = try await self.failure(server, tls)
          XCTAssertNil(error, name)
          try await self.assertRefused(
            server,
            .init(trustRoots: self.roots([certificate])),
            ["client certificate"]
          )
        }
      }
    }
  }

  /// A certificate that a file names is trusted while the file names it.
  func testServerCertificateInAFileThatChanges() async throws {
    let mutual = try await TestCertificates.make()
    for (usage, constraint) in zip(Self.usages, Self.constraints) {
      let extensions = [usage, constraint].compactMap { $0 }
      let certificate = try await TestCertificate.make("pinned", extensions)
      let renewed = try await TestCertificate.make("pinned", extensions, key: certificate)
      try await withTemporaryFolder { folder in
        let (path, chain, key) = ("\(folder)/roots.pem", "\(folder)/chain.pem", "\(folder)/key.pem")
        try mutual.clientCertificatePEM.write(toFile: chain, atomically: true, encoding: .utf8)
        try mutual.clientKeyPEM.write(toFile: key, atomically: true, encoding: .utf8)
        let tls = Configuration.TLS(
          trustRoots: .pemFile(path),
          clientCertificate: .pemFiles(chain: chain, privateKey: key),
          fileCheckInterval: .zero
        )
        try await self.withServer(certificate, mutual: mutual) { server in
          // One client, and a new connection for each call, because each server closes it.
          let client = try TestClient(
            Origin(scheme: .https, host: "localhost", port: server.port),
            Configuration(
              version: .http1Only,
              timeouts: .init(idle: .zero),
              tls: tls,
              channel: .init(backoff: .quick)
            )
          )
          let files = [(mutual.authorityPEM, false), (certificate.pem, true), (renewed.pem, false)]
          for (pem, isTrusted) in files + [(renewed.pem + certificate.pem, true)] {
            try pem.write(toFile: path, atomically: true, encoding: .utf8)
            let connections = server.journal.snapshot.acceptedConnections
            // Calls fail at once until the client has tried again.
            try await eventually(isTrusted ? "trusted" : "refused") {
              if case .response = try await client.call().start().outcome() { isTrusted } else { !isTrusted }
            }
            XCTAssertGreaterThan(server.journal.snapshot.acceptedConnections, connections)
            try await eventually("closed") { server.journal.snapshot.openConnections == 0 }
          }
          await client.shutdown()
        }
      }
    }
  }

  func testServerCertificateThatIsRefused() async throws {
    for extensions in [
      ["basicConstraints=CA:FALSE", "keyUsage=digitalSignature"], ["basicConstraints=CA:TRUE"], [],
    ] {
      let expired = try await TestCertificate.make("pinned", extensions, validity: .past)
      try await self.withServer(expired) { server in
        let tls = Configuration.TLS(trustRoots: self.roots([expired]))
        try await self.assertRefused(server, tls, ["expired", "2020-02-01T00:00:00Z"])
      }
      let future = try await TestCertificate.make("pinned", extensions, validity: .future)
      try await self.withServer(future) { server in
        let tls = Configuration.TLS(trustRoots: self.roots([future]))
        try await self.assertRefused(server, tls, ["not valid yet", "2098-01-01T00:00:00Z"])
      }
      let identifier = ["subjectKeyIdentifier=0102030405060708"]
      let certificate = try await TestCertificate.make("pinned", extensions + identifier)
      let namesake = try await TestCertificate.make("pinned", extensions + identifier)
      let renewed = try await TestCertificate.make("pinned", extensions + identifier, key: certificate)
      try await self.withServer(certificate) { server in
        var tls = Configuration.TLS(trustRoots: self.roots([certificate]), serverName: "other.example")
        try await self.assertRefused(server, tls, ["'other.example'", "localhost, 127.0.0.1"])
        // The address that a name resolves to does not count.
        tls.serverName = "127.0.0.1.example"
        try await self.assertRefused(server, tls, ["hostname mismatch"])
        for other in [namesake, renewed] {
          let tls = Configuration.TLS(trustRoots: self.roots([other]))
          try await self.assertRefused(server, tls, ["CN=pinned", "another certificate"])
        }
      }
    }
    let client = try await TestCertificate.make(
      "pinned",
      ["keyUsage=digitalSignature", "extendedKeyUsage=clientAuth"]
    )
    try await self.withServer(client) { server in
      try await self.assertRefused(server, .init(trustRoots: self.roots([client])), ["extended key usage"])
    }
  }

  /// The key of one server cannot make certificates for others.
  func testServerCertificateIsNoAuthority() async throws {
    for extensions in [
      ["basicConstraints=CA:FALSE"], ["basicConstraints=CA:FALSE", "keyUsage=digitalSignature"],
      // Without basic constraints it is none either.
      [], ["keyUsage=digitalSignature"], ["keyUsage=digitalSignature,keyCertSign"],
    ] {
      let certificate = try await TestCertificate.make("pinned", extensions)
      let forged = try await TestCertificate.make("forged", extensions, issuer: certificate)
      let authority = try await TestCertificate.make("authority", Self.authority)
      for issuers in [[], [certificate]] {
        try await self.withServer(forged, issuers: issuers) { server in
          for roots in [[certificate], [authority, certificate]] {
            let tls = Configuration.TLS(trustRoots: self.roots(roots))
            try await self.assertRefused(server, tls, ["'CN=pinned'", "no certificate authority"])
          }
        }
      }
    }
  }

  /// Neither can the key of a server whose certificate is trusted beside the authority that has issued it.
  func testIssuedServerCertificateIsNoAuthority() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    for extensions in [[], ["basicConstraints=CA:FALSE"], ["keyUsage=digitalSignature,keyCertSign"]] {
      let certificate = try await TestCertificate.make("pinned", extensions, issuer: root)
      let forged = try await TestCertificate.make("forged", issuer: certificate)
      for issuers in [[], [certificate], [certificate, root]] {
        try await self.withServer(forged, issuers: issuers) { server in
          for roots in [[root, certificate], [certificate, root], [certificate]] {
            let tls = Configuration.TLS(trustRoots: self.roots(roots))
            try await self.assertRefused(server, tls, ["not accepted"])
          }
        }
      }
      try await self.withServer(certificate) { server in
        for roots in [[root, certificate], [certificate]] {
          let error = try await self.failure(server, .init(trustRoots: self.roots(roots)))
          XCTAssertNil(error, "\(extensions)")
        }
      }
    }
  }

  /// A pinned server may show its issuer, too, even if that is trusted but no authority.
  func testPinnedServerBelowACertificateThatIsNoAuthority() async throws {
    let issuer = try await TestCertificate.make("issuer")
    let pinned = try await TestCertificate.make("pinned", issuer: issuer)
    try await self.withServer(pinned, issuers: [issuer]) { server in
      let error = try await self.failure(server, .init(trustRoots: self.roots([issuer, pinned])))
      XCTAssertNil(error)
      try await self.assertRefused(
        server,
        .init(trustRoots: self.roots([issuer])),
        ["'CN=issuer'", "no certificate authority"]
      )
    }
  }

  /// OpenSSL's form of a certificate does not make authorities of the others.
  func testTrustedCertificateBlock() async throws {
    func trusted(_ certificate: TestCertificate) -> String {
      certificate.pem.replacingOccurrences(of: " CERTIFICATE-", with: " TRUSTED CERTIFICATE-")
    }
    let authority = try await TestCertificate.make("authority", Self.authority)
    let signed = try await TestCertificate.make("signed", issuer: authority)
    for extensions in [[], ["basicConstraints=CA:FALSE"]] {
      let pinned = try await TestCertificate.make("pinned", extensions)
      let forged = try await TestCertificate.make("forged", issuer: pinned)
      let both = Configuration.TLS(trustRoots: .pemBytes(Array((trusted(authority) + pinned.pem).utf8)))
      // Nothing that could be trusted is left: no server is, and the system's roots do not step in.
      let none = Configuration.TLS(trustRoots: .pemBytes(Array(trusted(pinned).utf8)))
      for issuers in [[], [pinned]] {
        try await self.withServer(forged, issuers: issuers) { server in
          try await self.assertRefused(server, both, ["not accepted"])
          try await self.assertRefused(server, none, ["not accepted"])
        }
      }
      try await self.withServer(signed) { server in
        let error = try await self.failure(server, both)
        XCTAssertNil(error)
        try await self.assertRefused(server, none, ["not accepted"])
      }
    }
  }

  // MARK: Authorities

  /// An authority whose extended key usage leaves out servers does not vouch for any.
  func testAuthorityThatIsNotForServers() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let usage = ["extendedKeyUsage=clientAuth"]
    let intermediate = try await TestCertificate.make("clients", Self.authority + usage, issuer: root)
    let selfSigned = try await TestCertificate.make("clients", Self.authority + usage)
    let cases = [
      (intermediate, [intermediate]), (intermediate, [root, intermediate]), (selfSigned, [selfSigned]),
    ]
    for (issuer, roots) in cases {
      let leaf = try await TestCertificate.make("server", issuer: issuer)
      for issuers in [[], [issuer]] {
        try await self.withServer(leaf, issuers: issuers) { server in
          let tls = Configuration.TLS(trustRoots: self.roots(roots))
          try await self.assertRefused(server, tls, ["'CN=clients'", "extended key usage"])
        }
      }
    }
    let good = try await TestCertificate.make(
      "servers",
      Self.authority + ["extendedKeyUsage=serverAuth"],
      issuer: root
    )
    try await self.withServer(try await TestCertificate.make("server", issuer: good)) { server in
      let error = try await self.failure(server, .init(trustRoots: self.roots([good])))
      XCTAssertNil(error)
    }
  }

  /// Roots from before there were extensions count, but nothing else that has none.
  func testAuthoritiesOfVersion1() async throws {
    let old = try await TestCertificate.make("old", version1: true)
    let lines = old.pem.split(separator: "\n").filter { !$0.hasPrefix("-") }
    let der = try XCTUnwrap(Data(base64Encoded: lines.joined()))
    guard der.range(of: Data([0xa0, 0x03, 0x02, 0x01])) == nil else {
      throw XCTSkip("this OpenSSL makes no certificates of version 1")
    }
    try await self.withServer(try await TestCertificate.make("server", issuer: old)) { server in
      let error = try await self.failure(server, .init(trustRoots: self.roots([old])))
      XCTAssertNil(error)
    }
    let root = try await TestCertificate.make("root", Self.authority)
    let issued = try await TestCertificate.make("issued", issuer: root, version1: true)
    let forged = try await TestCertificate.make("forged", issuer: issued)
    for issuers in [[], [issued]] {
      try await self.withServer(forged, issuers: issuers) { server in
        for roots in [[issued], [root, issued]] {
          let tls = Configuration.TLS(trustRoots: self.roots(roots))
          try await self.assertRefused(server, tls, ["'CN=issued'", "no certificate authority"])
        }
      }
    }
  }

  func testIntermediateThatIsATrustRoot() async throws {
    let mutual = try await TestCertificates.make()
    let root = try await TestCertificate.make("root", Self.authority)
    let intermediate = try await TestCertificate.make("intermediate", Self.authority, issuer: root)
    let lower = try await TestCertificate.make("lower", Self.authority, issuer: intermediate)
    let server = try await TestCertificate.make("server", issuer: intermediate)
    let other = try await TestCertificate.make("other", issuer: lower)
    let tls = Configuration.TLS(
      trustRoots: self.roots([intermediate]),
      clientCertificate: .pemBytes(
        chain: Array(mutual.clientCertificatePEM.utf8),
        privateKey: Array(mutual.clientKeyPEM.utf8)
      )
    )
    let chains = [
      (server, []), (server, [intermediate]), (server, [intermediate, root]),
      (other, [lower]), (other, [lower, intermediate, root]),
    ]
    for (certificate, issuers) in chains {
      try await self.withServer(certificate, issuers: issuers, mutual: mutual) { server in
        let error = try await self.failure(server, tls)
        XCTAssertNil(error, "\(issuers.count)")
        var wrong = tls
        wrong.serverName = "other.example"
        try await self.assertRefused(server, wrong, ["'other.example'"])
      }
    }
  }

  func testChainsToAnIntermediateThatAreRefused() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let intermediate = try await TestCertificate.make("intermediate", Self.authority, issuer: root)
    let namesake = try await TestCertificate.make("intermediate", Self.authority, issuer: root)
    let old = try await TestCertificate.make("intermediate", Self.authority, validity: .past, issuer: root)
    let weak = try await TestCertificate.make("weak", ["basicConstraints=CA:FALSE"], issuer: intermediate)
    let closed = try await TestCertificate.make(
      "closed",
      Self.authority,
      validity: .past,
      issuer: intermediate
    )
    func leaf(
      _ issuer: TestCertificate,
      _ extensions: [String] = [],
      _ validity: TestCertificate.Validity = .current
    ) async throws -> TestCertificate {
      try await TestCertificate.make("server", extensions, validity: validity, issuer: issuer)
    }
    let policy = ["policyConstraints=critical,requireExplicitPolicy:0"]
    let cases: [([TestCertificate], trusting: TestCertificate, [String])] = [
      ([try await leaf(namesake)], intermediate, ["'CN=intermediate'", "has not signed"]),
      ([try await leaf(namesake), namesake], intermediate, ["'CN=intermediate'", "has not signed"]),
      ([try await leaf(intermediate, [], .past), intermediate], intermediate, ["it has expired"]),
      ([try await leaf(intermediate, [], .future)], intermediate, ["not valid yet"]),
      ([try await leaf(intermediate, ["extendedKeyUsage=clientAuth"])], intermediate, ["a server"]),
      ([try await leaf(intermediate, policy)], intermediate, ["policy constraints"]),
      ([try await leaf(weak), weak], intermediate, ["not accepted"]),
      ([try await leaf(closed), closed], intermediate, ["'CN=closed' has expired"]),
      ([try await leaf(old), old], old, ["'CN=intermediate'", "expired"]),
    ]
    for (chain, root, words) in cases {
      try await self.withServer(chain[0], issuers: Array(chain.dropFirst())) { server in
        try await self.assertRefused(server, .init(trustRoots: self.roots([root])), words)
      }
    }
  }

  /// Chains to authorities that sign themselves are up to BoringSSL, whatever else is trusted.
  func testChainsToARootAreVerifiedInTheStandardWay() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let intermediate = try await TestCertificate.make("intermediate", Self.authority, issuer: root)
    let unrelated = try await TestCertificate.make("unrelated", Self.authority, issuer: intermediate)
    let pinned = try await TestCertificate.make("pinned", ["keyUsage=digitalSignature"])
    let policy = ["policyConstraints=critical,requireExplicitPolicy:0"]
    let good = try await TestCertificate.make("good", issuer: intermediate)
    let bad = [
      try await TestCertificate.make("expired", validity: .past, issuer: intermediate),
      try await TestCertificate.make("client", ["extendedKeyUsage=clientAuth"], issuer: intermediate),
      try await TestCertificate.make("policy", policy, issuer: intermediate),
      try await TestCertificate.make("stranger"),
    ]
    for roots in [[root], [root, pinned], [pinned, root, unrelated], [root, intermediate]] {
      let tls = Configuration.TLS(trustRoots: self.roots(roots))
      try await self.withServer(good, issuers: [intermediate]) { server in
        let error = try await self.failure(server, tls)
        XCTAssertNil(error)
        XCTAssertEqual(server.journal.snapshot.acceptedConnections, 1)
      }
      for certificate in bad {
        try await self.withServer(certificate, issuers: [intermediate]) { server in
          try await self.assertRefused(server, tls, ["not accepted"])
        }
      }
      // Also the root itself, sent by the server, changes nothing.
      try await self.withServer(bad[2], issuers: [intermediate, root]) { server in
        try await self.assertRefused(server, tls, ["not accepted"])
      }
    }
  }

  /// Whatever is trusted besides, each connection takes one handshake.
  func testOneHandshake() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let intermediate = try await TestCertificate.make("intermediate", Self.authority, issuer: root)
    let pinned = try await TestCertificate.make("pinned", ["keyUsage=digitalSignature"])
    let signed = try await TestCertificate.make("signed", issuer: root)
    let below = try await TestCertificate.make("below", issuer: intermediate)
    let unrelated = try await TestCertificate.make("unrelated", Self.authority)
    for roots in [[root, pinned, intermediate], [unrelated, intermediate, pinned, root]] {
      for certificate in [pinned, signed, below] {
        try await self.withServer(certificate) { server in
          let error = try await self.failure(server, .init(trustRoots: self.roots(roots)))
          XCTAssertNil(error)
          XCTAssertEqual(server.journal.snapshot.acceptedConnections, 1)
        }
      }
    }
    try await self.withServer(pinned) { server in
      _ = try await self.failure(server, .init(trustRoots: self.roots([unrelated])))
      XCTAssertEqual(server.journal.snapshot.acceptedConnections, 1)
    }
  }

  /// Of two trust roots with the same name and key, the second one counts, too.
  func testOldAndNewCertificateOfAServer() async throws {
    for extensions in Self.constraints.map({ [$0].compactMap { $0 } }) {
      let old = try await TestCertificate.make("pinned", extensions)
      let new = try await TestCertificate.make("pinned", extensions, key: old)
      for certificate in [old, new] {
        try await self.withServer(certificate) { server in
          for roots in [[old, new], [new, old]] {
            let error = try await self.failure(server, .init(trustRoots: self.roots(roots)))
            XCTAssertNil(error)
          }
        }
      }
    }
  }
}
