internal import Connect
internal import ConnectChannels
internal import LoopbackServer
internal import XCTest

/// Endpoints that come and go.
final class FleetMembershipTests: XCTestCase {
  func testNewAddressGetsItsShare() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(5)
    try await FleetClient.run(Array(addresses.dropLast())) { fleetClient in
      let before = try await fleetClient.callUntil("all answer") { $0.succeeded.count == 4 }
      XCTAssertEqual(before[addresses[4]], 0)
      let start = ContinuousClock.now
      fleetClient.resolver.update(try FleetClient.endpoints(addresses))
      var between = FleetTally()
      for _ in 0..<20_000 where between[addresses[4]] == 0 { between.add(await fleetClient.call(1)) }
      let delay = ContinuousClock.now - start
      let after = await fleetClient.call(500)
      var sum = before
      sum.add(between)
      sum.add(after)
      let time = delay.formatted(.units(allowed: [.milliseconds]))
      FleetReport.line(
        "a new address beside 4",
        sum,
        "\(after[addresses[4]]) of the 500 calls from \(time) on"
      )
      XCTAssertEqual(addresses.map { after[$0] }, [100, 100, 100, 100, 100])
      sum.expectNoFailures()
    }
    try await fleet.stop(addresses)
  }

  func testAddressThatLeaves() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(4)
    try await FleetClient.run(addresses) { fleetClient in
      _ = try await fleetClient.callUntil("all answer") { $0.succeeded.count == 4 }
      let held = fleetClient.hold(20)
      try await fleet.waitForHeld(20, at: addresses)
      let before = try await fleet.stats(addresses[0])
      fleetClient.resolver.update(try FleetClient.endpoints(Array(addresses.dropFirst())))
      let after = await fleetClient.call(300)
      let started = try await fleet.stats(addresses[0]).started
      XCTAssertEqual(started, before.started, "no more calls")
      XCTAssertEqual(addresses.map { after[$0] }, [0, 100, 100, 100])
      XCTAssertEqual(held.values.count, 0, "still in flight")
      for address in addresses { try await fleet.release(address) }
      try await held.wait(for: 20, of: "held calls")
      var sum = after
      sum.add(held.tally)
      FleetReport.line(
        "an address leaves, 5 calls in flight there",
        sum,
        "\(held.tally[addresses[0]]) of 5 finished"
      )
      XCTAssertEqual(addresses.map { held.tally[$0] }, [5, 5, 5, 5])
      sum.expectNoFailures()
      // Its connection is closed: the server ends without a grace.
      try await fleet.stop(addresses[0], grace: 60)
    }
    try await fleet.stop(Array(addresses.dropFirst()))
  }

  func testAllDownThenOneBack() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(3)
    try await fleet.stop(addresses)
    try await FleetClient.run(addresses) { fleetClient in
      let waiting = Recorder<ResponseMessage<EchoResponse>>()
      for _ in 0..<20 {
        fleetClient.client.unary(TestMethods.echo, EchoRequest(), options: CallOptions(waitForReady: true)) {
          waiting.record($0)
        }
      }
      let failed = await fleetClient.call(20)
      XCTAssertEqual(failed.failures.count, 20)
      for error in failed.failures {
        ExpectedError(.unavailable, "refused").check(error, "all are down")
        XCTAssertTrue(addresses.contains { error.message?.contains($0) == true }, error.message ?? "")
      }
      XCTAssertEqual(waiting.values.count, 0)
      try await fleet.start(addresses[1])
      try await waiting.wait(for: 20, of: "calls that waited")
      var tally = FleetTally()
      for response in waiting.values { tally.add(response) }
      let after = await fleetClient.call(20)
      var sum = tally
      sum.add(failed)
      sum.add(after)
      FleetReport.line(
        "all 3 down, then 1 back",
        sum,
        "\(tally.successCount) of 20 that waited, \(failed.failures.count) of 20 that did not"
      )
      XCTAssertEqual(tally[addresses[1]], 20)
      XCTAssertEqual(after[addresses[1]], 20)
      try await fleet.stop(addresses[1])
    }
  }
}
