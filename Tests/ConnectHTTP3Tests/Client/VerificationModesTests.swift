internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import XCTest

/// How much of a server's certificate counts, over TCP and QUIC alike.
final class VerificationModesTests: XCTestCase {
  private typealias TLS = NIOHTTPClient.Configuration.TLS
  private typealias Transport = CertificateServers.Transport

  private static let authority = ["basicConstraints=critical,CA:TRUE"]
  private static let billing = "spiffe://prod.test/billing"

  private static func pem(_ certificates: TestCertificate...) -> [UInt8] {
    Array(certificates.map(\.pem).joined().utf8)
  }

  private static func text(_ record: StreamRecord) -> String {
    record.failure.map { $0.error.message ?? "\($0.error.code)" } ?? "accepted"
  }

  // MARK: The table

  /// The servers of the table, by their place.
  private enum Server: Int, CaseIterable {
    /// `*.local.test`, 127.0.0.1 and a URI.
    case names
    /// One SPIFFE ID, issued by an intermediate authority.
    case workload
    /// A SPIFFE ID and another URI.
    case twoURIs
    /// A SPIFFE ID with a query.
    case malformed
    /// The names and the SPIFFE ID, but expired.
    case expired
    /// The names and the SPIFFE ID, but of an authority that is not trusted.
    case foreign
    case unnamed
  }

  private static let modes: [(mode: TLS.CertificateVerification, accepted: Set<Server>)] = [
    (.full, [.names]),
    (.chainOnly, [.names, .workload, .twoURIs, .malformed, .unnamed]),
    (.none, Set(Server.allCases)),
    (.names([.dnsName("B.local.test."), .dnsName("x.test")]), [.names]),
    (.names([.dnsName("local.test")]), []),
    (.names([.ipAddress("127.0.0.1")]), [.names]),
    (.names([.uri("https://local.test/a")]), [.names]),
    (.names([.uri("https://local.test/A"), .uri("https://LOCAL.test/a")]), []),
    (.names([.spiffeID(billing)]), [.workload]),
    (.names([.spiffeID("spiffe://prod.test/b"), .spiffeID("\(billing)/a")]), []),
    (.names([.spiffeTrustDomain("prod.test")]), [.workload]),
    (.names([.spiffeTrustDomain("test"), .ipAddress("::1"), .dnsName("prod.test")]), []),
    (.names([.spiffeTrustDomain("prod.test"), .dnsName("b.local.test")]), [.names, .workload]),
  ]

  private func withServers(_ body: (CertificateServers, TestCertificate) async throws -> Void) async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let other = try await TestCertificate.make("other", Self.authority)
    let middle = try await TestCertificate.make("middle", Self.authority, issuer: root)
    let all = "DNS:*.local.test,IP:127.0.0.1,URI:\(Self.billing)"
    let chains = [
      [
        try await TestCertificate.make(
          "names",
          names: "DNS:*.local.test,IP:127.0.0.1,URI:https://local.test/a",
          issuer: root
        )
      ],
      [try await TestCertificate.make("workload", names: "URI:\(Self.billing)", issuer: middle), middle],
      [
        try await TestCertificate.make(
          "two",
          names: "URI:\(Self.billing),URI:https://local.test/b",
          issuer: root
        )
      ],
      [try await TestCertificate.make("malformed", names: "URI:\(Self.billing)?a", issuer: root)],
      [try await TestCertificate.make("expired", names: all, validity: .past, issuer: root)],
      [try await TestCertificate.make("foreign", names: all, issuer: other)],
      [try await TestCertificate.make("unnamed", names: nil, issuer: root)],
    ]
    try await CertificateServers.with(chains) { try await body($0, root) }
  }

  /// Each mode meets each server. The transports take turns where a chain is at fault, which is tested elsewhere.
  func testModesNamesAndChains() async throws {
    try await self.withServers { servers, root in
      for (number, row) in Self.modes.enumerated() {
        for server in Server.allCases {
          let isFaulty = server == .expired || server == .foreign || server == .unnamed
          for transport in Transport.allCases {
            if isFaulty, (number % 2 == 0) != (transport == .tcp) { continue }
            let tls = TLS(trustRoots: .pemBytes(Self.pem(root)), certificateVerification: row.mode)
            let result = await servers.get(server.rawValue, over: transport, host: "a.local.test", tls)
            let what = "\(row.mode) of \(server) over \(transport): \(result)"
            switch result {
            case .success:
              XCTAssertTrue(row.accepted.contains(server), what)
            case .failure(let error):
              XCTAssertFalse(row.accepted.contains(server), what)
              XCTAssertEqual(error.code, .unavailable, what)
              XCTAssertTrue(error.isFinal, what)
              let words =
                switch server {
                case .expired: "has expired"
                case .foreign: "unknown CA"
                default: "hostname mismatch"
                }
              XCTAssertTrue(error.message?.contains(words) == true, what)
            }
          }
        }
      }
    }
  }

  func testMessagesNameWhatWasExpected() async throws {
    try await self.withServers { servers, root in
      let mode = TLS.CertificateVerification.names([.spiffeTrustDomain("other.test"), .dnsName("x.test")])
      let tls = TLS(trustRoots: .pemBytes(Self.pem(root)), certificateVerification: mode)
      for transport in Transport.allCases {
        let port = servers.port(Server.workload.rawValue, over: transport)
        let result = await servers.get(Server.workload.rawValue, over: transport, tls)
        guard case .failure(let error) = result else { return XCTFail("accepted") }
        XCTAssertEqual(
          error.message,
          """
          TLS: hostname mismatch: the certificate of https://localhost:\(port) is not for 'spiffe://other.test/*' or \
          'x.test', but for spiffe://prod.test/billing
          """
        )
      }
    }
  }

  /// The peer's chain and what was negotiated are on the call, on reused connections too.
  func testCallsKnowTheirServer() async throws {
    try await self.withServers { servers, root in
      for transport in Transport.allCases {
        for mode in [TLS.CertificateVerification.chainOnly, .none] {
          let tls = TLS(trustRoots: .pemBytes(Self.pem(root)), certificateVerification: mode)
          try await servers.withClient(
            Server.workload.rawValue,
            over: transport,
            tls,
            { $0.timeouts.idle = .seconds(60) }
          ) {
            client in
            for isReused in [false, true] {
              let record = await client()
              let info = try XCTUnwrap(record.info, Self.text(record))
              XCTAssertEqual(info.isReused, isReused)
              let known = try XCTUnwrap(info.tls)
              XCTAssertEqual(known.version, "TLS 1.3")
              XCTAssertEqual(known.applicationProtocol, transport == .tcp ? "h2" : "h3")
              XCTAssertEqual(known.names, CertificateNames(uris: [Self.billing]))
              let subjects = known.certificates.map { Certificate(der: $0)?.fields.subject.description }
              XCTAssertEqual(subjects, ["CN=workload", "CN=middle"])
            }
          }
        }
      }
    }
  }

  // MARK: Settings

  func testNamesThatCannotBeUsed() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let cases: [([TLS.AcceptedName], String)] = [
      ([], "is .names without a name; add one, or use .chainOnly"),
      (
        [.dnsName("*.test")],
        "the accepted name '*.test' (certificateVerification) cannot be used: it has a character"
      ),
      ([.dnsName("127.0.0.1")], "use .ipAddress"), ([.ipAddress("local.test")], "use .dnsName"),
      ([.uri("local.test")], "it is no URI"), ([.uri(Self.billing)], "use .spiffeID"),
      ([.spiffeID("https://prod.test/a")], "it does not begin with spiffe://"),
      ([.spiffeID("spiffe://prod.test/a/")], "empty segment"),
      ([.spiffeID("spiffe://prod.test/../a")], "segment"),
      ([.spiffeID("spiffe://Prod.test/a")], "small letters"), ([.spiffeID("spiffe:///a")], "1 to 255 bytes"),
      ([.spiffeID("spiffe://prod.test:1/a")], "small letters"),
      ([.spiffeID("spiffe://prod.test/a?b")], "characters"),
      ([.spiffeID("spiffe://prod.test")], "use .spiffeTrustDomain"),
      ([.dnsName("a.test"), .spiffeTrustDomain("spiffe://a")], "without spiffe://"),
    ]
    try await CertificateServers.with([[root]]) { servers in
      for (number, (names, words)) in cases.enumerated() {
        let tls = TLS(trustRoots: .pemBytes(Self.pem(root)), certificateVerification: .names(names))
        let transport = Transport.allCases[number % 2]
        guard case .failure(let error) = await servers.get(0, over: transport, tls) else {
          XCTFail("accepted: \(names)")
          continue
        }
        XCTAssertEqual(error.code, .failedPrecondition, "\(error)")
        XCTAssertTrue(error.message?.contains(words) == true, "\(error)")
      }
      XCTAssertEqual(servers.requestCount, 0)
    }
  }
}
