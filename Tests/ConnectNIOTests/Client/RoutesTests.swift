import Connect
import ConnectChannels
import ConnectNIO
import Glibc
import LoopbackServer
import XCTest

/// Routes to clusters of real servers.
final class RoutesTests: XCTestCase {
  private func cluster(_ server: LoopbackServer) -> Cluster {
    Cluster(endpoints: [Endpoint("127.0.0.1:\(server.port)")].compactMap { $0 })
  }

  private func withServers(
    _ routes: [Route],
    eventLoops: Int? = nil,
    _ body: (ProtocolClient, NIOHTTPClient, PushResolver, [LoopbackServer]) async throws -> Void
  ) async throws {
    let servers = [try await LoopbackServer.start(.plaintext), try await LoopbackServer.start(.plaintext)]
    let resolver = PushResolver()
    resolver.update(
      Routing(
        routes: routes,
        clusters: ["stable": self.cluster(servers[0]), "canary": self.cluster(servers[1])]
      )
    )
    var configuration = NIOHTTPClient.Configuration(version: .http2Only)
    configuration.channel.resolver = resolver
    if let eventLoops { configuration.eventLoops = eventLoops }
    let httpClient = NIOHTTPClient(configuration: configuration)
    let config = ProtocolClientConfig(host: "http://fleet.test", networkProtocol: .grpc)
    try await body(ProtocolClient(httpClient: httpClient, config: config), httpClient, resolver, servers)
    await httpClient.shutdown()
    for server in servers { await server.stop() }
  }

  /// A configuration with a connected socket, and what errors call the setting.
  private func socketConfiguration() throws -> (NIOHTTPClient.Configuration, String) {
    var descriptors: [CInt] = [-1, -1]
    XCTAssertEqual(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &descriptors), 0)
    close(descriptors[1])
    let socket = try ConnectedSocket(descriptor: descriptors[0])
    return (NIOHTTPClient.Configuration(connectedSocket: socket), "(connectedSocket)")
  }

  private func counts(_ servers: [LoopbackServer]) -> [Int] { servers.map(\.journal.snapshot.requestCount) }

  func testAHeaderRoute() async throws {
    let canary = RouteMatch(headers: [HeaderMatch("x-canary", .exact("yes"))])
    for eventLoops in [1, 2] {
      try await self.withServers([Route(canary, to: "canary"), Route(to: "stable")], eventLoops: eventLoops) {
        client,
        httpClient,
        _,
        servers in
        for number in 0..<30 {
          let headers: Headers = number % 3 == 0 ? ["x-canary": ["yes"]] : ["x-canary": ["no"]]
          _ = try await client.unary(TestMethods.echo, .init(), options: CallOptions(headers: headers)).get()
        }
        XCTAssertEqual(self.counts(servers), [20, 10])
        let clusters = await httpClient.snapshots().flatMap(\.clusters)
        XCTAssertEqual(Set(clusters.map(\.name)), ["stable", "canary"])
        let started = clusters.filter { $0.name == "canary" }.flatMap(\.snapshot.endpoints).map(
          \.startedCalls
        )
        XCTAssertEqual(started.reduce(0, +), 10)
      }
    }
  }

  /// Neither a proxy nor a connected socket leads to the servers of clusters.
  func testRoutesThatCannotBeFollowed() async throws {
    let server = try await LoopbackServer.start(.plaintext)
    let proxy = NIOHTTPClient.Configuration(
      proxy: .proxy(
        try Proxy("http://user:secret@127.0.0.1:\(server.port)"),
        exceptions: NoProxyList("direct.test")
      )
    )
    for (var configuration, setting) in [(proxy, "(proxy)"), try self.socketConfiguration()] {
      configuration.channel.routing = Routing(
        routes: [Route(to: "stable")],
        clusters: ["stable": self.cluster(server)]
      )
      let httpClient = NIOHTTPClient(configuration: configuration)
      let client = ProtocolClient(
        httpClient: httpClient,
        config: ProtocolClientConfig(host: "http://fleet.test", networkProtocol: .connect)
      )
      let response = await client.unary(TestMethods.echo, .init())
      XCTAssertEqual(response.code, .failedPrecondition)
      let message = response.error?.message ?? ""
      XCTAssertTrue(message.contains("channel.routing") && message.contains(setting), message)
      await httpClient.shutdown()
    }
    XCTAssertEqual(server.journal.snapshot.requestCount, 0)

    var configuration = proxy
    configuration.channel.routing = Routing(
      routes: [Route(to: "stable")],
      clusters: ["stable": self.cluster(server)]
    )
    let httpClient = NIOHTTPClient(configuration: configuration)
    let config = ProtocolClientConfig(host: "http://direct.test", networkProtocol: .connect)
    let client = ProtocolClient(httpClient: httpClient, config: config)
    _ = try await client.unary(TestMethods.echo, .init()).get()
    await httpClient.shutdown()
    await server.stop()
  }

  /// 2 % are more than four standard deviations of so many calls.
  func testASplitByWeights() async throws {
    let split = [WeightedCluster(name: "stable", weight: 90), WeightedCluster(name: "canary", weight: 10)]
    try await self.withServers([Route(to: split)]) { client, _, _, servers in
      let count = 5_000
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<20 {
          group.addTask {
            for _ in 0..<(count / 20) { _ = try await client.unary(TestMethods.echo, .init()).get() }
          }
        }
        try await group.waitForAll()
      }
      let counts = self.counts(servers)
      XCTAssertEqual(counts[0] + counts[1], count)
      XCTAssertEqual(Double(counts[1]) / Double(count), 0.1, accuracy: 0.02)
    }
  }

  /// The canary takes over while calls run. The old cluster's connection closes.
  func testAnUpdateWhileCallsRun() async throws {
    try await self.withServers([Route(to: "stable")]) { client, _, resolver, servers in
      let calls = Task {
        for _ in 0..<500 { _ = try await client.unary(TestMethods.echo, .init()).get() }
      }
      try await eventually("calls run") { self.counts(servers)[0] > 50 }
      resolver.update(Routing(routes: [Route(to: "canary")], clusters: ["canary": self.cluster(servers[1])]))
      try await calls.value
      XCTAssertEqual(self.counts(servers).reduce(0, +), 500)
      _ = try await client.unary(TestMethods.echo, .init()).get()
      try await eventually("the old connection closes") {
        servers[0].journal.snapshot.openConnections == 0
      }
      XCTAssertEqual(servers[1].journal.snapshot.openConnections, 1)
    }
  }
}
