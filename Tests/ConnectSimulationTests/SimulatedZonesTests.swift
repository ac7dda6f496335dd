import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectTesting
import Foundation
import Synchronization
import XCTest

@testable import ConnectSimulation

/// Clients and servers in zones: who talks to whom, what that costs, and faults of whole zones.
final class SimulatedZonesTests: XCTestCase {
  func testRequestsAreCountedByZone() async throws {
    let greeters = Greeters(servers: 4, zones: ["a", "b"])
    greeters.cluster.costOfCrossing = 0.25
    let report = await greeters.run(for: .seconds(20))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.traffic.map(\.from), ["a", "a"])
    XCTAssertEqual(report.traffic.map(\.to), ["a", "b"])
    XCTAssertEqual(report.traffic.map(\.requests).reduce(0, +), report.requests)
    // Round robin does not know of zones.
    XCTAssertEqual(report.crossingShare, 0.5, accuracy: 0.01)
    XCTAssertEqual(report.crossingCost, Double(report.crossings) * 0.25)
    let there = report.servers.filter { $0.zone == "b" }.map(\.requests).reduce(0, +)
    XCTAssertEqual(report.crossings, there)
    let line = try XCTUnwrap(report.description.split(separator: "\n").first { $0.hasPrefix("zones") })
    XCTAssertTrue(
      line.contains("a to b \(Plot.count(there)); cost \(Plot.number(report.crossingCost))"),
      "\(line)"
    )
    XCTAssertEqual(try JSONDecoder().decode(SimulationReport.self, from: report.json()), report)
  }

  /// Counts of an earlier run do not stay, and one zone needs no line.
  func testOneZone() async {
    let greeters = Greeters()
    _ = await greeters.run(for: .seconds(1))
    let report = await greeters.run(for: .seconds(1))
    XCTAssertEqual(report.traffic.map(\.requests), [report.requests])
    XCTAssertEqual(report.crossingShare, 0)
    XCTAssertFalse(report.description.contains("zones"), report.description)
    XCTAssertFalse(SimulationComparison(report, report).description.contains("zones"))
  }

  func testComparisonsShowTheCost() async {
    let near = await Greeters(servers: 2).run(for: .seconds(10))
    let far = Greeters(servers: 2, zones: ["b"])
    far.cluster.costOfCrossing = 1
    let comparison = SimulationComparison(near, await far.run(for: .seconds(10)), named: ("near", "far"))
      .description
    XCTAssertTrue(
      comparison.contains("to other zones        0.00 %        100.00 %      +100 points"),
      comparison
    )
    XCTAssertTrue(comparison.contains("cost of crossing      0 "), comparison)
  }

  /// A channel's balancer learns where the client is.
  func testChannelsKnowTheClientsZone() async {
    for (given, expected) in [(nil, "b"), ("c", "c")] as [(String?, String)] {
      let zones = Zones()
      let cluster = SimulatedCluster(seed: 1)
      cluster.service("greeter.internal:443", servers: 1) { server in
        server.onUnary(.greet) { request, _ in request }
      }
      let channel = ChannelConfiguration(
        balancing: BalancingPolicy(name: "first") { First(zones: zones) },
        zone: given
      )
      let client = ProtocolClient(
        httpClient: cluster.httpClient(channel, zone: "b"),
        config: ProtocolClientConfig(host: "https://greeter.internal", codec: JSONCodec())
      )
      let report = await cluster.run(for: .seconds(1), load: .closed(callers: 1)) { _ in
        _ = try await client.unary(.greet, Text(text: "x")).get()
      }
      XCTAssertEqual(report.failures, [:])
      XCTAssertEqual(Set(zones.seen.withLock { $0 }), [expected])
      XCTAssertEqual(Set(zones.ofEndpoints.withLock { $0 }), ["a"])
    }
  }

  /// A whole zone dies and comes back.
  func testAZoneCrashes() async {
    let greeters = Greeters(servers: 6, zones: ["a", "b", "c"])
    let cluster = greeters.cluster
    XCTAssertEqual(cluster.servers(in: "b").map(\.address), [1, 4].map { greeters.service[$0].address })
    cluster.at(.seconds(10)) { cluster.crash(zone: "b", for: .seconds(10)) }
    cluster.at(.seconds(30)) {
      cluster.crash(zone: "c")
      XCTAssertEqual(cluster.servers(in: "c").map(\.isDown), [true, true])
      cluster.start(zone: "c")
    }
    let report = await greeters.run(for: .seconds(40))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(cluster.allServers.map(\.isDown), Array(repeating: false, count: 6))
    let least = report.servers.filter { $0.zone == "b" }.map(\.requests).max() ?? 0
    let most = report.servers.filter { $0.zone == "a" }.map(\.requests).min() ?? 0
    XCTAssertLessThan(Double(least), Double(most) * 0.8)
    XCTAssertGreaterThan(Double(least), Double(most) * 0.5)
  }

  /// The end of an earlier outage does not end a later one, nor the crash of a single server.
  func testOutagesOverlap() async {
    let greeters = Greeters(servers: 4, zones: ["a", "b"])
    let cluster = greeters.cluster
    let service = greeters.service
    func expect(_ seconds: Int, _ down: [Bool], line: UInt = #line) {
      cluster.at(.seconds(seconds)) { XCTAssertEqual(cluster.allServers.map(\.isDown), down, line: line) }
    }
    cluster.at(.seconds(1)) { service[3].crash() }
    cluster.at(.seconds(2)) { cluster.crash(zone: "b", for: .seconds(4)) }
    cluster.at(.seconds(4)) { cluster.crash(zone: "b", for: .seconds(10)) }
    expect(7, [false, true, false, true])
    expect(15, [false, false, false, true])
    cluster.at(.seconds(16)) { service[3].start() }
    // Started by hand, and down again: the first outage is over.
    cluster.at(.seconds(17)) { cluster.crash(zone: "a", for: .seconds(3)) }
    cluster.at(.seconds(18)) { cluster.start(zone: "a") }
    cluster.at(.seconds(19)) { service[0].crash() }
    expect(21, [true, false, false, false])
    let report = await greeters.run(for: .seconds(22))
    XCTAssertEqual(report.violations, [])
  }

  func testAMisspeltZoneIsAViolation() async {
    let greeters = Greeters(servers: 2, zones: ["a", "b"])
    let cluster = greeters.cluster
    cluster.crash(zone: "A")
    cluster.at(.seconds(1)) {
      cluster.restart(zone: "B")
      cluster.start(zone: "c")
    }
    let report = await greeters.run(for: .seconds(2))
    XCTAssertEqual(report.violations.count, 3)
    for (violation, zone) in zip(report.violations, ["A", "B", "c"]) {
      XCTAssertTrue(violation.hasSuffix("no server is in zone \"\(zone)\": the zones are a, b"), violation)
    }
    let again = await greeters.run(for: .seconds(2))
    XCTAssertEqual(again.violations, [])
  }

  /// A service brings routes to clusters of its servers, and goes back to its servers without them.
  func testAServiceWithRoutes() async {
    let greeters = Greeters(servers: 4)
    let service = greeters.service
    service.routing = Routing(
      routes: [
        Route(to: [WeightedCluster(name: "old", weight: 9), WeightedCluster(name: "new", weight: 1)])
      ],
      clusters: ["old": Cluster(service.servers[..<2]), "new": Cluster(service.servers[2...])]
    )
    let routed = await greeters.run(for: .seconds(50))
    XCTAssertEqual(routed.violations, [])
    XCTAssertEqual(routed.failures, [:])
    let requests = routed.servers.map(\.requests)
    XCTAssertEqual(Double(requests[2] + requests[3]) / Double(routed.requests), 0.1, accuracy: 0.02)
    service.routing = nil
    let report = await greeters.run(for: .seconds(10))
    XCTAssertEqual(report.failures, [:])
    XCTAssertEqual(report.servers[3].requests - requests[3], report.requests / 4, accuracy: 10)
  }

  /// A route's retries stay in the cluster that was chosen for the call. The first server of each cluster fails all calls.
  func testTheRetriesOfARoute() async {
    for retries in [false, true] {
      let budget = RetryBudget(maximumTokens: 100_000)
      let policy = RetryPolicy(maximumAttempts: 1)
      let greeters = Greeters(
        servers: 4,
        interceptors: [{ _ in RetryInterceptor(policy: policy, budget: budget) }],
        setup: { if $0.index % 2 == 0 { $0.fail(1) } }
      )
      let service = greeters.service
      let attempts = MethodConfig.RetryPolicy(
        maximumAttempts: 2,
        initialBackoff: .milliseconds(1),
        maximumBackoff: .milliseconds(1),
        backoffMultiplier: 1,
        retryableCodes: [.unavailable]
      )
      let split = [WeightedCluster(name: "old", weight: 1), WeightedCluster(name: "new", weight: 1)]
      service.routing = Routing(
        routes: [Route(to: split, attempts: retries ? .retry(attempts) : nil)],
        clusters: ["old": Cluster(service.servers[..<2]), "new": Cluster(service.servers[2...])]
      )
      let report = await greeters.run(for: .seconds(20), load: .closed(callers: 1))
      XCTAssertEqual(report.violations, [])
      let requests = report.servers.map(\.requests)
      XCTAssertGreaterThan(requests.min() ?? 0, 100)
      if retries {
        let failures = report.failures.values.reduce(0, +)
        XCTAssertLessThanOrEqual(failures, 2, "at first one server of each cluster is connected")
        // One caller: each failure is followed by a success in the same cluster, and that by a failure there.
        XCTAssertEqual(requests[0], requests[1], accuracy: 1)
        XCTAssertEqual(requests[2], requests[3], accuracy: 1)
      } else {
        XCTAssertGreaterThan(report.failures.values.reduce(0, +), 100)
      }
    }
  }

  func testAZoneRestartsInOrder() async {
    let greeters = Greeters(servers: 4, zones: ["a", "b"])
    let cluster = greeters.cluster
    cluster.at(.seconds(5)) { cluster.restart(zone: "a", drain: .seconds(1), downtime: .seconds(5)) }
    let report = await greeters.run(for: .seconds(20))
    XCTAssertEqual(report.violations, [])
    XCTAssertEqual(report.failures, [:])
    XCTAssertGreaterThan(report.crossingShare, 0.55)
  }
}

private final class Zones: Sendable {
  let seen = Mutex<[String?]>([])
  let ofEndpoints = Mutex<[String?]>([])
}

private struct First: LoadBalancer {
  let zones: Zones

  mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    self.zones.seen.withLock { $0.append(context.zone) }
    self.zones.ofEndpoints.withLock { $0 += endpoints.map(\.endpoint.zone) }
    let summary = EndpointSummary(endpoints)
    guard let first = summary.ready.first else { return .unready(summary) }
    return BalancerDecision(state: .ready, picker: ConstantPicker(.endpoint(first)), connect: summary.idle)
  }
}
