internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import LoopbackServer
internal import XCTest

/// Servers that do not answer any more, though their connections stay.
final class FleetBlackHoleTests: XCTestCase {
  private static let noAnswer = "did not answer a ping"

  /// A server hangs. Once a call has timed out, others go elsewhere, and the connection ends without an answer to a ping.
  func testFrozenServer() async throws {
    try await Fleet.withProcesses(2) { fleets in
      let addresses = [try await fleets[0].start("127.0.0.2"), try await fleets[1].start("127.0.0.3")]
      try await FleetClient.run(addresses) { fleetClient in
        var sum = try await fleetClient.callUntil("both answer") { $0.succeeded.count == 2 }
        fleets[0].process.freeze()
        var silent = FleetTally()
        let options = CallOptions(timeout: .milliseconds(300))
        for _ in 0..<4 where silent.failures.isEmpty {
          silent.add(await fleetClient.call(1, options: options))
        }
        let during = await fleetClient.call(50)
        XCTAssertEqual(
          fleetClient.log.count(of: Self.noAnswer),
          0,
          "calls have waited for the ping's answer"
        )
        try await fleetClient.log.wait(for: Self.noAnswer)
        let after = await fleetClient.call(50)
        fleets[0].process.resume()
        let again = try await fleetClient.callUntil("both answer") { $0.succeeded.count == 2 }
        for tally in [silent, during, after, again] { sum.add(tally) }
        FleetReport.line("1 of 2 frozen, found by calls that time out", sum, "then back")
        XCTAssertEqual(silent.failures.map(\.code), [.deadlineExceeded])
        XCTAssertEqual(during[addresses[1]], 50)
        XCTAssertEqual(after[addresses[1]], 50)
        again.expectNoFailures()
      }
    }
  }

  /// The same with pick first and all defaults: the other addresses are tried while the ping is out. It makes no difference
  /// whether deadlines or cancellations end the calls to the frozen server.
  func testFrozenServerOfPickFirst() async throws {
    for cancels in [false, true] {
      try await Fleet.withProcesses(2) { fleets in
        let others = try await fleets[1].start(3)
        let addresses = [try await fleets[0].start("127.0.0.5")] + others
        try await FleetClient.run(addresses, .pickFirst, configure: { $0.channel.backoff = .defaults }) {
          fleetClient in
          var sum = await fleetClient.call(20)
          XCTAssertEqual(sum[addresses[0]], 20)
          fleets[0].process.freeze()
          let limit = Duration.seconds(cancels ? 1 : 2)
          let tallies = await withTaskGroup(of: FleetTally.self) { group in
            for _ in 0..<10 {
              group.addTask {
                var tally = FleetTally()
                for _ in 0..<20 {
                  tally.add(await fleetClient.call(within: limit, cancels: cancels))
                }
                return tally
              }
            }
            return await group.reduce(into: []) { $0.append($1) }
          }
          for tally in tallies {
            sum.add(tally)
            // The one that was sent before anybody could know.
            XCTAssertLessThanOrEqual(tally.failures.count, 1)
            XCTAssertGreaterThanOrEqual(tally[addresses[1]], 19)
          }
          let end = cancels ? "cancelled after 1 s" : "2 s for a call"
          FleetReport.line("the first of 4 frozen, pick first, 10 callers, \(end)", sum)
        }
      }
    }
  }

  /// With all defaults, nothing but the silence itself tells that the only server hangs: there is no deadline, and nobody
  /// cancels.
  func testFrozenServerWithoutDeadlines() async throws {
    try await Fleet.withProcesses(1) { fleets in
      let address = try await fleets[0].start("127.0.0.2")
      try await FleetClient.run([address], .pickFirst, configure: { $0.channel.backoff = .defaults }) {
        fleetClient in
        var sum = await fleetClient.call(1)
        fleets[0].process.freeze()
        let start = ContinuousClock.now
        let lost = await withTaskGroup(of: FleetTally.self) { group in
          for _ in 0..<10 { group.addTask { await fleetClient.call(1) } }
          return await group.reduce(into: FleetTally()) { $0.add($1) }
        }
        let time = ContinuousClock.now - start
        sum.add(lost)
        FleetReport.line("the only server is frozen, no deadlines, 10 callers", sum, "after \(time)")
        XCTAssertEqual(lost.failures.map(\.code), Array(repeating: .unavailable, count: 10))
        XCTAssertEqual(lost.failures.first?.message?.contains(Self.noAnswer), true)
        fleets[0].process.resume()
        _ = try await fleetClient.callUntil("it answers", inRowsOf: 1) { $0.failures.isEmpty }
      }
    }
  }

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
