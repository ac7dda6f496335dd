internal import Connect
internal import ConnectChannels
internal import LoopbackServer
internal import XCTest

/// Zones, with the defaults of the channel: calls stay in the client's own zone, leave it by Envoy's rule, and come back.
final class FleetZoneTests: XCTestCase {
  /// All calls stay, and half of the own zone's servers keep the part that the rule says: 1.4 x 2 / 4 = 70 %.
  func testOwnZoneAndSpillOver() async throws {
    let fleet = try await Fleet.shared()
    try await FleetZones.withZones(in: { _ in fleet }) { zones in
      try await zones.run(.zoneAware(of: .roundRobin)) { fleetClient in
        let healthy = await fleetClient.call(2_000)
        FleetReport.line("zones, all is well", healthy, zones.shares(healthy))
        healthy.expectNoFailures()
        XCTAssertGreaterThanOrEqual(zones.share("a", of: healthy), 0.99)

        for address in zones["a"].prefix(2) { try await fleet.stop(address) }
        var settling = try await fleetClient.callUntil("calls leave the zone", inRowsOf: 100) { row in
          zones.share("a", of: row) < 0.8 && (zones["b"] + zones["c"]).allSatisfy { row[$0] > 0 }
        }
        let half = await fleetClient.call(2_000)
        FleetReport.line("zones, 2 of 4 servers of the own zone are down", half, zones.shares(half))
        XCTAssertEqual(zones.share("a", of: half), 0.7, accuracy: 0.01)
        XCTAssertEqual(zones.share("b", of: half), 0.15, accuracy: 0.01)
        XCTAssertEqual(zones.share("c", of: half), 0.15, accuracy: 0.01)

        for address in zones["a"].prefix(2) { try await fleet.start(address) }
        let back = try await self.timeUntilBack(zones, fleetClient, &settling)
        let after = await fleetClient.call(1_000)
        FleetReport.line("zones, both servers are back", after, "\(zones.shares(after)), after \(back)")
        XCTAssertGreaterThanOrEqual(zones.share("a", of: after), 0.99)
        for tally in [settling, half, after] { tally.expectNoFailures() }
      }
    }
  }

  /// The process with all servers of the own zone is killed, and another one starts on their addresses 18 seconds later. By
  /// the backoff (1 s, times 1.6, with a jitter of 20 %) attempts are 16 s and 26 s after the crash.
  func testTheOwnZoneDiesAndReturns() async throws {
    try await Fleet.withProcesses(2) { fleets in
      let others = try await Fleet.shared()
      try await FleetZones.withZones(in: { $0 == "a" ? fleets[0] : others }) { zones in
        try await zones.run(.zoneAware(of: .roundRobin)) { fleetClient in
          let healthy = await fleetClient.call(500)
          XCTAssertGreaterThanOrEqual(zones.share("a", of: healthy), 0.99)
          let load = FleetLoad(fleetClient.client, workers: 4)
          do {
            try await load.wait(for: 50)
            fleets[0].process.kill()
            try await Task.sleep(for: .seconds(18))
            try await load.wait(for: 50)
            let away = await fleetClient.call(200)
            XCTAssertEqual(zones.share("a", of: away), 0)
            XCTAssertEqual(away.callCount, away.successCount)
            for address in zones["a"] { try await fleets[1].start(address) }
            var sum = FleetTally()
            let back = try await self.timeUntilBack(zones, fleetClient, &sum)
            sum.add(away)
            sum.add(await load.stop())
            sum.add(healthy)
            FleetReport.line(
              "zones, kill -9 of the own zone for 18 s, calls may be repeated",
              sum,
              "back after \(back)"
            )
            sum.expectNoFailures()
            let after = await fleetClient.call(500)
            XCTAssertGreaterThanOrEqual(zones.share("a", of: after), 0.99)
          } catch {
            _ = await load.stop()
            throw error
          }
        }
      }
    }
  }

  /// All servers of the own zone send GOAWAY, and end when their calls are over. No call has to be repeated.
  func testTheOwnZoneIsDrained() async throws {
    let fleet = try await Fleet.shared()
    try await FleetZones.withZones(isSimple: true, in: { _ in fleet }) { zones in
      try await zones.run(.zoneAware(of: .leastRequest()), retries: false) { fleetClient in
        let load = FleetLoad(fleetClient.client, workers: 8)
        do {
          try await load.wait(for: 200)
          for address in zones["a"] { try await fleet.stop(address, grace: 10) }
          try await load.wait(for: 50)
          let away = await fleetClient.call(200)
          XCTAssertEqual(zones.share("a", of: away), 0)
          XCTAssertEqual(away.callCount, away.successCount)
          for address in zones["a"] { try await fleet.start(address) }
          var sum = FleetTally()
          let back = try await self.timeUntilBack(zones, fleetClient, &sum)
          sum.add(away)
          sum.add(await load.stop())
          FleetReport.line("zones, drain of the own zone, GOAWAY", sum, "back after \(back)")
          sum.expectNoFailures()
        } catch {
          _ = await load.stop()
          throw error
        }
      }
    }
  }

  /// 10,000 calls by weights.
  func testWeightedTargets() async throws {
    let fleet = try await Fleet.shared()
    try await FleetZones.withZones(in: { _ in fleet }) { zones in
      let weights: [(String, UInt32)] = [("a", 60), ("b", 30), ("c", 10)]
      let policy = BalancingPolicy.weightedTarget(weights.map { .init($0, weight: $1, .roundRobin) })
      try await zones.run(policy, retries: false) { fleetClient in
        _ = try await fleetClient.callUntil("all answer") { row in
          ["a", "b", "c"].allSatisfy { zones.share($0, of: row) > 0 }
        }
        let load = FleetLoad(fleetClient.client, workers: 16)
        try await load.wait(for: 10_000)
        let tally = await load.stop()
        FleetReport.line("weighted targets of 60, 30, 10", tally, zones.shares(tally))
        tally.expectNoFailures()
        for (zone, weight) in weights {
          let expected = Double(weight) / 100
          XCTAssertEqual(zones.share(zone, of: tally), expected, accuracy: expected * 0.02, zone)
        }
      }
    }
  }

  /// All calls go to the first priority that works, and back at once.
  func testPriorities() async throws {
    try await Fleet.withProcesses(2) { fleets in
      let others = try await Fleet.shared()
      try await FleetZones.withZones(in: { $0 == "a" ? fleets[0] : others }) { zones in
        let policy = BalancingPolicy.priority([
          .init("a", .roundRobin), .init("b", .roundRobin), .init("c", .roundRobin),
        ])
        try await zones.run(policy) { fleetClient in
          var sum = await fleetClient.call(200)
          XCTAssertEqual(zones.share("a", of: sum), 1)
          fleets[0].process.kill()
          let start = ContinuousClock.now
          let failover = try await fleetClient.callUntil("failover") { zones.share("b", of: $0) == 1 }
          let time = ContinuousClock.now - start
          XCTAssertLessThan(time, .seconds(10))
          XCTAssertEqual(failover.callCount, failover.successCount)
          XCTAssertEqual(zones.share("c", of: failover), 0)
          for address in zones["b"] { try await others.stop(address) }
          let second = try await fleetClient.callUntil("second failover") { zones.share("c", of: $0) == 1 }
          for address in zones["a"] { try await fleets[1].start(address) }
          let back = try await self.timeUntilBack(zones, fleetClient, &sum)
          for tally in [failover, second] { sum.add(tally) }
          FleetReport.line("priorities, two failovers", sum, "first after \(time), back after \(back)")
          sum.expectNoFailures()
        }
      }
    }
  }

  /// How long it takes until 20 calls in a row go to zone a.
  private func timeUntilBack(
    _ zones: FleetZones,
    _ fleetClient: FleetClient,
    _ sum: inout FleetTally
  ) async throws -> Duration {
    let start = ContinuousClock.now
    sum.add(try await fleetClient.callUntil("back in zone a") { zones.share("a", of: $0) == 1 })
    let milliseconds = Int((ContinuousClock.now - start) / .milliseconds(1))
    print("calls are back in zone a after \(milliseconds) ms")
    // Within a second of the servers' start, but the machine may be busy with other things.
    XCTAssertLessThan(milliseconds, 5_000)
    return .milliseconds(milliseconds)
  }
}
