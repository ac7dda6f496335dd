import ConnectChannels
import XCTest

final class WeightedTargetBalancerTests: XCTestCase {
  private func policy(_ weights: [UInt32], _ policy: BalancingPolicy = .roundRobin) -> BalancingPolicy {
    .weightedTarget(weights.enumerated().map { .init("t\($0)", weight: $1, policy) })
  }

  private func fleet(_ weights: [UInt32], seed: UInt64 = 1) -> TreeFixture {
    let list = weights.indices.flatMap { target in
      (0..<2).map { number in
        var endpoint = BalancedEndpoint.number(2 * target + number, .idle).endpoint
        endpoint.path = ["t\(target)"]
        return endpoint
      }
    }
    var fleet = TreeFixture(self.policy(weights), list, seed: seed)
    fleet.connectAll()
    return fleet
  }

  func testCallsFollowTheWeightsWithinTwoPercent() {
    let many = (1...100).map { UInt32($0) }
    for weights in [[1, 99], [90, 10], [1, 1, 8], [1, 1, 1], many] as [[UInt32]] {
      for seed in seeds {
        let counts = self.fleet(weights, seed: seed).calls(10_000)
        let sum = weights.reduce(0) { $0 + Double($1) }
        for (index, weight) in weights.enumerated() {
          let expected = 10_000 * Double(weight) / sum
          // A call more or less is as exact as it can be.
          let accuracy = max(expected * 0.02, 2)
          XCTAssertEqual(
            Double(counts["t\(index)"] ?? 0),
            expected,
            accuracy: accuracy,
            "\(weights.prefix(3)), seed \(seed)"
          )
        }
      }
    }
  }

  /// Turns go on when other endpoints change.
  func testChangesDoNotDisturbTheShares() {
    for seed in seeds {
      var fleet = self.fleet([1, 99, 50], seed: seed)
      var counts: [String: Int] = [:]
      fleet.set([4, 5], .transientFailure)
      for step in 0..<10_000 {
        counts.merge(fleet.calls(1), uniquingKeysWith: +)
        fleet.set([4], step % 2 == 0 ? .connecting : .transientFailure)
      }
      XCTAssertEqual(Double(counts["t0"] ?? 0), 100, accuracy: 2, "seed \(seed)")
      XCTAssertEqual(counts["t2"], nil)
    }
  }

  func testOnlyReadyTargetsGetCalls() {
    var fleet = self.fleet([1, 3])
    XCTAssertEqual(fleet.decision.parts.map(\.share), [0.25, 0.75])
    fleet.set([2, 3], .transientFailure)
    XCTAssertEqual(fleet.calls(100), ["t0": 100])
    XCTAssertEqual(fleet.decision.parts.map(\.share), [1, 0])
    fleet.set([0, 1], .connecting)
    XCTAssertEqual(fleet.decision.state, .connecting)
    XCTAssertEqual(fleet.pick(), .wait)
    fleet.set([0, 1], .transientFailure)
    XCTAssertEqual(fleet.decision.state, .transientFailure)
    let reasons = Set(
      (0..<100).compactMap { _ -> String? in fleet.failure }
    )
    XCTAssertEqual(
      reasons,
      [
        "target t0: none of 2 endpoints is available; last error: 10.0.0.1:80: refused",
        "target t1: none of 2 endpoints is available; last error: 10.0.0.3:80: refused",
      ]
    )
    // A target that has failed counts as failing until it is ready.
    fleet.set([0], .connecting)
    XCTAssertEqual(fleet.decision.state, .transientFailure)
    fleet.set([0], .ready)
    XCTAssertEqual(fleet.decision.state, .ready)
  }

  func testATargetWithoutWeightGetsNothing() {
    var fleet = self.fleet([0, 5])
    XCTAssertEqual(fleet.calls(100), ["t1": 100])
    XCTAssertEqual(fleet.endpoints.map(\.state), [.idle, .idle, .ready, .ready])
    XCTAssertTrue(fleet.isResting(0))
    fleet = self.fleet([0])
    XCTAssertEqual(fleet.failure, "all targets with endpoints have the weight 0; give one of them a weight")
  }

  /// Targets that connect with the first call are woken by calls.
  func testIdleTargets() {
    var list: [Endpoint] = []
    for target in ["t0", "t1"] {
      var endpoint = BalancedEndpoint.number(list.count, .idle).endpoint
      endpoint.path = [target]
      list.append(endpoint)
    }
    var fleet = TreeFixture(self.policy([1, 1], .ringHash()), list)
    XCTAssertEqual(fleet.decision.state, .idle)
    let picks = Set((0..<10).map { _ in fleet.decision.picker.pick(hash: 1) })
    XCTAssertEqual(picks, [.connect(EndpointID(0)), .connect(EndpointID(1))])
    // Also while another one is ready.
    fleet.set([0], .ready)
    XCTAssertEqual(fleet.decision.state, .ready)
    XCTAssertEqual(fleet.calls(10), ["t0": 5, "": 5])
    XCTAssertEqual(fleet.decision.parts.map(\.share), [0.5, 0.5])
    fleet.set([1], .connecting)
    XCTAssertEqual(fleet.calls(10), ["t0": 10])
  }

  /// Merged endpoints of pick_first in different targets are different endpoints.
  func testPickFirstInSeveralTargets() {
    let list = (0..<4).map { index in
      var endpoint = BalancedEndpoint.number(index, .idle).endpoint
      endpoint.path = ["t\(index / 2)"]
      return endpoint
    }
    var fleet = TreeFixture(self.policy([1, 1], .pickFirst), list)
    XCTAssertEqual(Set(fleet.endpoints.map(\.endpoint.identity)).count, 2)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(10), ["t0": 5, "t1": 5])
  }

  /// One target is as cheap as its policy alone.
  func testASinglePickerIsNotWrapped() {
    let several = self.fleet([3])
    var alone = TreeFixture(.roundRobin, several.endpoints.map(\.endpoint))
    alone.connectAll()
    XCTAssertTrue(type(of: several.decision.picker) == type(of: alone.decision.picker))
    var list = [BalancedEndpoint.number(0, .idle).endpoint]
    list[0].path = ["t0"]
    var fleet = TreeFixture(self.policy([1], .pickFirst), list)
    fleet.connectAll()
    XCTAssertTrue(fleet.decision.picker is ConstantPicker)
  }
}
