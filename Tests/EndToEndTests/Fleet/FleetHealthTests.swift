internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import LoopbackServer
internal import XCTest

/// Servers that say how they are, by grpcio-health-checking.
final class FleetHealthTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"

  private func withClient(
    _ addresses: [String],
    _ body: (FleetClient) async throws -> Void
  ) async throws {
    try await FleetClient.run(
      addresses,
      configure: { $0.channel.healthCheckedService = Self.service },
      body
    )
  }

  func testNotServingAndBack() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(3, hasHealth: true)
    for address in addresses { try await fleet.setHealth(address, Self.service, "SERVING") }
    try await self.withClient(addresses) { fleetClient in
      var sum = try await fleetClient.callUntil("all answer") { $0.succeeded.count == 3 }
      try await fleet.setHealth(addresses[0], Self.service, "NOT_SERVING")
      sum.add(try await fleetClient.callUntil("not serving") { $0[addresses[0]] == 0 })
      let without = await fleetClient.call(200)
      try await fleet.setHealth(addresses[0], Self.service, "SERVING")
      sum.add(try await fleetClient.callUntil("serving") { $0[addresses[0]] > 0 })
      let with = await fleetClient.call(300)
      XCTAssertEqual(addresses.map { without[$0] }, [0, 100, 100])
      XCTAssertEqual(addresses.map { with[$0] }, [100, 100, 100])
      sum.add(without)
      sum.add(with)
      FleetReport.line(
        "1 of 3 NOT_SERVING and back",
        sum,
        "\(without[addresses[0]]) of 200, then \(with[addresses[0]]) of 300 calls there"
      )
      sum.expectNoFailures()
    }
    try await fleet.stop(addresses)
  }

  /// One server has no health service, and one does not know the service asked for.
  func testNoHealthServiceAndServiceUnknown() async throws {
    let fleet = try await Fleet.shared()
    let healthy = try await fleet.start("127.0.0.2", hasHealth: true)
    try await fleet.setHealth(healthy, Self.service, "SERVING")
    let plain = try await fleet.start("127.0.0.3")
    let ignorant = try await fleet.start("127.0.0.4", hasHealth: true)
    let addresses = [healthy, plain, ignorant]
    try await self.withClient(addresses) { fleetClient in
      var sum = try await fleetClient.callUntil("two answer") { $0.succeeded.count == 2 }
      let tally = await fleetClient.call(200)
      XCTAssertEqual(addresses.map { tally[$0] }, [100, 100, 0])
      sum.add(tally)
      FleetReport.line(
        "SERVING, no health service, SERVICE_UNKNOWN",
        sum,
        addresses.map { "\(tally[$0])" }.joined(separator: " / ")
      )
      sum.expectNoFailures()
      let started = try await fleet.stats(ignorant).started
      XCTAssertEqual(started, 0)
    }
    try await fleet.stop(addresses)
  }

  func testNoneServes() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(2, hasHealth: true)
    for address in addresses { try await fleet.setHealth(address, Self.service, "NOT_SERVING") }
    try await self.withClient(addresses) { fleetClient in
      let failed = await fleetClient.call(10)
      XCTAssertEqual(failed.failures.count, 10)
      for error in failed.failures { ExpectedError(.unavailable, "NOT_SERVING").check(error, "none serves") }
      let waiting = Recorder<ResponseMessage<EchoResponse>>()
      fleetClient.client.unary(TestMethods.echo, EchoRequest(), options: CallOptions(waitForReady: true)) {
        waiting.record($0)
      }
      try await fleet.setHealth(addresses[1], Self.service, "SERVING")
      let response = try await waiting.wait(for: 1, of: "calls that waited")[0]
      XCTAssertEqual(response.trailers.first("x-server"), addresses[1], "\(response)")
      FleetReport.line("2 of 2 NOT_SERVING", failed, "1 call that waited succeeded when 1 was SERVING")
    }
    try await fleet.stop(addresses)
  }
}
