internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import LoopbackServer
internal import XCTest

/// Servers that do not answer any more, though their connections stay.
final class FleetBlackHoleTests: XCTestCase {
  // MARK: Packets that are lost

  /// Calls `body` with a server in a namespace that can stop answering, and one that always answers.
  private func withHole(
    configure: (inout NIOHTTPClient.Configuration) -> Void,
    _ body: (FleetClient, NetworkHole, _ lost: (Fleet, String), _ good: (Fleet, String)) async throws -> Void
  ) async throws {
    let hole = try NetworkHole.make()
    defer { hole.remove() }
    let fleet = try await Fleet.shared()
    let good = try await fleet.start("127.0.0.2")
    let far = Fleet(process: try await PythonServer.start(.fleet, launcher: hole.launcher))
    defer { far.process.kill() }
    let lost = try await far.start(hole.address)
    try await FleetClient.run([lost, good], configure: configure) { fleetClient in
      _ = try await fleetClient.callUntil("both answer") { $0.succeeded.count == 2 }
      try await body(fleetClient, hole, (far, lost), (fleet, good))
    }
    try await fleet.stop(good)
  }

  /// What was sent is not acknowledged: the system gives the connection up.
  func testUnacknowledgedData() async throws {
    try await self.withHole(configure: {
      $0.timeouts.unacknowledged = .milliseconds(500)
      $0.timeouts.connect = .seconds(1)
    }) { fleetClient, hole, lost, good in
      try hole.stopAnswering()
      let calls = Recorder<ResponseMessage<EchoResponse>>()
      for _ in 0..<20 { fleetClient.client.unary(TestMethods.echo, EchoRequest()) { calls.record($0) } }
      try await calls.wait(for: 20, of: "calls")
      var tally = FleetTally()
      for response in calls.values { tally.add(response) }
      let after = await fleetClient.call(100)
      try hole.answerAgain()
      let again = try await fleetClient.callUntil("both answer") { $0.succeeded.count == 2 }
      var sum = tally
      sum.add(after)
      sum.add(again)
      FleetReport.line(
        "1 of 2 loses all packets, TCP_USER_TIMEOUT",
        sum,
        "\(tally.failures.count) of 20 in flight"
      )
      XCTAssertEqual(tally.failures.map(\.code), Array(repeating: .unavailable, count: 10))
      XCTAssertEqual(tally[good.1], 10)
      XCTAssertEqual(after[good.1], 100)
      again.expectNoFailures()
    }
  }

  /// Nothing is sent: pings find it out.
  func testKeepalive() async throws {
    try await self.withHole(configure: {
      $0.http2.keepalive = .init(interval: .milliseconds(300), timeout: .milliseconds(500))
      $0.timeouts.unacknowledged = nil
      $0.timeouts.connect = .seconds(1)
    }) { fleetClient, hole, lost, good in
      let held = fleetClient.hold(20)
      try await lost.0.waitForHeld(10, at: [lost.1])
      try await good.0.waitForHeld(10, at: [good.1])
      try hole.stopAnswering()
      try await held.wait(for: 10, of: "failed calls")
      let after = await fleetClient.call(100)
      try await good.0.release(good.1)
      try await held.wait(for: 20, of: "held calls")
      var sum = held.tally
      sum.add(after)
      FleetReport.line(
        "1 of 2 loses all packets, keepalive",
        sum,
        "\(held.tally.failures.count) of 20 in flight"
      )
      XCTAssertEqual(held.tally.failures.count, 10)
      for error in held.tally.failures { ExpectedError(.unavailable, "keepalive").check(error, "in flight") }
      XCTAssertEqual(held.tally[good.1], 10)
      XCTAssertEqual(after[good.1], 100)
    }
  }
}
