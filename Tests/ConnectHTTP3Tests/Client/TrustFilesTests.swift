internal import Connect
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import XCTest

/// SPIFFE bundles and revocation lists, over TCP and QUIC alike.
final class TrustFilesTests: XCTestCase {
  private typealias TLS = NIOHTTPClient.Configuration.TLS
  private typealias Transport = CertificateServers.Transport

  private static let authority = ["basicConstraints=critical,CA:TRUE"]

  private let folder = FileManager.default.temporaryDirectory.appending(path: "connect-trust-\(UUID())")

  override func setUp() async throws {
    try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
  }

  override func tearDown() async throws {
    try? FileManager.default.removeItem(at: self.folder)
  }

  /// Returns the path.
  @discardableResult
  private func write(_ bytes: Data, to name: String) throws -> String {
    let url = self.folder.appending(path: name)
    try bytes.write(to: url, options: .atomic)
    return url.path()
  }

  private func write(_ text: String, to name: String) throws -> String {
    try self.write(Data(text.utf8), to: name)
  }

  /// The content of a PEM block, in base64.
  private static func base64(_ pem: String) -> String {
    pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
  }

  private static func text(_ result: Result<String, ConnectError>) -> String {
    switch result {
    case .success: "accepted"
    case .failure(let error): error.message ?? "\(error.code)"
    }
  }

  private static func text(_ record: StreamRecord) -> String {
    record.failure.map { $0.error.message ?? "\($0.error.code)" } ?? "accepted"
  }

  /// Lets each request have a connection of its own, if the last one was some milliseconds ago.
  private static func renewing(_ configuration: inout NIOHTTPClient.Configuration) {
    configuration.timeouts.idle = .milliseconds(1)
  }

  /// Makes requests until one ends so, since new contents count for new connections.
  private func wait(_ client: CertificateServers.Client, for words: String, line: UInt = #line) async {
    var text = ""
    for _ in 0..<500 {
      text = Self.text(await client())
      if text.contains(words) { return }
      try? await Task.sleep(for: .milliseconds(5))
    }
    XCTFail("not '\(words)', but '\(text)'", line: line)
  }

  // MARK: SPIFFE bundles

  private static func key(_ certificate: TestCertificate, use: String = "x509-svid") -> String {
    #"{"kty": "EC", "use": "\#(use)", "x5c": ["\#(self.base64(certificate.pem))"]}"#
  }

  private static func bundle(_ keys: String...) -> String {
    #"{"spiffe_sequence": 7, "spiffe_refresh_hint": 300, "keys": [\#(keys.joined(separator: ", "))]}"#
  }

  func testBundles() async throws {
    let root = try await TestCertificate.make("root", Self.authority, names: "URI:spiffe://prod.test")
    let other = try await TestCertificate.make("other", Self.authority, names: nil)
    let svid = "DNS:localhost,URI:spiffe://prod.test/a"
    let chains = [
      [try await TestCertificate.make("workload", names: "URI:spiffe://prod.test/a", issuer: root)],
      [try await TestCertificate.make("stranger", names: "URI:spiffe://stage.test/a", issuer: root)],
      [try await TestCertificate.make("host", names: "DNS:localhost", issuer: root)],
      [try await TestCertificate.make("both", names: "DNS:localhost,URI:spiffe://prod.test/b", issuer: root)],
      [try await TestCertificate.make("foreign", names: "URI:spiffe://prod.test/a", issuer: other)],
      [try await TestCertificate.make("authority", Self.authority, names: svid, issuer: root)],
      [
        try await TestCertificate.make(
          "signer",
          ["keyUsage=digitalSignature,cRLSign"],
          names: svid,
          issuer: root
        )
      ],
      [try await TestCertificate.make("domain", names: "DNS:localhost,URI:spiffe://prod.test", issuer: root)],
    ]
    let set = Self.bundle(Self.key(other, use: "jwt-svid"), #"{"kty": "RSA"}"#, Self.key(root))
    let map = #"{"trust_domains": {"stage.test": \#(Self.bundle(Self.key(other))), "prod.test": \#(set)}}"#
    let files = [try self.write(set, to: "set.json"), try self.write(map, to: "map.json")]
    let modes: [(mode: TLS.CertificateVerification, accepted: Set<Int>)] = [
      (.chainOnly, [0, 3]), (.full, [3]), (.names([.spiffeID("spiffe://prod.test/a")]), [0]),
    ]
    try await CertificateServers.with(chains) { servers in
      for (number, (mode, accepted)) in modes.enumerated() {
        for server in chains.indices {
          for transport in Transport.allCases {
            let roots = TLS.TrustRoots.spiffeBundleFile(
              files[(number + server) % 2],
              trustDomain: "prod.test"
            )
            let tls = TLS(trustRoots: roots, certificateVerification: mode)
            let text = Self.text(await servers.get(server, over: transport, tls))
            XCTAssertEqual(
              text == "accepted",
              accepted.contains(server),
              "\(mode), \(server), \(transport): \(text)"
            )
            if server > 4 { XCTAssertTrue(text.contains("so it is no workload's"), text) }
            if server == 1, mode == .chainOnly {
              XCTAssertTrue(
                text.contains("not for 'spiffe://prod.test/*', which the SPIFFE bundle is for"),
                text
              )
            }
          }
        }
      }
    }
  }

  func testBundlesThatCannotBeUsed() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let leaf = try await TestCertificate.make("leaf", issuer: root)
    let cases: [(text: String, words: String)] = [
      ("{", "no JSON, line 1"), ("[]", "expected an object, found a list"), ("{}", #""keys" is missing"#),
      (#"{"keys": {}}"#, "keys: expected a list"), (Self.bundle(), "keys: has no key whose"),
      (Self.bundle(#"{"use": "x509-svid"}"#), #"keys[0]: "x5c" is missing"#),
      (Self.bundle(#"{"use": "x509-svid", "x5c": []}"#), "keys[0].x5c: has to have exactly one certificate"),
      (Self.bundle(#"{"use": "x509-svid", "x5c": ["AAAA"]}"#), "keys[0].x5c[0]: is no certificate"),
      (Self.bundle(Self.key(root), Self.key(leaf)), "keys[1].x5c[0]: 'CN=leaf' is no authority"),
      (#"{"trust_domains": {"stage.test": {}}}"#, #"trust_domains: "prod.test" is missing"#),
    ]
    try await CertificateServers.with([[root]]) { servers in
      for (number, (text, words)) in cases.enumerated() {
        let path = try self.write(text, to: "bundle.json")
        let tls = TLS(trustRoots: .spiffeBundleFile(path, trustDomain: "prod.test"))
        guard case .failure(let error) = await servers.get(0, over: Transport.allCases[number % 2], tls)
        else {
          XCTFail("accepted: \(text)")
          continue
        }
        XCTAssertEqual(error.code, .failedPrecondition)
        XCTAssertTrue(error.message?.contains("the file \(path) is no SPIFFE bundle: ") == true, "\(error)")
        XCTAssertTrue(error.message?.contains(words) == true, "\(error) for \(text)")
      }
      let path = try self.write(Self.bundle(Self.key(root)), to: "bundle.json")
      let wrong = TLS(trustRoots: .spiffeBundleFile(path, trustDomain: "spiffe://prod.test"))
      let wrongText = Self.text(await servers.get(0, over: .tcp, wrong))
      XCTAssertTrue(wrongText.contains("the trust domain 'spiffe://prod.test'"), wrongText)
      let missing = TLS(trustRoots: .spiffeBundleFile("/does/not/exist", trustDomain: "prod.test"))
      let text = Self.text(await servers.get(0, over: .quic, missing))
      XCTAssertTrue(text.contains("/does/not/exist cannot be read"), text)
    }
  }

  func testBundlesAreReadAgain() async throws {
    let old = try await TestCertificate.make("old", Self.authority)
    let new = try await TestCertificate.make("new", Self.authority)
    let chains = [
      [try await TestCertificate.make("one", names: "URI:spiffe://prod.test/a", issuer: old)],
      [try await TestCertificate.make("two", names: "URI:spiffe://prod.test/a", issuer: new)],
    ]
    try await CertificateServers.with(chains) { servers in
      for transport in Transport.allCases {
        let log = LogRecord()
        let path = try self.write(Self.bundle(Self.key(old)), to: "bundle.json")
        let tls = TLS(
          trustRoots: .spiffeBundleFile(path, trustDomain: "prod.test"),
          certificateVerification: .names([.spiffeID("spiffe://prod.test/a")]),
          fileCheckInterval: .zero
        )
        try await servers.withClient(0, over: transport, tls, Self.renewing) { one in
          try await servers.withClient(1, over: transport, tls, logger: log.logger, Self.renewing) { two in
            await self.wait(one, for: "accepted")
            await self.wait(two, for: "unknown CA")
            _ = try self.write(Self.bundle(Self.key(new)), to: "bundle.json")
            await self.wait(one, for: "unknown CA")
            await self.wait(two, for: "accepted")
            // Unusable contents change nothing: the client has seen them, and goes on with the ones before.
            _ = try self.write("{", to: "bundle.json")
            try await log.wait(for: "the TLS files have changed and cannot be used") { _ = await two() }
            await self.wait(two, for: "accepted")
            await self.wait(one, for: "unknown CA")
          }
        }
      }
    }
  }

  // MARK: Revocation lists

  func testRevocationLists() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let namesake = try await TestCertificate.make("root", Self.authority)
    let middle = try await TestCertificate.make("middle", Self.authority, issuer: root)
    let bad = try await TestCertificate.make("bad", issuer: middle)
    let good = try await TestCertificate.make("good", issuer: middle)
    let direct = try await TestCertificate.make("direct", issuer: root)
    let chains = [[bad, middle], [good, middle], [direct]]
    let revokingBad = try await middle.revocationList(of: [bad])
    let revokingMiddle = try await root.revocationList(of: [middle])
    let empty = try await root.revocationList()
    let der = try XCTUnwrap(Data(base64Encoded: Self.base64(revokingBad).replacing("X509 CRL", with: "")))
    let files: [String: Data] = [
      "bad": Data(revokingBad.utf8), "bad-der": der, "middle": Data(revokingMiddle.utf8),
      "empty": Data(empty.utf8),
      "all": Data("\u{feff}\(root.pem)\(empty)\(revokingBad)".utf8),
      "old": Data(try await middle.revocationList(validity: .past).utf8),
      "forged": Data(try await namesake.revocationList().utf8),
    ]
    var paths: [String: String] = [:]
    for (name, bytes) in files { paths[name] = try self.write(bytes, to: name) }
    let revoked = "it has been revoked by 'CN=middle'"
    let issuerRevoked = "the certificate of its issuer 'CN=middle' has been revoked by 'CN=root'"
    let accepted = "accepted"
    let cases: [(lists: [String], expected: [String])] = [
      (["bad"], [revoked, accepted, accepted]), (["bad-der", "empty"], [revoked, accepted, accepted]),
      (["middle"], [issuerRevoked, issuerRevoked, accepted]), (["all"], [revoked, accepted, accepted]),
      (
        ["old"],
        Array(repeating: "of 'CN=middle' was valid until 2020-02-01T00:00:00Z", count: 2) + [accepted]
      ),
      (["old", "bad"], [revoked, accepted, accepted]),
      (["forged"], Array(repeating: "list of 'CN=root' is not signed by that authority", count: 3)),
      (["forged", "empty"], [accepted, accepted, accepted]),
    ]
    try await CertificateServers.with(chains) { servers in
      for (number, (lists, expected)) in cases.enumerated() {
        for server in chains.indices {
          let tls = TLS(
            trustRoots: .pemBytes(Array(root.pem.utf8)),
            revocationLists: lists.compactMap { paths[$0] }
          )
          // Each list meets each transport.
          for transport in Transport.allCases
          where server == 0 || (number + server) % 2 == (transport == .tcp ? 0 : 1) {
            let text = Self.text(await servers.get(server, over: transport, tls))
            XCTAssertTrue(text.contains(expected[server]), "\(lists), \(server), \(transport): \(text)")
          }
        }
      }
      // A pin counts by itself, and nothing counts without verification.
      for tls in [
        TLS(trustRoots: .pemBytes(Array(bad.pem.utf8)), revocationLists: [try XCTUnwrap(paths["bad"])]),
        TLS(certificateVerification: .none, revocationLists: [try XCTUnwrap(paths["bad"])]),
      ] {
        let text = Self.text(await servers.get(0, over: .tcp, tls))
        XCTAssertEqual(text, accepted)
      }
    }
  }

  func testRevocationListsThatCannotBeUsed() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let list = try await root.revocationList()
    let der = try XCTUnwrap(Data(base64Encoded: Self.base64(list)))
    let files = [
      Data(), Data("no list".utf8), Data(root.pem.utf8), Data(list.utf8.dropLast(40)), der.dropLast(),
      der + der,
    ]
    let parts: [(extensions: [String], words: String)] = [
      (["issuingDistributionPoint=critical,@part"], "it is for a part of the certificates only"),
      (["2.5.29.27=critical,DER:020101"], "it is a delta list"),
      (["1.2.3.4=critical,DER:0500"], "it has a critical extension that is not known here"),
      (["1.2.3.4=DER:0500"], ""),
    ]
    try await CertificateServers.with([[root]]) { servers in
      for (number, bytes) in files.enumerated() {
        let path = try self.write(bytes, to: "list")
        let tls = TLS(trustRoots: .pemBytes(Array(root.pem.utf8)), revocationLists: [path])
        let result = await servers.get(0, over: Transport.allCases[number % 2], tls)
        guard case .failure(let error) = result else { return XCTFail("accepted: \(number)") }
        XCTAssertEqual(error.code, .failedPrecondition)
        let words = "no readable certificate revocation list (PEM or DER) in the file \(path)"
        XCTAssertTrue(error.message?.contains(words) == true, "\(number): \(error)")
      }
      for (number, (extensions, words)) in parts.enumerated() {
        let path = try self.write(try await root.revocationList(extensions), to: "list")
        let tls = TLS(trustRoots: .pemBytes(Array(root.pem.utf8)), revocationLists: [path])
        let result = await servers.get(0, over: Transport.allCases[number % 2], tls)
        guard case .failure(let error) = result else {
          XCTAssertEqual(words, "", "accepted")
          continue
        }
        XCTAssertEqual(error.code, .failedPrecondition)
        let start = "the revocation list of 'CN=root' in the file \(path) cannot be used: \(words)"
        XCTAssertTrue(error.message?.contains(start) == true, "\(number): \(error)")
      }
      let missing = TLS(trustRoots: .pemBytes(Array(root.pem.utf8)), revocationLists: ["/does/not/exist"])
      let text = Self.text(await servers.get(0, over: .tcp, missing))
      XCTAssertTrue(text.contains("/does/not/exist cannot be read"), text)
    }
  }

  func testRevocationListsAreReadAgain() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let own = try await TestCertificate.make("own", issuer: root)
    let (before, after) = (try await root.revocationList(), try await root.revocationList(of: [own]))
    try await CertificateServers.with([[own]]) { servers in
      for transport in Transport.allCases {
        let path = try self.write(before, to: "list")
        let tls = TLS(
          trustRoots: .pemBytes(Array(root.pem.utf8)),
          revocationLists: [path],
          fileCheckInterval: .zero
        )
        try await servers.withClient(0, over: transport, tls, Self.renewing) { client in
          await self.wait(client, for: "accepted")
          _ = try self.write(after, to: "list")
          await self.wait(client, for: "it has been revoked by 'CN=root'")
          // Unusable contents do not bring the server back.
          _ = try self.write("no list", to: "list")
          let text = Self.text(await client())
          XCTAssertTrue(text.contains("it has been revoked"), text)
          _ = try self.write(before, to: "list")
          await self.wait(client, for: "accepted")
        }
      }
    }
  }
}
