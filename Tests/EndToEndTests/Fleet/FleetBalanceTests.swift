internal import Connect
internal import ConnectChannels
internal import LoopbackServer
internal import XCTest

/// How calls are spread over servers.
final class FleetBalanceTests: XCTestCase {
  /// The shares of `addresses` in percent, for people.
  private func shares(_ tally: FleetTally, _ addresses: [String]) -> String {
    let shares = addresses.map { Double(tally[$0]) * 100 / Double(max(tally.successCount, 1)) }
    return shares.map { "\(($0 * 10).rounded() / 10)" }.joined(separator: " / ") + " %"
  }

  /// Expects shares in proportion to `weights`, each within `tolerance` of what it should be.
  private func expect(
    _ weights: [Double],
    within tolerance: Double,
    _ tally: FleetTally,
    _ addresses: [String],
    line: UInt = #line
  ) {
    let sum = weights.reduce(0, +)
    for (address, weight) in zip(addresses, weights) {
      let expected = Double(tally.successCount) * weight / sum
      XCTAssertEqual(Double(tally[address]), expected, accuracy: expected * tolerance, address, line: line)
    }
  }

  func testRoundRobin() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(10)
    try await FleetClient.run(addresses) { fleetClient in
      _ = try await fleetClient.callUntil("all answer") { $0.succeeded.count == 10 }
      let load = FleetLoad(fleetClient.client, workers: 8)
      try await load.wait(for: 2_000)
      let tally = await load.stop()
      FleetReport.line("round robin over 10", tally, self.shares(tally, addresses))
      tally.expectNoFailures()
      self.expect(Array(repeating: 1, count: 10), within: 0.02, tally, addresses)
    }
    try await fleet.stop(addresses)
  }

  func testStaticWeights() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(4)
    let weights: [UInt32] = [1, 2, 3, 4]
    let policy = BalancingPolicy.weightedRoundRobin(.init(source: .resolver))
    try await FleetClient.run(addresses, policy) { fleetClient in
      var endpoints = try FleetClient.endpoints(addresses)
      for index in endpoints.indices { endpoints[index].weight = weights[index] }
      fleetClient.resolver.update(endpoints)
      _ = try await fleetClient.callUntil("all answer") { $0.succeeded.count == 4 }
      let tally = await fleetClient.call(1_000)
      FleetReport.line("weighted round robin, weights 1 2 3 4", tally, self.shares(tally, addresses))
      tally.expectNoFailures()
      self.expect(weights.map(Double.init), within: 0.05, tally, addresses)
    }
    try await fleet.stop(addresses)
  }

  /// One server has three times the capacity of each of the others, as its load reports say.
  func testLoadReports() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(3)
    let policy = BalancingPolicy.weightedRoundRobin(
      .init(source: .reports, blackoutPeriod: .milliseconds(300), updatePeriod: .milliseconds(100))
    )
    for (address, utilization) in zip(addresses, [0.25, 0.75, 0.75]) {
      try await fleet.report(.init(cpuUtilization: utilization, queriesPerSecond: 100), from: address)
    }
    try await FleetClient.run(addresses, policy) { fleetClient in
      // Equal at first.
      let before = try await fleetClient.callUntil("all answer") { $0.succeeded.count == 3 }
      let settling = try await fleetClient.callUntil("weights", inRowsOf: 50) { $0[addresses[0]] >= 29 }
      let tally = await fleetClient.call(1_000)
      FleetReport.line(
        "weighted round robin, ORCA loads 25 75 75 %",
        tally,
        "\(self.shares(tally, addresses)), \(before.callCount + settling.callCount) calls until then"
      )
      tally.expectNoFailures()
      self.expect([3, 1, 1], within: 0.05, tally, addresses)
    }
    try await fleet.stop(addresses)
  }

  /// Calls with the same header go to the same server, and few move when a server leaves.
  func testRingHash() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(5)
    let keys = (0..<60).map { "user-\($0)" }
    try await FleetClient.run(addresses, .ringHash(.init(key: .header("x-user")))) { fleetClient in
      var sum = FleetTally()
      func servers() async -> [String: Set<String>] {
        var servers: [String: Set<String>] = [:]
        for key in keys {
          let tally = await fleetClient.call(3, options: CallOptions(headers: ["x-user": [key]]))
          servers[key] = Set(tally.succeeded.keys)
          sum.add(tally)
        }
        return servers
      }
      let before = await servers()
      XCTAssertTrue(before.values.allSatisfy { $0.count == 1 }, "\(before)")
      XCTAssertEqual(Set(before.values.flatMap { $0 }).count, 5, "all are used")
      fleetClient.resolver.update(try FleetClient.endpoints(Array(addresses.dropLast())))
      let after = await servers()
      let moved = keys.count { before[$0] != after[$0] }
      let lost = keys.count { before[$0] == [addresses[4]] }
      FleetReport.line(
        "ring hash, 60 keys over 5",
        sum,
        "\(moved) keys moved when the server of \(lost) left"
      )
      sum.expectNoFailures()
      XCTAssertTrue(after.values.allSatisfy { $0.count == 1 && $0 != [addresses[4]] }, "\(after)")
      XCTAssertLessThan(moved, lost + keys.count / 5, "the ring grows with the number of servers")
    }
    try await fleet.stop(addresses)
  }

  /// One of four servers is busy with calls that it holds.
  func testLeastRequest() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(4)
    try await FleetClient.run([addresses[0]], .leastRequest()) { fleetClient in
      let held = fleetClient.hold(20)
      try await fleet.waitForHeld(20, at: [addresses[0]])
      fleetClient.resolver.update(try FleetClient.endpoints(addresses))
      _ = try await fleetClient.callUntil("the new ones answer") { tally in
        addresses.dropFirst().allSatisfy { tally[$0] > 0 }
      }
      let tally = await fleetClient.call(1_000)
      FleetReport.line("least request, 1 of 4 busy", tally, self.shares(tally, addresses))
      tally.expectNoFailures()
      // A sixteenth, where both choices are the busy one.
      XCTAssertLessThan(tally[addresses[0]], 125)
      try await fleet.release(addresses[0])
      try await held.wait(for: 20, of: "held calls")
      held.tally.expectNoFailures()
    }
    try await fleet.stop(addresses)
  }
}
