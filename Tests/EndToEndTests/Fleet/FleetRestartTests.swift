internal import Connect
internal import ConnectInterceptors
internal import LoopbackServer
internal import XCTest

/// Servers that restart in order, and servers that die.
final class FleetRestartTests: XCTestCase {
  /// Servers restart one after the other, under load. Each sends GOAWAY first, that names the last call that it will answer.
  func testRollingRestart() async throws {
    let (tally, addresses, fleet) = try await self.restart(10, isSimple: true)
    FleetReport.line("rolling restart of 10, GOAWAY", tally)
    tally.expectNoFailures()
    var started = 0
    for address in addresses { started += try await fleet.stats(address).started }
    XCTAssertEqual(started, tally.callCount, "each call reached one server, once")
    try await fleet.stop(addresses)
  }

  /// grpcio accepts calls behind its GOAWAY, and answers some of them with `canceled` without having looked at them: they have
  /// to be made again.
  func testRollingRestartOfGRPCIO() async throws {
    let policy = RetryPolicy(
      backoff: .init(base: .milliseconds(1)),
      codes: [.unavailable, .canceled],
      methods: { _ in true }
    )
    let budget = RetryBudget(maximumTokens: 100)
    let retry: InterceptorFactory = { _ in RetryInterceptor(policy: policy, budget: budget) }
    let (tally, addresses, fleet) = try await self.restart(10, isSimple: false, interceptors: [retry])
    FleetReport.line("rolling restart of 10 of grpcio, calls may be repeated", tally)
    tally.expectNoFailures()
    var started = 0
    for address in addresses { started += try await fleet.stats(address).started }
    XCTAssertEqual(started, tally.callCount, "no call was handled twice")
    try await fleet.stop(addresses)
  }

  private func restart(
    _ count: Int,
    isSimple: Bool,
    interceptors: [InterceptorFactory] = []
  ) async throws -> (FleetTally, [String], Fleet) {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(count, isSimple: isSimple)
    let tally = try await FleetClient.run(addresses, interceptors: interceptors) { fleetClient in
      let load = FleetLoad(fleetClient.client, workers: 8)
      do {
        for address in addresses {
          try await load.wait(for: 5, at: address)
          try await fleet.stop(address, grace: 10)
          try await load.wait(for: 20)
          try await fleet.start(address)
          try await load.wait(for: 5, at: address)
        }
      } catch {
        _ = await load.stop()
        throw error
      }
      return await load.stop()
    }
    return (tally, addresses, fleet)
  }

  /// Calls that are under way when the GOAWAY comes.
  func testCallsInFlightOutliveGoAway() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(4)
    let tally = try await FleetClient.run(addresses) { fleetClient in
      // All are connected.
      _ = try await fleetClient.callUntil("all answer") { $0.succeeded.count == 4 }
      let held = fleetClient.hold(40)
      try await fleet.waitForHeld(40, at: addresses)
      let stops = addresses.map { address in Task { try await fleet.stop(address, grace: 30) } }
      // The client has seen the GOAWAY and has nowhere to go.
      try await fleetClient.log.wait(for: "channel is TRANSIENT_FAILURE")
      XCTAssertEqual(held.values.count, 0)
      for address in addresses { try await fleet.release(address) }
      try await held.wait(for: 40, of: "held calls")
      for stop in stops { try await stop.value }
      return held.tally
    }
    FleetReport.line("calls in flight on 4 servers that all send GOAWAY", tally)
    tally.expectNoFailures()
    XCTAssertEqual(addresses.map { tally[$0] }, [10, 10, 10, 10])
  }

  /// One of three servers is killed: its calls in flight fail, each once.
  func testKilledServer() async throws {
    try await Fleet.withProcesses(3) { fleets in
      var addresses: [String] = []
      for (index, fleet) in fleets.enumerated() {
        addresses.append(try await fleet.start("127.0.0.\(2 + index)"))
      }
      try await FleetClient.run(addresses) { fleetClient in
        _ = try await fleetClient.callUntil("all answer") { $0.succeeded.count == 3 }
        let held = fleetClient.hold(30)
        for (fleet, address) in zip(fleets, addresses) { try await fleet.waitForHeld(10, at: [address]) }
        let load = FleetLoad(fleetClient.client, workers: 6)
        try await load.wait(for: 100)
        fleets[0].process.kill()
        try await held.wait(for: 10, of: "failed calls")
        try await load.wait(for: 100)
        let atDetection = load.tally.failures.count
        try await load.wait(for: 300)
        let tallies = load.tallies
        let afterwards = await fleetClient.call(100)
        let tally = await load.stop()
        for index in [1, 2] { try await fleets[index].release(addresses[index]) }
        try await held.wait(for: 30, of: "held calls")

        var sum = tally
        sum.add(held.tally)
        sum.add(afterwards)
        FleetReport.line(
          "kill -9 of 1 of 3",
          sum,
          "\(held.tally.failures.count) of 30 held calls, \(tally.failures.count) of 6 callers' calls"
        )
        XCTAssertEqual(held.tally.failures.map(\.code), Array(repeating: .unavailable, count: 10))
        XCTAssertEqual(addresses.map { held.tally[$0] }, [0, 10, 10])
        XCTAssertTrue(
          tallies.allSatisfy { $0.failures.count <= 1 },
          "at most those in flight: \(tally.failures)"
        )
        XCTAssertEqual(tally.failures.count, atDetection, "none once it was known")
        XCTAssertTrue(tally.failures.allSatisfy { $0.code == .unavailable }, "\(tally.failures)")
        afterwards.expectNoFailures()
        XCTAssertEqual(afterwards[addresses[1]] + afterwards[addresses[2]], 100)
      }
    }
  }
}
