import Connect
import ConnectChannels
import ConnectNIO
import XCTest

@testable import ConnectXDS

final class ClusterSecurityTests: XCTestCase {
  private let bootstrap = XDSBootstrap(
    servers: [],
    certificateProviders: [
      "all": .init(
        identity: .init(certificates: "/c.pem", key: "/k.pem"),
        roots: "/ca.pem",
        refreshInterval: .seconds(30)
      ),
      "me": .init(identity: .init(certificates: "/m.pem", key: "/n.pem"), refreshInterval: .seconds(5)),
    ]
  )

  func testSettings() {
    var settings = ClusterSecurity(roots: "all").settings(self.bootstrap)
    XCTAssertEqual(settings.trustRoots, .pemFile("/ca.pem"))
    XCTAssertEqual(settings.certificateVerification, .chainOnly)
    XCTAssertNil(settings.clientCertificate)
    XCTAssertNil(settings.serverVerifier)
    XCTAssertEqual(settings.fileCheckInterval, .seconds(30))

    settings = ClusterSecurity(roots: "all", identity: "me", acceptedNames: [.init(rule: .exact("a"))])
      .settings(self.bootstrap)
    XCTAssertEqual(settings.clientCertificate, .pemFiles(chain: "/m.pem", privateKey: "/n.pem"))
    XCTAssertEqual(settings.fileCheckInterval, .seconds(5))
    XCTAssertNotNil(settings.serverVerifier)

    XCTAssertEqual(ClusterSecurity().settings(self.bootstrap).trustRoots, .systemDefault)
    // A provider that does not exist, or has no authorities, does not mean those of the system.
    XCTAssertEqual(ClusterSecurity(roots: "none").settings(self.bootstrap).trustRoots, .pemBytes([]))
    XCTAssertEqual(ClusterSecurity(roots: "me").settings(self.bootstrap).trustRoots, .pemBytes([]))
  }

  func testNames() {
    let names = CertificateNames(
      dnsNames: ["api.example.com", "*.wild.example.com"],
      ipAddresses: ["10.0.0.1"],
      uris: ["spiffe://Prod/billing"]
    )
    let cases: [(rule: ClusterSecurity.NameMatcher.Rule, ignoresCase: Bool, matches: Bool)] = [
      // Hosts have no case.
      (.exact("api.example.com"), false, true), (.exact("API.example.com"), false, true),
      (.exact("api.example.com."), false, true), (.exact("spiffe://prod/billing"), false, false),
      (.exact("spiffe://prod/billing"), true, true), (.exact(""), false, false),
      (.exact("API.example.com"), true, true), (.exact("x.wild.example.com"), false, true),
      (.exact("x.y.wild.example.com"), false, false), (.exact("wild.example.com"), false, false),
      (.exact(".wild.example.com"), false, false), (.exact("10.0.0.1"), false, true),
      (.prefix("spiffe://Prod/"), false, true), (.prefix("spiffe://prod/"), false, false),
      (.prefix("spiffe://prod/"), true, true), (.suffix("/billing"), false, true),
      (.suffix("/bill"), false, false),
      (.contains("example"), false, true), (.contains("other"), false, false),
      (.regex("spiffe://Prod/.*"), false, true), (.regex("spiffe"), false, false),
      (.regex("("), false, false),
    ]
    for (rule, ignoresCase, matches) in cases {
      XCTAssertEqual(
        AcceptedName(.init(rule: rule, ignoresCase: ignoresCase)).matches(names),
        matches,
        "\(rule)"
      )
    }
  }

  func testTheVerifierRefusesOtherNames() async throws {
    let security = ClusterSecurity(acceptedNames: [.init(rule: .exact("a")), .init(rule: .prefix("b"))])
    let verifier = try XCTUnwrap(security.settings(self.bootstrap).serverVerifier)
    func server(_ names: [String]) -> ServerVerifier.Server {
      .init(host: "host", port: 1, certificates: [], names: CertificateNames(dnsNames: names))
    }
    try await verifier.verify(server(["x", "b2"]))
    for names in [["x", "y"], []] {
      do {
        try await verifier.verify(server(names))
        XCTFail("\(names) were accepted")
      } catch {
        XCTAssertTrue("\(error)".contains("none of the names"), "\(error)")
      }
    }
  }

  func testTheProvider() throws {
    let table = SecurityTable()
    let provider = XDSClusterSecurity(self.bootstrap, table)
    let origin = Origin(scheme: .http, host: "orders", port: 80)
    let target = try ListenerName(authority: nil, name: "orders", self.bootstrap)
    XCTAssertNil(provider.security(ofCluster: "a", of: origin))
    table.set(["a": nil], for: target)
    XCTAssertNil(provider.security(ofCluster: "a", of: origin))
    let rules = ClusterSecurity(roots: "all", acceptedNames: [.init(rule: .exact("a"))])
    table.set(["a": rules], for: target)
    let security = try XCTUnwrap(provider.security(ofCluster: "a", of: origin))
    guard case .tls(let settings) = security else { return XCTFail("\(security)") }
    XCTAssertEqual(settings.trustRoots, .pemFile("/ca.pem"))
    XCTAssertEqual(provider.security(ofCluster: "a", of: origin), security, "the same verifier")
  }

  func testConnectionsToControlPlanes() {
    let insecure = XDSBootstrap.Server(uri: "a:1", credentials: .insecure).configuration
    XCTAssertEqual(insecure.version, .http2Only)
    XCTAssertEqual(insecure.http2.keepalive?.interval, .seconds(300))
    XCTAssertEqual(insecure.tls, .defaults)
    let credentials = XDSBootstrap.ChannelCredentials.tls(
      roots: "/ca.pem",
      identity: .init(certificates: "/c.pem", key: "/k.pem"),
      refreshInterval: .seconds(60)
    )
    let tls = XDSBootstrap.Server(uri: "a:1", credentials: credentials).configuration.tls
    XCTAssertEqual(tls.trustRoots, .pemFile("/ca.pem"))
    XCTAssertEqual(tls.certificateVerification, .full)
    XCTAssertEqual(tls.clientCertificate, .pemFiles(chain: "/c.pem", privateKey: "/k.pem"))
    XCTAssertEqual(tls.fileCheckInterval, .seconds(60))
  }

  func testConfigurations() throws {
    let client = XDSClient(
      bootstrap: XDSBootstrap(servers: [.init(uri: "127.0.0.1:1", credentials: .insecure)])
    )
    var configuration = NIOHTTPClient.Configuration()
    try configuration.resolve(through: client, target: "xds:///orders")
    XCTAssertEqual(configuration.channel.resolver?.mayBringServiceConfig, true)
    XCTAssertNotNil(configuration.clusterSecurity)
    for (target, advice) in [
      ("dns:orders", "write xds:///NAME"), ("xds://nobody/orders", "no authority \"nobody\""),
      ("xds:", "xds:///NAME"),
    ] {
      XCTAssertThrowsError(try configuration.resolve(through: client, target: target)) { error in
        XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
        XCTAssertTrue("\(error)".contains(advice), "\(error)")
      }
    }
  }
}
