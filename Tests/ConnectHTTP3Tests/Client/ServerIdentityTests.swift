internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import LoopbackServer
internal import XCTest

/// Who may be whom, over TCP and over QUIC alike.
final class ServerIdentityTests: XCTestCase {
  private typealias TLS = NIOHTTPClient.Configuration.TLS
  private typealias Transport = CertificateServers.Transport

  private static let authority = ["basicConstraints=critical,CA:TRUE"]

  private static func trusting(_ certificates: TestCertificate...) -> TLS {
    TLS(trustRoots: .pemBytes(Array(certificates.map(\.pem).joined().utf8)))
  }

  private func message(_ result: Result<String, ConnectError>) -> String? {
    guard case .failure(let error) = result else { return nil }
    return error.message ?? "\(error.code)"
  }

  // MARK: Names

  /// Subject alternative names in OpenSSL's form, and whom they stand for. The common name is `local.test` always.
  private static let certificates: [(names: String?, hosts: Set<String>)] = [
    ("DNS:local.test", ["local.test", "LOCAL.test."]),
    ("DNS:LOCAL.TEST,IP:10.9.9.9", ["local.test", "LOCAL.test."]),
    ("DNS:*.local.test", ["a.local.test", "xn--bcher-kva.local.test"]),
    ("DNS:other.test,DNS:A.Local.Test", ["a.local.test"]),
    ("DNS:*.test", []), ("DNS:*.test,IP:10.9.9.9", []), ("DNS:*", []),
    ("DNS:lo*.test,DNS:*cal.test,DNS:l*l.test", []), ("DNS:a*.local.test,DNS:*a.local.test", []),
    ("DNS:xn--*.local.test", []), ("DNS:a.*.test,DNS:*.*.test", []), ("DNS:local.test.", []),
    (nil, []), ("URI:https://local.test,email:local.test@local.test", []),
    ("IP:127.0.0.1", ["127.0.0.1"]), ("IP:127.0.0.2,IP:::1", ["127.0.0.2", "::1"]),
    ("DNS:127.0.0.1,DNS:127.0.0.2,DNS:*.0.0.1,DNS:localhost", ["localhost"]),
  ]

  private static let hosts = [
    "local.test", "LOCAL.test.", "a.local.test", "b.a.local.test", "xn--bcher-kva.local.test", "localhost",
    "127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1",
  ]

  func testCertificatesAndNames() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    var chains: [[TestCertificate]] = []
    for (names, _) in Self.certificates {
      chains.append([try await TestCertificate.make("local.test", names: names, issuer: root)])
    }
    let tls = Self.trusting(root)
    try await CertificateServers.with(chains) { servers in
      for (number, certificate) in Self.certificates.enumerated() {
        for (index, host) in Self.hosts.enumerated() {
          for transport in Transport.allCases {
            // The name comes from the origin, the configuration or the endpoint. The address of the socket never counts.
            let result: Result<String, ConnectError>
            switch (number + index) % 3 {
            case 0:
              result = await servers.get(number, over: transport, host: host, tls)
            case 1:
              var named = tls
              named.serverName = host
              result = await servers.get(number, over: transport, host: "127.0.0.1", named)
            default:
              var other = tls
              other.serverName = "unrelated.test"
              result = await servers.get(number, over: transport, endpointName: host, other)
            }
            let message = self.message(result)
            let what =
              "\(certificate.names ?? "no names") for \(host) over \(transport): \(message ?? "accepted")"
            XCTAssertEqual(message == nil, certificate.hosts.contains(host), what)
            if let message { XCTAssertTrue(message.contains("hostname mismatch"), what) }
          }
        }
      }
    }
  }

  /// What is sent is a name in its usual form, and never an address (RFC 6066, section 3).
  func testNamesThatAreSent() async throws {
    let names = "DNS:local.test,DNS:xn--bcher-kva.test,IP:127.0.0.1,IP:::1"
    let certificate = try await TestCertificate.make("server", names: names)
    let cases = [
      ("local.test", "local.test"), ("Local.TEST.", "local.test"),
      ("XN--BCHER-KVA.test", "xn--bcher-kva.test"),
      ("127.0.0.1", ""), ("::1", ""), ("[::1]", ""), ("127.0.0.1.", ""),
    ]
    try await CertificateServers.with([[certificate]]) { servers in
      for (name, sent) in cases {
        var tls = Self.trusting(certificate)
        tls.serverName = name
        let given = await servers.get(0, over: .quic, tls)
        XCTAssertEqual(try given.get(), sent, name)
        // Over TCP the names are checked where the bytes can be seen.
        let tcp = await servers.get(0, over: .tcp, tls)
        XCTAssertNil(self.message(tcp), name)
      }
    }
  }

  func testNamesThatCannotBeUsed() async throws {
    let certificate = try await TestCertificate.make("server")
    let names = [
      "", "*.test", "büro.test", "local.test:443", "https://local.test", "127.1", "a..b", "[local.test]",
      "a b",
    ]
    try await CertificateServers.with([[certificate]]) { servers in
      for transport in Transport.allCases {
        for name in names {
          for isEndpoints in [false, true] {
            var tls = Self.trusting(certificate)
            if !isEndpoints { tls.serverName = name }
            let result = await servers.get(
              0,
              over: transport,
              endpointName: isEndpoints ? name : nil,
              tls
            )
            guard case .failure(let error) = result else {
              XCTFail("accepted: \(name)")
              continue
            }
            XCTAssertEqual(error.code, .failedPrecondition, "\(error)")
            XCTAssertTrue(error.isFinal)
            let message = error.message ?? ""
            XCTAssertTrue(message.contains("server name '\(name)' cannot be used: "), message)
          }
        }
        let host = await servers.get(0, over: transport, host: "a..b", Self.trusting(certificate))
        guard case .failure(let error) = host else { return XCTFail("accepted") }
        XCTAssertEqual(error.code, .invalidArgument, "\(error)")
      }
      XCTAssertEqual(servers.requestCount, 0)
    }
  }

  // MARK: Renewed authorities

  func testRenewedAuthorities() async throws {
    let oldRoot = try await TestCertificate.make("root", Self.authority, validity: .past)
    let root = try await TestCertificate.make("root", Self.authority, key: oldRoot)
    let old = try await TestCertificate.make("middle", Self.authority, validity: .past, issuer: root)
    let new = try await TestCertificate.make("middle", Self.authority, issuer: root, key: old)
    let direct = try await TestCertificate.make("direct", issuer: root)
    let leaf = try await TestCertificate.make("leaf", issuer: new)
    let chains = [[direct], [leaf, old, new], [leaf, new, old], [leaf, old], [leaf]]
    try await CertificateServers.with(chains) { servers in
      for transport in Transport.allCases {
        for roots in [Self.trusting(oldRoot, root), Self.trusting(root, oldRoot)] {
          for number in 0...2 {
            let result = await servers.get(number, over: transport, roots)
            XCTAssertNil(self.message(result), "\(number) over \(transport)")
          }
        }
        for roots in [Self.trusting(old, new), Self.trusting(new, old)] {
          for number in 1...4 {
            let result = await servers.get(number, over: transport, roots)
            XCTAssertNil(self.message(result), "\(number) over \(transport)")
          }
        }
        let cases: [(chain: Int, TLS, words: String)] = [
          (0, Self.trusting(oldRoot), "the trust root 'CN=root' that has issued it has expired"),
          (1, Self.trusting(oldRoot), "the trust root 'CN=root' of its issuers has expired"),
          (3, Self.trusting(root), "the certificate of its issuer 'CN=middle' has expired"),
          (3, Self.trusting(oldRoot, root), "the certificate of its issuer 'CN=middle' has expired"),
          (4, Self.trusting(old), "the trust root 'CN=middle' that has issued it has expired"),
          (4, Self.trusting(root), "unknown CA"),
        ]
        for (chain, roots, words) in cases {
          let result = await servers.get(chain, over: transport, roots)
          let message = self.message(result) ?? "accepted"
          XCTAssertTrue(message.contains(words), "\(chain) over \(transport): \(message)")
        }
      }
    }
  }

  // MARK: Files

  /// Files that editors have put a byte order mark in front of, and those with the line ends of Windows.
  func testByteOrderMarks() async throws {
    let mutual = try await TestCertificates.make()
    let unrelated = try await TestCertificate.make("unrelated", Self.authority)
    let root = try await TestCertificate.make("root", Self.authority)
    let server = try await TestCertificate.make("server", issuer: root)
    let mark = "\u{feff}"
    try await CertificateServers.with([[server]]) { servers in
      for ends in ["\n", "\r\n"] {
        func file(_ parts: String...) -> [UInt8] {
          Array(parts.map { mark + $0 }.joined().replacing("\n", with: ends).utf8)
        }
        for roots in [file(root.pem), file(root.pem, unrelated.pem), file(unrelated.pem, root.pem)] {
          let tls = TLS(
            trustRoots: .pemBytes(roots),
            clientCertificate: .pemBytes(
              chain: file(mutual.clientCertificatePEM),
              privateKey: file(mutual.clientKeyPEM)
            )
          )
          for transport in Transport.allCases {
            let result = await servers.get(0, over: transport, tls)
            XCTAssertNil(self.message(result), "\(transport)")
          }
        }
      }
      let wide = Array("\u{feff}\(root.pem)".utf16).flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }
      let result = await servers.get(0, over: .tcp, TLS(trustRoots: .pemBytes(wide)))
      XCTAssertTrue(self.message(result)?.contains("is in UTF-16: save it as UTF-8") == true)
    }
  }
}
