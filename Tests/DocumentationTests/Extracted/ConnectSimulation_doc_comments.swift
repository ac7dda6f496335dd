// Extracted from the doc comments of Sources/ConnectSimulation by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectLifecycle
import ConnectNIO
import ConnectProtobufC
import ConnectReflection
import ConnectSimulation
import ConnectTesting
import Logging
import NIOCore
import ServiceLifecycle
import XCTest

extension DocComments {
  private func FittedService_1() async throws {
    var service = FittedService(trace)
    service.concurrency = 8
    let result = try await WhatIf(service, new: newRules).run()
    _ = service
    _ = result
  }

  private func SimulatedService_1() async throws {
    service.routing = Routing(
      routes: [Route(to: [WeightedCluster(name: "old", weight: 9), WeightedCluster(name: "new", weight: 1)])],
      clusters: ["old": Cluster(service.servers[..<9]), "new": Cluster(service.servers[9...])]
    )
  }

  private func SimulationComparison_1() async throws {
    print(SimulationComparison(first, second, named: ("no budget", "a budget")))
  }

  private func SimulatedCluster_1() async throws {
    let cluster = SimulatedCluster(seed: 7)
    let users = cluster.service("users.internal:443", servers: 50) { server in
      server.onUnary(getUser) { request, _ in User(id: request.id) }
      server.latency = .logNormal(median: .milliseconds(3), p99: .milliseconds(40))
      server.concurrency = 64
    }
    let client = ProtocolClient(httpClient: cluster.httpClient(channel), config: config)
    cluster.at(.seconds(30)) { users[3].freeze() }
    let report = await cluster.run(for: .seconds(300), load: .open(perSecond: 2_000)) { _ in
      _ = try await client.unary(getUser, UserRequest(id: 7)).get()
    }
    print(report)
    _ = cluster
    _ = users
    _ = client
    _ = report
  }

  private func SimulatedCluster_2() async throws {
    let breaker = CircuitBreaker(clock: cluster.clock)
    _ = breaker
  }

  private func StormCheck_1() async throws {
    let map = try ServiceMap(json: text)
    print(await StormCheck(map).run())
    _ = map
  }

  private func TrafficTrace_1() async throws {
    let trace = try TrafficTrace(contentsOf: "access.ndjson")
    print(trace)
    _ = trace
  }

  private func WhatIf_1() async throws {
    let trace = try TrafficTrace(contentsOf: "access.ndjson")
    var question = WhatIf(FittedService(trace), new: try ServiceConfig(json: text))
    question.changes = [.slow(server: 3, by: 5)]
    let result = try await question.run()
    print(result)
    _ = trace
    _ = question
    _ = result
  }
}
