import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectSimulation
import XCTest

/// What retries do to a service that is slow for some seconds.
final class OutageTests: XCTestCase {
  /// Two servers that can answer 160 calls a second get 120, and are three times as slow from the 20th to the 30th second.
  private func run(_ policy: RetryPolicy?, budget: RetryBudget) async -> SimulationReport {
    let cluster = SimulatedCluster(seed: 11)
    let service = cluster.service("orders.internal:443", servers: 2) { server in
      server.latency = .constant(.milliseconds(50))
      server.concurrency = 4
      server.queueLimit = 100
      server.timeLimit = .milliseconds(300)
      server.onUnary(.greet) { request, _ in request }
    }
    cluster.at(.seconds(20)) { for server in service.servers { server.slow(by: 3) } }
    cluster.at(.seconds(30)) { for server in service.servers { server.slow(by: 1) } }
    var interceptors: [InterceptorFactory] = []
    if var policy {
      policy.random = cluster.chance
      let chosen = policy
      interceptors = [{ _ in RetryInterceptor(policy: chosen, budget: budget) }]
    }
    let client = ProtocolClient(
      httpClient: cluster.httpClient(.init(balancing: .roundRobin)),
      config: ProtocolClientConfig(
        host: "https://orders.internal:443",
        codec: JSONCodec(),
        interceptors: interceptors,
        timeout: .seconds(30)
      )
    )
    return await cluster.run(for: .seconds(75), load: .open(perSecond: 120)) { _ in
      _ = try await client.unary(.greet, Text(text: "a")).get()
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
    let without = await self.run(nil, budget: RetryBudget())
    let endless = await self.run(policy, budget: RetryBudget(maximumTokens: 1_000_000, tokenRatio: 1_000_000))
    let held = await self.run(policy, budget: RetryBudget())
    print(SimulationComparison(endless, held, named: ("no budget", "a budget")))
    for report in [without, endless, held] { XCTAssertEqual(report.violations, []) }
    XCTAssertGreaterThan(self.recovery(without), 0.99)
    XCTAssertGreaterThan(self.recovery(held), 0.99)
    XCTAssertLessThan(self.recovery(endless), 0.3)
    XCTAssertGreaterThan(endless.requestsPerCall, 1.5)
    XCTAssertLessThan(held.requestsPerCall, 1.1)
  }
}
