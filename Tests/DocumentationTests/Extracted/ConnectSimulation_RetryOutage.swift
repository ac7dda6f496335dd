// Extracted from Sources/ConnectSimulation/ConnectSimulation.docc/RetryOutage.md by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectSimulation
import XCTest

struct PlacedOrder: Codable, Sendable {
  var item = "hat"
}

final class OutageTests: XCTestCase {
  private func run(_ policy: RetryPolicy, budget: RetryBudget) async -> SimulationReport {
    let place = MethodSpec<PlacedOrder, PlacedOrder>(codablePath: "/shop.v1.Orders/Place", streamType: .unary)

    let cluster = SimulatedCluster(seed: 11)
    let service = cluster.service("orders.internal:443", servers: 2) { server in
      server.latency = .constant(.milliseconds(50))
      server.concurrency = 4
      server.queueLimit = 100
      server.timeLimit = .milliseconds(300)
      server.onUnary(place) { order, _ in order }
    }
    cluster.at(.seconds(20)) { for server in service.servers { server.slow(by: 3) } }
    cluster.at(.seconds(30)) { for server in service.servers { server.slow(by: 1) } }

    var policy = policy
    policy.random = cluster.chance
    let chosen = policy
    let client = ProtocolClient(
      httpClient: cluster.httpClient(ChannelConfiguration(balancing: .roundRobin)),
      config: ProtocolClientConfig(
        host: "https://orders.internal",
        codec: JSONCodec(),
        interceptors: [{ _ in RetryInterceptor(policy: chosen, budget: budget) }],
        timeout: .seconds(30)
      )
    )
    return await cluster.run(for: .seconds(75), load: .open(perSecond: 120)) { _ in
      _ = try await client.unary(place, PlacedOrder()).get()
    }
  }

  /// The part of calls that succeeded in the last sixteen seconds, long after the trouble.
  private func recovery(_ report: SimulationReport) -> Double {
    let last = report.intervals.suffix(13)
    let succeeded = last.reduce(0) { $0 + $1.succeeded }
    let failed = last.reduce(0) { $0 + $1.failed }
    return Double(succeeded) / Double(max(succeeded + failed, 1))
  }

  func testRetriesWithoutABudgetMakeAnOutageThatStays() async {
    let policy = RetryPolicy(
      maximumAttempts: 4,
      backoff: Backoff(base: .milliseconds(50), maximum: .milliseconds(200)),
      methods: { _ in true }
    )
    let endless = await self.run(policy, budget: RetryBudget(maximumTokens: 1_000_000, tokenRatio: 1_000_000))
    let held = await self.run(policy, budget: RetryBudget())
    print(SimulationComparison(endless, held, named: ("no budget", "a budget")))

    for report in [endless, held] { XCTAssertEqual(report.violations, []) }
    XCTAssertLessThan(self.recovery(endless), 0.3)
    XCTAssertGreaterThan(self.recovery(held), 0.99)
    XCTAssertGreaterThan(endless.requestsPerCall, 1.5)
    XCTAssertLessThan(held.requestsPerCall, 1.1)
  }
}
