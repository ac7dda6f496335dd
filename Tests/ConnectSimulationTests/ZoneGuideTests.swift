import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectSimulation
import Foundation
import XCTest

/// The figures of "Zones" in the guide "A fleet behind one name" are what a copy of its program prints. The copy has other
/// messages.
final class ZoneGuideTests: XCTestCase {
  private func run(_ balancing: BalancingPolicy) async -> SimulationReport {
    let cluster = SimulatedCluster(seed: 3)
    cluster.costOfCrossing = 0.0002
    cluster.service("eliza.internal:443", servers: 12, zones: ["a", "b", "c"]) { server in
      server.onUnary(.greet) { request, _ in request }
      server.latency = .logNormal(median: .milliseconds(3), p99: .milliseconds(40))
    }
    cluster.at(.seconds(60)) { cluster.crash(zone: "a", for: .seconds(60)) }

    let policy = RetryPolicy(methods: { _ in true }, random: cluster.chance)
    let budget = RetryBudget()
    let client = ProtocolClient(
      httpClient: cluster.httpClient(ChannelConfiguration(balancing: balancing), zone: "a"),
      config: ProtocolClientConfig(
        host: "https://eliza.internal",
        codec: JSONCodec(),
        interceptors: [{ _ in RetryInterceptor(policy: policy, budget: budget) }],
        timeout: .seconds(1)
      )
    )
    return await cluster.run(for: .seconds(180), load: .open(perSecond: 100)) { _ in
      _ = try await client.unary(.greet, Text(text: "Hello")).get()
    }
  }

  func testTheFiguresOfTheGuide() async throws {
    let spread = await self.run(.roundRobin)
    let zoned = await self.run(.zoneAware(of: .roundRobin))
    let text = SimulationComparison(spread, zoned, named: ("round robin", "zone aware")).description
    let guide = try String(
      contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Sources/ConnectChannels/ConnectChannels.docc/Fleets.md").standardized,
      encoding: .utf8
    )
    XCTAssertTrue(guide.contains("```text\n\(text)\n```"), "the guide should have:\n\(text)")
    for report in [spread, zoned] {
      XCTAssertEqual(report.violations, [])
      XCTAssertEqual(report.failures, [:])
    }
    XCTAssertEqual(spread.crossingShare, 0.75, accuracy: 0.1)
    // A third of the time, and not a second more.
    XCTAssertEqual(zoned.crossingShare, 1.0 / 3, accuracy: 0.01)
  }
}
