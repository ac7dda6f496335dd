internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
package import ConnectSimulation
internal import ConnectTesting
internal import SwiftProtobuf

extension Scenario {
  /// Five minutes with 50 servers and 2,000 calls a second, some of which fail.
  package static func large(seed: UInt64) async -> SimulationReport {
    let cluster = SimulatedCluster(seed: seed)
    cluster.network.roundTrip = .uniform(.microseconds(100) ... .microseconds(900))
    let service = cluster.service("users.internal:443", servers: 50, zones: ["a", "b"]) { server in
      server.latency = .logNormal(median: .milliseconds(3), p99: .milliseconds(40))
      server.concurrency = 64
      server.onUnary(.post) { request, _ in request }
    }
    let budget = RetryBudget(maximumTokens: 100)
    let policy = RetryPolicy(methods: { _ in true }, random: cluster.chance)
    let client = ProtocolClient(
      httpClient: cluster.httpClient(ChannelConfiguration(balancing: .leastRequest())),
      config: ProtocolClientConfig(
        host: "https://users.internal",
        networkProtocol: .grpc,
        interceptors: [{ _ in RetryInterceptor(policy: policy, budget: budget) }],
        timeout: .seconds(1)
      )
    )
    cluster.at(.seconds(30)) { service[3].freeze() }
    cluster.at(.seconds(60)) { service.rollingRestart(every: .seconds(2), drain: .seconds(1)) }
    cluster.at(.seconds(200)) { cluster.network.partition(zone: "b", for: .seconds(20)) }
    return await cluster.run(for: .seconds(300), load: .open(perSecond: 2_000)) { number in
      _ = try await client.unary(.post, Text("\(number)")).get()
    }
  }
}
