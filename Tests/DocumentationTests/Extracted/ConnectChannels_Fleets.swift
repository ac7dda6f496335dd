// Extracted from Sources/ConnectChannels/ConnectChannels.docc/Fleets.md by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectNIO
import ConnectSimulation

private func ConnectChannels_Fleets_1() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.balancing = .roundRobin
  configuration.channel.healthCheckedService = ""  // grpc.health.v1.Health/Watch; "" is the whole server
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}

private func ConnectChannels_Fleets_2() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.balancing = .outlierDetection(.defaults, of: .leastRequest())
  _ = configuration
}

private func ConnectChannels_Fleets_3() async throws {
  var channel = ChannelConfiguration.defaults
  channel.balancing = .ringHash(.init(key: .header("x-user")))
  let options = CallOptions(headers: ["x-user": ["4711"]])
  _ = channel
  _ = options
}

private func ConnectChannels_Fleets_4() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.zone = "eu-1a"  // or the key channel.zone of ConnectConfiguration
  configuration.channel.balancing = .zoneAware(of: .leastRequest())
  _ = configuration
}

private func ConnectChannels_Fleets_5() async throws {
  func run(_ balancing: BalancingPolicy) async -> SimulationReport {
    let say = Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say
    let cluster = SimulatedCluster(seed: 3)
    cluster.costOfCrossing = 0.0002  // cents: 100 KiB a request, 2 cents a GiB
    cluster.service("eliza.internal:443", servers: 12, zones: ["a", "b", "c"]) { server in
      server.onUnary(say) { request, _ in .with { $0.sentence = request.sentence } }
      server.latency = .logNormal(median: .milliseconds(3), p99: .milliseconds(40))
    }
    cluster.at(.seconds(60)) { cluster.crash(zone: "a", for: .seconds(60)) }

    let policy = RetryPolicy(methods: { _ in true }, random: cluster.chance)
    let budget = RetryBudget()
    let client = ProtocolClient(
      httpClient: cluster.httpClient(ChannelConfiguration(balancing: balancing), zone: "a"),
      config: ProtocolClientConfig(
        host: "https://eliza.internal",
        interceptors: [{ _ in RetryInterceptor(policy: policy, budget: budget) }],
        timeout: .seconds(1)
      )
    )
    return await cluster.run(for: .seconds(180), load: .open(perSecond: 100)) { _ in
      _ = try await client.unary(say, .with { $0.sentence = "Hello" }).get()
    }
  }

  let spread = await run(.roundRobin)
  let zoned = await run(.zoneAware(of: .roundRobin))
  print(SimulationComparison(spread, zoned, named: ("round robin", "zone aware")))
  _ = spread
  _ = zoned
}

private func ConnectChannels_Fleets_6() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.balancing = .priority([
    .init("main", .zoneAware(of: .roundRobin)),
    .init("standby", .roundRobin),
  ])
  _ = configuration
}

private func ConnectChannels_Fleets_7() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.balancing = .weightedTarget([
    .init("old", weight: 9, .roundRobin),
    .init("new", weight: 1, .roundRobin),
  ])
  _ = configuration
}

private func ConnectChannels_Fleets_8() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  let old: [Endpoint] = given()
  let new: [Endpoint] = given()
  configuration.channel.routing = Routing(
    routes: [
      Route(.init(headers: [.init("x-tester", .present)]), to: "new"),
      Route(.init(path: .prefix("/shop.v1.Search/")), to: "old", timeout: .seconds(2)),
      Route(to: [WeightedCluster(name: "old", weight: 95), WeightedCluster(name: "new", weight: 5)]),
    ],
    clusters: [
      "old": Cluster(endpoints: old, balancing: .roundRobin),
      "new": Cluster(endpoints: new, balancing: .leastRequest()),
    ]
  )
  _ = configuration
  _ = old
  _ = new
}

private func ConnectChannels_Fleets_9() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.observer = ChannelMetrics()  // picks, connections, ejections, queue times
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}

private func ConnectChannels_Fleets_10() async throws {
  let httpClient: NIOHTTPClient = given()
  for snapshot in await httpClient.snapshots() {
    print(snapshot)  // endpoints, connections, calls, last errors
  }
  _ = httpClient
}

private func ConnectChannels_Fleets_11() async throws {
  let httpClient: NIOHTTPClient = given()
  let origin = try Origin("https://api.example.com")
  try httpClient.connect(to: origin)  // warms up
  for await state in try httpClient.connectivityChanges(of: origin) {
    print(state)  // IDLE, CONNECTING, READY, …
  }
  _ = httpClient
  _ = origin
}
