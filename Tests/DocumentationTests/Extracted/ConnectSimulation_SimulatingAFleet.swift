// Extracted from Sources/ConnectSimulation/ConnectSimulation.docc/SimulatingAFleet.md by `make generate`.

import Connect
import ConnectChannels
import ConnectSimulation

private func ConnectSimulation_SimulatingAFleet_1() async throws {
  let say = Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say

  let cluster = SimulatedCluster(seed: 7)
  let eliza = cluster.service("eliza.internal:443", servers: 50, zones: ["a", "b"]) { server in
    server.onUnary(say) { request, _ in .with { $0.sentence = request.sentence } }
    server.latency = .logNormal(median: .milliseconds(3), p99: .milliseconds(40))
    server.concurrency = 64  // others wait in a queue
  }
  let client = ProtocolClient(
    httpClient: cluster.httpClient(ChannelConfiguration(balancing: .leastRequest())),
    config: ProtocolClientConfig(host: "https://eliza.internal", timeout: .seconds(1))
  )
  cluster.at(.seconds(30)) { eliza[3].freeze() }
  cluster.at(.seconds(60)) { eliza.rollingRestart(every: .seconds(2), drain: .seconds(1)) }
  cluster.at(.seconds(90)) { cluster.network.partition(zone: "b", for: .seconds(20)) }

  let report = await cluster.run(for: .seconds(120), load: .open(perSecond: 500)) { _ in
    _ = try await client.unary(say, .with { $0.sentence = "Hello" }).get()
  }
  print(report)
  _ = say
  _ = cluster
  _ = eliza
  _ = client
  _ = report
}
