internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import LoopbackServer
internal import XCTest

/// Limits of servers, and servers behind a proxy.
final class FleetCapacityTests: XCTestCase {
  /// 35 calls of a server that takes 10 on each connection: three connections, and a queue.
  func testMaximumStreams() async throws {
    let fleet = try await Fleet.shared()
    let address = try await fleet.start("127.0.0.2", streams: 10)
    try await FleetClient.run(
      [address],
      .pickFirst,
      configure: { $0.limits.http2ConnectionsPerAddress = 3 },
      { fleetClient in
        let held = fleetClient.hold(35)
        try await fleet.waitForHeld(30, at: [address])
        let full = try await fleet.stats(address)
        XCTAssertEqual(full.started, 30)
        XCTAssertEqual(full.peers, 3)
        for count in 31...35 {
          try await fleet.release(address, 1)
          try await fleet.waitForHeld(count, at: [address])
        }
        let order = try await fleet.stats(address)
        try await fleet.release(address)
        try await held.wait(for: 35, of: "held calls")
        FleetReport.line(
          "35 long calls, 10 streams for a connection, 3 connections",
          held.tally,
          "\(full.started) at once on \(full.peers) connections, then \(order.held.suffix(5))"
        )
        XCTAssertEqual(Array(order.held.suffix(5)), [30, 31, 32, 33, 34], "in order")
        XCTAssertEqual(order.peers, 3)
        held.tally.expectNoFailures()
      }
    )
    try await fleet.stop(address)
  }

  /// Two servers behind one address, Envoy's, one of which is killed.
  func testBackendBehindEnvoyIsKilled() async throws {
    try await Fleet.withProcesses(2) { fleets in
      let addresses = [try await fleets[0].start("127.0.0.2"), try await fleets[1].start("127.0.0.3")]
      let envoy = try await PythonServer.start(.envoy, arguments: addresses)
      do {
        try await self.checkEnvoy(envoy, fleets, addresses)
      } catch {
        await envoy.stop()
        throw error
      }
      await envoy.stop()
    }
  }

  private func checkEnvoy(_ envoy: PythonServer, _ fleets: [Fleet], _ addresses: [String]) async throws {
    let address = "127.0.0.1:\(try envoy.port("http"))"
    try await FleetClient.run([address]) { fleetClient in
      _ = try await fleetClient.callUntil("both answer") { $0.succeeded.count == 2 }
      let load = FleetLoad(fleetClient.client, workers: 6)
      try await load.wait(for: 100)
      fleets[0].process.kill()
      try await load.wait(for: 100)
      let atDetection = load.tally.failures.count
      try await load.wait(for: 300)
      let tallies = load.tallies
      let after = await fleetClient.call(100)
      let tally = await load.stop()
      var sum = tally
      sum.add(after)
      FleetReport.line(
        "Envoy before 2 servers, kill -9 of 1",
        sum,
        "\(tally.failures.count) of 6 callers' calls, \(after.failures.count) of 100 afterwards"
      )
      // Twice where Envoy comes back before the system has closed the listener of the process: it closes one socket after the
      // other.
      XCTAssertTrue(tallies.allSatisfy { $0.failures.count <= 2 }, "\(tally.failures)")
      XCTAssertEqual(tally.failures.count, atDetection, "none once it was known")
      XCTAssertTrue(tally.failures.allSatisfy { $0.code == .unavailable }, "\(tally.failures)")
      after.expectNoFailures()
      XCTAssertEqual(after[addresses[1]], 100)
    }
  }
}
