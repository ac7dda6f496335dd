internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
internal import LoopbackServer
internal import XCTest

/// Servers that answer, but with errors.
final class FleetTroubleTests: XCTestCase {
  private static let unavailable = 14

  /// One of five answers `unavailable` to every call.
  func testFlappingServerIsEjected() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(5)
    let detection = OutlierDetection(
      interval: .milliseconds(200),
      baseEjectionTime: .seconds(2),
      maximumEjectionPercent: 20,
      successRate: nil,
      failurePercentage: .init(threshold: 50, minimumHosts: 3, minimumCalls: 5)
    )
    try await FleetClient.run(addresses, .outlierDetection(detection, of: .roundRobin)) { fleetClient in
      var sum = try await fleetClient.callUntil("all answer") { $0.succeeded.count == 5 }
      try await fleet.fail(addresses[2], Self.unavailable)
      let sick = try await fleetClient.callUntil("ejected") { _ in fleetClient.log.count(of: "is ejected") > 0
      }
      let ejected = await fleetClient.call(100)
      if fleetClient.log.count(of: "returns from ejection") == 0 {
        ejected.expectNoFailures()
        XCTAssertEqual(addresses.map { ejected[$0] }, [25, 25, 0, 25, 25])
      }
      try await fleet.fail(addresses[2], 0)
      let well = try await fleetClient.callUntil("back") { $0[addresses[2]] > 0 }
      let after = await fleetClient.call(100)
      XCTAssertEqual(addresses.map { after[$0] }, [20, 20, 20, 20, 20])
      for tally in [sick, ejected, well, after] { sum.add(tally) }
      FleetReport.line(
        "1 of 5 answers unavailable, outlier detection",
        sum,
        "\(sick.failures.count) failed until ejection, \(ejected.failures.count) of 100 after it"
      )
      well.expectNoFailures()
      after.expectNoFailures()
    }
    try await fleet.stop(addresses)
  }

  /// All answer `unavailable`: retries stop at the budget's half. Then one in two does: successes pay for retries.
  func testRetryStorm() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(4)
    for address in addresses { try await fleet.fail(address, Self.unavailable) }
    let budget = RetryBudget(maximumTokens: 10, tokenRatio: 0.1)
    let policy = RetryPolicy(backoff: .init(base: .milliseconds(1)), methods: { _ in true })
    let retry: InterceptorFactory = { _ in RetryInterceptor(policy: policy, budget: budget) }
    func attempts() async throws -> Int {
      var sum = 0
      for address in addresses { sum += try await fleet.stats(address).started }
      return sum
    }
    try await FleetClient.run(addresses, interceptors: [retry]) { fleetClient in
      let storm = await fleetClient.call(500)
      let stormAttempts = try await attempts()
      FleetReport.line("all 4 answer unavailable, retry budget", storm, "\(stormAttempts) attempts")
      XCTAssertEqual(storm.failures.count, 500)
      XCTAssertLessThanOrEqual(stormAttempts, 500 + 5, "10 tokens, half of them for retries")
      XCTAssertGreaterThan(stormAttempts, 500)

      for address in addresses.prefix(2) { try await fleet.fail(address, 0) }
      let half = await fleetClient.call(1_000)
      let halfAttempts = try await attempts() - stormAttempts
      FleetReport.line("2 of 4 answer unavailable, retry budget", half, "\(halfAttempts) attempts")
      let retries = halfAttempts - 1_000
      XCTAssertLessThanOrEqual(retries, half.successCount / 10 + 1, "a tenth of a token for each success")
    }
    try await fleet.stop(addresses)
  }
}
