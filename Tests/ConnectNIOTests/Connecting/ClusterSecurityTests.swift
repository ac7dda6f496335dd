import Connect
import Foundation
import Logging
import LoopbackServer
import NIOCore
import NIOPosix
import Synchronization
import XCTest

@testable import ConnectChannels
@testable import ConnectNIO

/// TLS that a provider chooses for clusters.
final class ClusterSecurityTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  /// What a control plane has said last.
  private final class Provider: ClusterSecurityProvider {
    let clusters: Mutex<[String: ClusterConnectionSecurity]>

    init(_ clusters: [String: ClusterConnectionSecurity]) {
      self.clusters = Mutex(clusters)
    }

    func set(_ cluster: String, _ security: ClusterConnectionSecurity?) {
      self.clusters.withLock { $0[cluster] = security }
    }

    func security(ofCluster cluster: String, of origin: Origin) -> ClusterConnectionSecurity? {
      self.clusters.withLock { $0[cluster] }
    }
  }

  private static let path = "/pkg.Service/Get"

  private func server(_ configuration: LoopbackServer.Configuration, says number: Int) async throws
    -> LoopbackServer
  {
    let server = try await LoopbackServer.start(configuration)
    server.onRaw(Self.path) { _, responder in
      try await responder.respond(
        headers: ["content-type": "application/json"],
        body: ByteBuffer(string: "\(number)")
      )
    }
    return server
  }

  private func mutual(_ certificates: TestCertificates) -> LoopbackServer.Configuration {
    var configuration = LoopbackServer.Configuration.tls(certificates)
    configuration.tls?.requiresClientCertificate = true
    return configuration
  }

  private func tls(
    trusting: TestCertificates,
    as client: TestCertificates? = nil,
    _ change: (inout Configuration.TLS) -> Void = { _ in }
  ) -> ClusterConnectionSecurity {
    var settings = Configuration.TLS(
      trustRoots: .pemBytes(Array(trusting.authorityPEM.utf8)),
      clientCertificate: client.map {
        .pemBytes(chain: Array($0.clientCertificatePEM.utf8), privateKey: Array($0.clientKeyPEM.utf8))
      }
    )
    change(&settings)
    return .tls(settings)
  }

  private func endpoint(_ server: LoopbackServer) throws -> Endpoint {
    try XCTUnwrap(Endpoint("127.0.0.1:\(server.port)"))
  }

  /// A client whose header `to` chooses the cluster.
  private func routing(_ clusters: [String: [Endpoint]]) -> Routing {
    Routing(
      routes: clusters.keys.sorted().map { name in
        Route(RouteMatch(headers: [HeaderMatch("to", .exact(name))]), to: name)
      },
      clusters: clusters.mapValues { Cluster(endpoints: $0) }
    )
  }

  private func call(
    _ cluster: String,
    _ httpClient: NIOHTTPClient,
    _ host: String = "http://localhost:1"
  ) async -> ResponseMessage<Int> {
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(host: host, codec: JSONCodec())
    )
    let method = MethodSpec<Int, Int>(codablePath: Self.path, streamType: .unary)
    return await client.unary(method, 0, options: CallOptions(headers: ["to": [cluster]]))
  }

  /// The clusters of an origin without TLS get it, or do not, as the provider says.
  func testTheProviderChoosesForEachCluster() async throws {
    let certificates = try await TestCertificates.make()
    let secure = try await self.server(self.mutual(certificates), says: 1)
    let plain = try await self.server(.plaintext, says: 2)
    let right = self.tls(trusting: certificates, as: certificates)
    let provider = Provider([
      "secure": right, "plain": .plaintext, "leaf": right,
      "anonymous": self.tls(trusting: certificates),
    ])
    // A part of an aggregate: the endpoint's cluster counts.
    var leaf = try self.endpoint(secure)
    leaf.cluster = "leaf"
    let routing = self.routing([
      "secure": [try self.endpoint(secure)], "plain": [try self.endpoint(plain)], "aggregate": [leaf],
      "other": [try self.endpoint(plain)], "anonymous": [try self.endpoint(secure)],
      "mistaken": [try self.endpoint(secure)],
    ])
    for version in [Configuration.HTTPVersion.automatic, .http2Only, .http1Only] {
      // Its own TLS cannot be used, and is not needed.
      var configuration = Configuration(
        version: version,
        tls: Configuration.TLS(serverName: "not a name"),
        clusterSecurity: provider
      )
      configuration.channel.routing = routing
      let httpClient = NIOHTTPClient(configuration: configuration)
      XCTAssertTrue(httpClient.authenticatesClient)
      for (name, number) in [("secure", 1), ("plain", 2), ("aggregate", 1), ("other", 2), ("secure", 1)] {
        let response = await self.call(name, httpClient)
        XCTAssertEqual(response.message, number, "\(version) \(name): \(String(describing: response.error))")
      }
      for name in ["anonymous", "mistaken"] {
        let response = await self.call(name, httpClient)
        XCTAssertNil(response.message, "\(version) \(name)")
        let message = response.error?.message ?? ""
        XCTAssertTrue(message.contains("the cluster \"\(name)\" of http://localhost:1"), message)
      }
      await httpClient.shutdown(within: .seconds(5))
    }
    await secure.stop()
    await plain.stop()
  }

  /// An `https` origin has its own TLS for clusters that the provider does not know, and none for those that are plaintext.
  func testAnOriginWithTLS() async throws {
    let certificates = try await TestCertificates.make()
    let secure = try await self.server(.tls(certificates), says: 1)
    let plain = try await self.server(.plaintext, says: 2)
    guard case .tls(let settings) = self.tls(trusting: certificates) else { return XCTFail("no TLS") }
    for version in [Configuration.HTTPVersion.automatic, .http2Only, .http1Only] {
      var configuration = Configuration(
        version: version,
        tls: settings,
        clusterSecurity: Provider(["plain": .plaintext])
      )
      configuration.channel.routing = self.routing([
        "secure": [try self.endpoint(secure)], "plain": [try self.endpoint(plain)],
      ])
      let httpClient = NIOHTTPClient(configuration: configuration)
      for (name, number) in [("secure", 1), ("plain", 2)] {
        let response = await self.call(name, httpClient, "https://localhost:1")
        XCTAssertEqual(response.message, number, "\(version) \(name): \(String(describing: response.error))")
      }
      await httpClient.shutdown(within: .seconds(5))
    }
    await secure.stop()
    await plain.stop()
  }

  /// Names are checked by a verifier, in place of the origin's host.
  func testAServerWithAnotherNameIsRefused() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(.tls(certificates), says: 1)
    let routing = self.routing(["blue": [try self.endpoint(server)]])
    for (name, isAccepted) in [("localhost", true), ("other.example", false)] {
      let verifier = ServerVerifier { server in
        guard server.names.dnsNames.contains(name) else {
          throw ConnectError(code: .unauthenticated, message: "the certificate has not the name \(name)")
        }
      }
      let provider = Provider([
        "blue": self.tls(trusting: certificates) {
          $0.certificateVerification = .chainOnly
          $0.serverVerifier = verifier
        }
      ])
      var configuration = Configuration(version: .http2Only, clusterSecurity: provider)
      configuration.channel.routing = routing
      let httpClient = NIOHTTPClient(configuration: configuration)
      let response = await self.call("blue", httpClient, "http://orders")
      if isAccepted {
        XCTAssertEqual(response.message, 1, "\(String(describing: response.error))")
      } else {
        XCTAssertEqual(response.code, .unavailable)
        let message = response.error?.message ?? ""
        XCTAssertTrue(message.contains("has not the name other.example"), message)
        XCTAssertTrue(message.contains("clusterSecurity has for the cluster \"blue\""), message)
      }
      await httpClient.shutdown(within: .seconds(5))
    }
    await server.stop()
  }

  /// Open connections stay until the endpoint says that its security is another.
  func testOtherSettingsAreForNewConnections() async throws {
    let (right, wrong) = (try await TestCertificates.make(), try await TestCertificates.make())
    let server = try await self.server(.tls(right), says: 1)
    let provider = Provider(["blue": self.tls(trusting: right)])
    let resolver = PushResolver()
    var configuration = Configuration(version: .http2Only, clusterSecurity: provider)
    configuration.channel.resolver = resolver
    configuration.channel.backoff = .quick
    let httpClient = NIOHTTPClient(configuration: configuration)
    var endpoint = try self.endpoint(server)
    endpoint.security = "right"
    resolver.update(self.routing(["blue": [endpoint]]))
    let first = await self.call("blue", httpClient)
    XCTAssertEqual(first.message, 1, "\(String(describing: first.error))")
    provider.set("blue", self.tls(trusting: wrong))
    let second = await self.call("blue", httpClient)
    XCTAssertEqual(second.message, 1, "the connection is open")
    endpoint.security = "wrong"
    resolver.update(self.routing(["blue": [endpoint]]))
    try await eventually("the new settings refuse the server") {
      let response = await self.call("blue", httpClient)
      return response.code == .unavailable && response.error?.message?.contains("unknown CA") == true
    }
    provider.set("blue", self.tls(trusting: right))
    try await eventually("the settings are asked for with each connection") {
      await self.call("blue", httpClient).message == 1
    }
    await httpClient.shutdown(within: .seconds(5))
    await server.stop()
  }

  /// Certificates in files are followed.
  func testFilesAreReadAgain() async throws {
    let (old, new) = (try await TestCertificates.make(), try await TestCertificates.make())
    let server = try await self.server(self.mutual(new), says: 1)
    try await withTemporaryFolder { folder in
      let (authority, chain, key) = (folder + "/ca.pem", folder + "/client.pem", folder + "/client.key")
      func write(_ certificates: TestCertificates) throws {
        try certificates.authorityPEM.write(toFile: authority, atomically: true, encoding: .utf8)
        try certificates.clientCertificatePEM.write(toFile: chain, atomically: true, encoding: .utf8)
        try certificates.clientKeyPEM.write(toFile: key, atomically: true, encoding: .utf8)
      }
      try write(old)
      let security = ClusterConnectionSecurity.tls(
        Configuration.TLS(
          trustRoots: .pemFile(authority),
          clientCertificate: .pemFiles(chain: chain, privateKey: key),
          fileCheckInterval: .zero
        )
      )
      var configuration = Configuration(version: .http2Only, clusterSecurity: Provider(["blue": security]))
      configuration.channel.routing = self.routing(["blue": [try self.endpoint(server)]])
      configuration.channel.backoff = .quick
      let httpClient = NIOHTTPClient(configuration: configuration)
      let before = await self.call("blue", httpClient)
      XCTAssertTrue(before.error?.message?.contains("unknown CA") == true)
      try write(new)
      try await eventually("the new files are used") { await self.call("blue", httpClient).message == 1 }
      await httpClient.shutdown(within: .seconds(5))
    }
    await server.stop()
  }

  func testSettingsThatCannotBeUsed() async throws {
    let server = try await self.server(.plaintext, says: 1)
    let broken = ClusterConnectionSecurity.tls(Configuration.TLS(trustRoots: .pemFile("/nonexistent/ca.pem")))
    var configuration = Configuration(clusterSecurity: Provider(["blue": broken]))
    configuration.channel.routing = self.routing(["blue": [try self.endpoint(server)]])
    let httpClient = NIOHTTPClient(configuration: configuration)
    let response = await self.call("blue", httpClient)
    XCTAssertEqual(response.code, .failedPrecondition)
    XCTAssertTrue(response.error?.message?.contains("/nonexistent/ca.pem") == true)
    await httpClient.shutdown(within: .seconds(5))
    await server.stop()
  }

  /// What is made of settings is shared by all clusters that have them.
  func testEqualSettingsShareAContext() async throws {
    let certificates = try await TestCertificates.make()
    let provider = Provider([
      "a": self.tls(trusting: certificates), "b": self.tls(trusting: certificates),
      "c": self.tls(trusting: certificates) { $0.minimumVersion = .tls13 }, "d": .plaintext,
    ])
    let tls = ClusterTLS(
      Configuration(clusterSecurity: provider),
      applicationProtocols: ["h2"],
      logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    )
    let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    let (http, https) = (
      Origin(scheme: .http, host: "a", port: 80), Origin(scheme: .https, host: "a", port: 443)
    )
    func context(_ cluster: String?, _ origin: Origin) async throws -> TLSContext? {
      try await tls.entry(of: cluster, of: origin)?.context(on: eventLoop).get()
    }
    let first = try await context("a", http)
    XCTAssertNotNil(first)
    let (second, third) = (try await context("b", https), try await context("c", http))
    XCTAssertTrue(first === second)
    XCTAssertNotNil(third)
    XCTAssertFalse(first === third)
    for cluster in ["d", "e", nil] {
      let none = try await context(cluster, http)
      XCTAssertNil(none)
    }
    let (plaintext, own) = (tls.entry(of: "d", of: https), tls.entry(of: "e", of: https))
    XCTAssertNil(plaintext)
    XCTAssertNotNil(own, "the client's own settings")
  }
}
