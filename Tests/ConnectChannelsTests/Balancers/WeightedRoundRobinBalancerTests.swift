import ConnectChannels
import XCTest

final class WeightedRoundRobinBalancerTests: XCTestCase {
  private let loads = EndpointLoads()

  /// Endpoint n has n + 1 times the capacity of the first.
  private func report(_ count: Int, now: Duration) {
    for slot in 0..<count {
      let report = LoadReport(cpuUtilization: 0.5, queriesPerSecond: Double(slot + 1) * 100)
      self.loads.record(report, of: EndpointID(slot), now: now)
    }
  }

  private func assertShares(
    _ decision: BalancerDecision,
    _ shares: [Double],
    seed: UInt64 = 1,
    line: UInt = #line
  ) {
    var random = SeededRandom(seed: seed)
    let calls = 20_000
    let counts = decision.picker.counts(calls, of: shares.count, &random)
    for (count, share) in zip(counts, shares) {
      let expected = Double(calls) * share / shares.reduce(0, +)
      XCTAssertEqual(Double(count), expected, accuracy: expected * 0.05, "\(counts) seed \(seed)", line: line)
    }
  }

  func testWeightsOfTheResolver() {
    for seed in seeds {
      var balancer = WeightedRoundRobinBalancer(.init(source: .resolver))
      let decision = balancer.update(.ready(4) { UInt32($0 + 1) }, seed: seed)
      self.assertShares(decision, [1, 2, 3, 4], seed: seed)
      XCTAssertNil(decision.updateAfter)
      // Zero is unknown: the mean.
      self.assertShares(balancer.update(.ready(3) { [2, 0, 4][$0] }, seed: seed), [2, 3, 4], seed: seed)
    }
  }

  func testExtremeTimes() {
    for (reported, now) in [
      (Duration.seconds(Int64.min), Duration.seconds(Int64.max)), (.seconds(Int64.max), .seconds(Int64.min)),
    ] {
      var balancer = WeightedRoundRobinBalancer(.init(blackoutPeriod: .seconds(Int64.max)))
      self.report(2, now: reported)
      _ = balancer.update(.ready(2), at: now, loads: self.loads)
      self.report(2, now: reported)
      self.assertShares(balancer.update(.ready(2), at: now, loads: self.loads), [1, 1])
    }
  }

  func testBlackoutAndExpiration() {
    var balancer = WeightedRoundRobinBalancer()
    var decision = balancer.update(.ready(4), at: .seconds(100), loads: self.loads)
    XCTAssertEqual(decision.updateAfter, .seconds(1))
    self.assertShares(decision, [1, 1, 1, 1])
    self.report(4, now: .seconds(101))
    self.report(4, now: .seconds(110))
    decision = balancer.update(.ready(4), at: .milliseconds(110_999), loads: self.loads)
    self.assertShares(decision, [1, 1, 1, 1])
    decision = balancer.update(.ready(4), at: .seconds(111), loads: self.loads)
    self.assertShares(decision, [1, 2, 3, 4])
    // The last report is from 110.
    decision = balancer.update(.ready(4), at: .milliseconds(289_999), loads: self.loads)
    self.assertShares(decision, [1, 2, 3, 4])
    decision = balancer.update(.ready(4), at: .seconds(290), loads: self.loads)
    self.assertShares(decision, [1, 1, 1, 1])
    // After that the blackout counts again.
    self.report(4, now: .seconds(291))
    decision = balancer.update(.ready(4), at: .seconds(292), loads: self.loads)
    self.assertShares(decision, [1, 1, 1, 1])
    decision = balancer.update(.ready(4), at: .seconds(301), loads: self.loads)
    self.assertShares(decision, [1, 2, 3, 4])
  }

  func testMissingReports() {
    var balancer = WeightedRoundRobinBalancer(.init(blackoutPeriod: .zero))
    _ = balancer.update(.ready(4), loads: self.loads)
    self.report(1, now: .seconds(1))
    self.assertShares(balancer.update(.ready(4), at: .seconds(1), loads: self.loads), [1, 1, 1, 1])
    self.report(3, now: .seconds(2))
    self.assertShares(balancer.update(.ready(4), at: .seconds(2), loads: self.loads), [1, 2, 3, 2])
  }

  func testAReconnectedEndpointBeginsAgain() {
    var balancer = WeightedRoundRobinBalancer()
    _ = balancer.update(.ready(2), loads: self.loads)
    self.report(2, now: .seconds(1))
    self.assertShares(balancer.update(.ready(2), at: .seconds(20), loads: self.loads), [1, 2])
    for change in [
      BalancedEndpoint.number(1, .connecting), BalancedEndpoint.number(1, .ready, isEjected: true),
    ] {
      _ = balancer.update([.number(0, .ready), change], at: .seconds(21), loads: self.loads)
      self.assertShares(balancer.update(.ready(2), at: .seconds(22), loads: self.loads), [1, 1])
      self.report(2, now: .seconds(10))
    }
  }

  func testUpdatePeriodHasAFloor() {
    XCTAssertEqual(
      BalancingPolicy.WeightedRoundRobin(updatePeriod: .zero).updatePeriod,
      .milliseconds(100)
    )
    XCTAssertEqual(BalancingPolicy.WeightedRoundRobin().updatePeriod, .seconds(1))
  }

  /// A server that gets more calls is more used, and reports so: shares approach the capacities.
  func testSharesFollowCapacities() {
    for seed in seeds {
      var balancer = WeightedRoundRobinBalancer(.init(blackoutPeriod: .zero))
      var random = SeededRandom(seed: seed)
      let capacities = [100.0, 200, 400, 800]
      var counts = [0, 0, 0, 0]
      for second in 0..<20 {
        let decision = balancer.update(
          .ready(4),
          at: .seconds(second),
          seed: random.next(),
          loads: self.loads
        )
        counts = decision.picker.counts(700, of: 4, &random)
        for (slot, count) in counts.enumerated() where count > 0 {
          let report = LoadReport(
            cpuUtilization: Double(count) / capacities[slot],
            queriesPerSecond: Double(count)
          )
          self.loads.record(report, of: EndpointID(slot), now: .seconds(second))
        }
      }
      for (slot, count) in counts.enumerated() {
        let expected = 700 * capacities[slot] / 1500
        XCTAssertEqual(Double(count), expected, accuracy: expected * 0.05 + 1, "seed \(seed)")
      }
      for slot in 0..<4 { self.loads.forgetReports(of: EndpointID(slot)) }
    }
  }
}
