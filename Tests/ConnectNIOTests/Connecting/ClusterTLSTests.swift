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

/// TLS of clusters: each has its own trust, identity and names.
final class ClusterTLSTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  /// A channel of a cluster, as the channel of an origin makes them.
  private struct Cluster {
    let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    let channel: OriginChannel

    init(_ name: String?, port: Int, _ configuration: Configuration, logger: Logger? = nil) throws {
      let origin = Origin(scheme: .https, host: "localhost", port: port)
      let executor = EventLoopExecutor(self.eventLoop)
      let logger = logger ?? Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
      let connector = Connector(
        origin: origin,
        version: .http2Only,
        route: nil,
        configuration: configuration,
        tls: ClusterTLS(configuration, applicationProtocols: ["h2"], logger: logger),
        executor: executor,
        keepalivePace: .makeBoxSendingValue(1, eventLoop: self.eventLoop),
        logger: logger
      )
      var environment = ChannelEnvironment(
        origin: origin,
        executor: executor,
        opener: connector,
        resolver: SystemResolver(),
        configuration: configuration.channel,
        logger: logger
      )
      environment.cluster = name
      self.channel = OriginChannel(environment)
    }

    func call() async throws -> TestCall.Outcome {
      try await TestCall(self.channel, on: self.eventLoop).start().outcome()
    }

    /// Nil if a call succeeds.
    func problem() async throws -> ConnectError? {
      if case .failure(let failure) = try await self.call() { failure.error } else { nil }
    }

    func shutDown() async {
      await withCheckedContinuation { continuation in
        self.channel.shutDown(within: .seconds(5)) { continuation.resume() }
      }
    }
  }

  private func server(_ certificates: TestCertificates) async throws -> LoopbackServer {
    var configuration = LoopbackServer.Configuration.tls(certificates)
    configuration.tls?.requiresClientCertificate = true
    let server = try await LoopbackServer.start(configuration)
    server.onRaw("/test") { request, responder in
      try await responder.respond(body: try await request.body())
    }
    return server
  }

  private func tls(trusting: TestCertificates, as client: TestCertificates?) -> Configuration.TLS {
    Configuration.TLS(
      trustRoots: .pemBytes(Array(trusting.authorityPEM.utf8)),
      clientCertificate: client.map {
        .pemBytes(chain: Array($0.clientCertificatePEM.utf8), privateKey: Array($0.clientKeyPEM.utf8))
      }
    )
  }

  /// Two clusters with authorities and client certificates of their own: only the right ones fit.
  func testEachClusterHasItsOwnTrustAndIdentity() async throws {
    let (blue, green) = (try await TestCertificates.make(), try await TestCertificates.make())
    let (blueServer, greenServer) = (try await self.server(blue), try await self.server(green))
    let configuration = Configuration(
      tlsOfClusters: [
        "blue": self.tls(trusting: blue, as: blue),
        "green": self.tls(trusting: green, as: green),
        "mixed": self.tls(trusting: green, as: blue),
      ]
    )
    let cases: [(String?, LoopbackServer, String?)] = [
      ("blue", blueServer, nil), ("green", greenServer, nil),
      ("blue", greenServer, "unknown CA"), ("green", blueServer, "unknown CA"),
      ("mixed", greenServer, "client certificate"),
      // The client's own settings, for clusters without any.
      ("red", blueServer, "unknown CA"), (nil, blueServer, "unknown CA"),
    ]
    for (name, server, words) in cases {
      let cluster = try Cluster(name, port: server.port, configuration)
      let error = try await cluster.problem()
      let message = error?.message ?? ""
      if let words {
        XCTAssertEqual(error?.code, .unavailable, "\(name ?? "")")
        XCTAssertTrue(message.contains(words), message)
        if let name { XCTAssertTrue(message.contains("the cluster \"\(name)\" of https://"), message) }
        XCTAssertEqual(message.contains("tlsOfClusters"), name == "red", message)
      } else {
        XCTAssertNil(error, "\(name ?? "")")
      }
      await cluster.shutDown()
    }
    await blueServer.stop()
    await greenServer.stop()
  }

  func testNamesOfAClusterAndSettingsThatCannotBeUsed() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(certificates)
    let right = self.tls(trusting: certificates, as: certificates)
    var (otherName, badName, accepted) = (right, right, right)
    otherName.serverName = "other.example"
    badName.serverName = "not a name"
    accepted.certificateVerification = .names([.dnsName("other.example")])
    var broken = right
    broken.trustRoots = .pemFile("/nonexistent/ca.pem")
    let configuration = Configuration(
      tls: right,
      tlsOfClusters: ["name": otherName, "bad": badName, "accepted": accepted, "broken": broken]
    )
    let cases: [(String?, Code, String)] = [
      ("name", .unavailable, "'other.example'"), ("accepted", .unavailable, "other.example"),
      ("bad", .failedPrecondition, "serverName"), ("broken", .failedPrecondition, "/nonexistent/ca.pem"),
    ]
    for (name, code, words) in cases {
      let cluster = try Cluster(name, port: server.port, configuration)
      let error = try await cluster.problem()
      XCTAssertEqual(error?.code, code)
      XCTAssertTrue(error?.message?.contains(words) == true, "\(String(describing: error))")
      await cluster.shutDown()
    }
    let other = try Cluster(nil, port: server.port, configuration)
    let problem = try await other.problem()
    XCTAssertNil(problem, "the settings of clusters concern nobody else")
    await other.shutDown()
    await server.stop()
  }

  /// Routes lead to two clusters, each with an authority and a client certificate of its own.
  func testRoutes() async throws {
    let (blue, green) = (try await TestCertificates.make(), try await TestCertificates.make())
    let (blueServer, greenServer) = (try await self.server(blue), try await self.server(green))
    let path = "/pkg.Service/Get"
    for (server, number) in [(blueServer, 1), (greenServer, 2)] {
      server.onRaw(path) { _, responder in
        try await responder.respond(
          headers: ["content-type": "application/json"],
          body: ByteBuffer(string: "\(number)")
        )
      }
    }
    func cluster(_ server: LoopbackServer) throws -> ConnectChannels.Cluster {
      ConnectChannels.Cluster(endpoints: [try XCTUnwrap(Endpoint("127.0.0.1:\(server.port)"))])
    }
    let routing = Routing(
      routes: [
        Route(RouteMatch(headers: [HeaderMatch("team", .exact("blue"))]), to: "blue"),
        Route(RouteMatch(headers: [HeaderMatch("team", .exact("green"))]), to: "green"),
        Route(RouteMatch(headers: [HeaderMatch("team", .exact("mixed"))]), to: "mixed"),
        Route(to: "wrong"),
      ],
      clusters: [
        "blue": try cluster(blueServer), "green": try cluster(greenServer), "wrong": try cluster(greenServer),
        "mixed": try cluster(greenServer),
      ]
    )
    for version in [Configuration.HTTPVersion.http2Only, .http1Only] {
      // Clusters that have their own settings do without the client's.
      var configuration = Configuration(
        version: version,
        tls: Configuration.TLS(serverName: "not a name"),
        tlsOfClusters: [
          "blue": self.tls(trusting: blue, as: blue),
          "green": self.tls(trusting: green, as: green),
          "wrong": self.tls(trusting: blue, as: blue),
          "mixed": self.tls(trusting: green, as: blue),
        ]
      )
      configuration.channel.routing = routing
      let httpClient = NIOHTTPClient(configuration: configuration)
      let config = ProtocolClientConfig(host: "https://localhost:1", codec: JSONCodec())
      let client = ProtocolClient(httpClient: httpClient, config: config)
      let method = MethodSpec<Int, Int>(codablePath: path, streamType: .unary)
      for (team, number) in [("blue", 1), ("green", 2), ("blue", 1)] {
        var options = CallOptions()
        options.headers = ["team": [team]]
        let response = await client.unary(method, 0, options: options)
        XCTAssertEqual(response.message, number, "\(version), \(team): \(String(describing: response.error))")
      }
      // With TLS 1.3, the server refuses the client after the client's handshake.
      let mixed = await client.unary(method, 0, options: CallOptions(headers: ["team": ["mixed"]]))
      XCTAssertEqual(mixed.code, .unavailable)
      let refusal = mixed.error?.message ?? ""
      XCTAssertTrue(
        refusal.contains("the cluster \"mixed\" of https://localhost:1"),
        "\(version): \(refusal)"
      )
      let refused = await client.unary(method, 0)
      XCTAssertEqual(refused.code, .unavailable)
      let message = refused.error?.message ?? ""
      XCTAssertTrue(message.contains("unknown CA") && message.contains("wrong"), message)
      await httpClient.shutdown(within: .seconds(5))
    }
    await blueServer.stop()
    await greenServer.stop()
  }

  /// The files of a cluster are followed as those of the client are.
  func testFilesOfAClusterAreReadAgain() async throws {
    let (old, new) = (try await TestCertificates.make(), try await TestCertificates.make())
    let server = try await self.server(new)
    try await withTemporaryFolder { folder in
      let path = folder + "/ca.pem"
      try old.authorityPEM.write(toFile: path, atomically: true, encoding: .utf8)
      var tls = self.tls(trusting: new, as: new)
      tls.trustRoots = .pemFile(path)
      tls.fileCheckInterval = .zero
      var configuration = Configuration(tlsOfClusters: ["blue": tls])
      configuration.channel.backoff = .quick
      let cluster = try Cluster("blue", port: server.port, configuration)
      let before = try await cluster.problem()
      XCTAssertTrue(before?.message?.contains("unknown CA") == true)
      try new.authorityPEM.write(toFile: path, atomically: true, encoding: .utf8)
      try await eventually("the new authority is trusted") { try await cluster.problem() == nil }
      await cluster.shutDown()
    }
    await server.stop()
  }

  /// A name that is misspelt in the settings is told, once.
  func testAClusterThatIsLeftOut() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await self.server(certificates)
    let right = self.tls(trusting: certificates, as: certificates)
    let lines = Lines()
    let logger = Logger(label: "test") { _ in lines }
    for settings in [[:], ["blue": right]] {
      let tls = ClusterTLS(
        Configuration(tls: right, tlsOfClusters: settings),
        applicationProtocols: ["h2"],
        logger: logger
      )
      for cluster in [nil, "blue", "bleu", "bleu"] {
        let entry = try XCTUnwrap(
          tls.entry(of: cluster, of: Origin(scheme: .https, host: "localhost", port: 443))
        )
        _ = try await entry.context(on: MultiThreadedEventLoopGroup.singleton.next()).get()
      }
    }
    let warnings = lines.all.withLock { $0 }
    XCTAssertEqual(warnings.count, 1)
    XCTAssertTrue(
      warnings.first?.contains("\"bleu\"") == true && warnings.first?.contains("tlsOfClusters") == true
    )
    await server.stop()
  }

  /// Keeps warnings.
  private final class Lines: LogHandler, Sendable {
    let all = Mutex<[String]>([])

    var logLevel: Logger.Level {
      get { .warning }
      set {}
    }
    var metadata: Logger.Metadata {
      get { [:] }
      set {}
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { nil }
      set {}
    }

    func log(event: LogEvent) {
      self.all.withLock { $0.append("\(event.message)") }
    }
  }

  /// Responses are not shared with other clients if any cluster knows who the client is.
  func testTheClientIsAuthenticated() async throws {
    let certificates = try await TestCertificates.make()
    let tls = self.tls(trusting: certificates, as: certificates)
    let none = self.tls(trusting: certificates, as: nil)
    for (settings, isAuthenticated) in [(tls, true), (none, false)] {
      let client = NIOHTTPClient(configuration: Configuration(tlsOfClusters: ["a": settings]))
      XCTAssertEqual(client.authenticatesClient, isAuthenticated)
    }
  }
}
