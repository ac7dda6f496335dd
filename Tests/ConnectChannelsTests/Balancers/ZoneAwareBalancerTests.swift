import ConnectChannels
import XCTest

final class ZoneAwareBalancerTests: XCTestCase {
  private let policy = BalancingPolicy.zoneAware(of: .roundRobin)

  /// Ten endpoints in each zone: `a` is the own zone.
  private func fleet(
    _ settings: BalancingPolicy.ZoneAware = .defaults,
    zone: String? = "a",
    seed: UInt64 = 1
  ) -> TreeFixture {
    let policy = BalancingPolicy.zoneAware(settings, of: .roundRobin)
    var fleet = TreeFixture(policy, ["a": 10, "b": 10, "c": 10], zone: zone, seed: seed)
    fleet.connectAll()
    return fleet
  }

  /// Envoy's rule, with all endpoints of the other zones healthy.
  func testSharesByHealthyEndpoints() {
    for seed in seeds {
      for healthy in 0...10 {
        var fleet = self.fleet(seed: seed)
        fleet.set(healthy..<10, .transientFailure)
        fleet.connectAll()
        let calls = fleet.calls(10_000, seed: seed)
        let own = min(1, 1.4 * Double(healthy) / 10)
        XCTAssertEqual(Double(calls["a"] ?? 0) / 10_000, own, accuracy: 0.001, "\(healthy), seed \(seed)")
        let other = Double(calls["b"] ?? 0) / 10_000
        XCTAssertEqual(other, (1 - own) / 2, accuracy: 0.001, "\(healthy), seed \(seed)")
        XCTAssertEqual(fleet.endpoints[10].state, own < 1 ? .ready : .idle)
        XCTAssertEqual(fleet.decision.parts.map(\.name), ["a", "b", "c"])
        XCTAssertEqual(fleet.decision.parts[0].share, own, accuracy: 0.001)
      }
    }
  }

  /// Where both levels together serve less than all calls, each serves more.
  func testSharesAreScaledUp() {
    var fleet = self.fleet()
    fleet.set(0..<7, .transientFailure)
    fleet.connectAll()
    fleet.set([10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28], .transientFailure)
    // 1.4 × 3/10 and 1.4 × 2/20.
    let calls = fleet.calls(10_000)
    XCTAssertEqual(Double(calls["a"] ?? 0) / 10_000, 0.42 / 0.56, accuracy: 0.001)
    XCTAssertEqual(Double(calls["b"] ?? 0) / 10_000, 0.07 / 0.56, accuracy: 0.001)
  }

  /// Weights of endpoints, weights of zones, and availability share out the calls of the others.
  func testWeightsOfOtherZones() {
    var fleet = TreeFixture(
      self.policy,
      ["a": 1, "b": 10, "c": 10],
      zone: "a",
      weight: { $0 == "c" ? 3 : 1 }
    )
    fleet.connectAll()
    fleet.set([0], .transientFailure)
    fleet.connectAll()
    XCTAssertEqual(Double(fleet.calls(10_000)["c"] ?? 0), 7_500, accuracy: 10)
    // Half of `b`: 0.7 × 10 against 30.
    fleet.set(1...5, .transientFailure)
    XCTAssertEqual(Double(fleet.calls(10_000)["b"] ?? 0), 10_000 * 7 / 37, accuracy: 10)
    var named = self.fleet(.init(zoneWeights: ["b": 1, "c": 9]))
    named.set(0..<10, .transientFailure)
    named.connectAll()
    XCTAssertEqual(Double(named.calls(10_000)["b"] ?? 0), 1_000, accuracy: 10)
  }

  func testAZoneWithTheWeightZeroGetsNoCalls() {
    var fleet = self.fleet(.init(zoneWeights: ["b": 0]))
    fleet.set(0..<10, .transientFailure)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(100), ["c": 100])
    XCTAssertEqual(fleet.endpoints[10].state, .idle)
    // Also if it is the own one.
    fleet = self.fleet(.init(zoneWeights: ["a": 0]))
    XCTAssertEqual(fleet.calls(100), ["b": 50, "c": 50])
    XCTAssertEqual(fleet.endpoints[0].state, .idle)
    fleet = self.fleet(.init(zoneWeights: ["a": 0, "b": 0, "c": 0]))
    XCTAssertEqual(fleet.failure, "all zones with endpoints have the weight 0; give one of them a weight")
  }

  func testOverprovisioning() {
    var fleet = self.fleet(.init(overprovisioning: 1))
    fleet.set([0], .transientFailure)
    fleet.connectAll()
    XCTAssertEqual(Double(fleet.calls(10_000)["a"] ?? 0), 9_000, accuracy: 10)
    XCTAssertEqual(BalancingPolicy.ZoneAware(overprovisioning: .nan).overprovisioning, 1)
    XCTAssertEqual(BalancingPolicy.ZoneAware(overprovisioning: -2).overprovisioning, 1)
    XCTAssertEqual(BalancingPolicy.ZoneAware(probePeriod: .zero).probePeriod, .milliseconds(10))
  }

  // MARK: Start

  func testAStartDoesNotSpill() {
    var fleet = TreeFixture(self.policy, ["a": 10, "b": 10], zone: "a")
    XCTAssertEqual(fleet.decision.state, .connecting)
    XCTAssertEqual(fleet.pick(), .wait)
    fleet.set([0], .ready)
    XCTAssertEqual(fleet.calls(10), ["a": 10])
    fleet.advance(by: .milliseconds(9_999))
    XCTAssertEqual(fleet.endpoints[10].state, .idle)
    // Nine have not become ready in time.
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(fleet.endpoints[10].state, .connecting)
    XCTAssertEqual(fleet.calls(10), ["a": 10])
    fleet.set(10..<20, .ready)
    XCTAssertEqual(Double(fleet.calls(1_000)["a"] ?? 0), 140, accuracy: 2)
  }

  /// Servers that renew their connections do not send calls to other zones.
  func testARenewalDoesNotSpill() {
    var fleet = self.fleet()
    fleet.set(0..<9, .connecting)
    XCTAssertEqual(fleet.calls(10), ["a": 10])
    fleet.advance(by: .milliseconds(900))
    fleet.set(0..<9, .ready)
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(fleet.endpoints[10].state, .idle)
    fleet.set(0..<9, .connecting)
    fleet.advance(by: .milliseconds(999))
    XCTAssertEqual(fleet.endpoints[10].state, .idle)
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(fleet.endpoints[10].state, .connecting)
  }

  func testNewEndpointsHaveTimeToConnect() {
    var fleet = self.fleet()
    fleet.advance(by: .seconds(100))
    let more = (100..<120).map { index in
      var endpoint = BalancedEndpoint.number(index, .idle).endpoint
      endpoint.zone = "a"
      return endpoint
    }
    fleet.resolve(fleet.endpoints.map(\.endpoint) + more)
    XCTAssertEqual(fleet.endpoints.count, 50)
    let other = fleet.endpoints.firstIndex { $0.endpoint.zone == "b" } ?? 0
    XCTAssertEqual(fleet.endpoints[other].state, .idle)
    XCTAssertEqual(fleet.calls(10), ["a": 10])
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(fleet.endpoints[other].state, .connecting)
  }

  // MARK: The own zone fails

  func testAllCallsGoToOthersWhileTheOwnZoneHasNoneReady() {
    var fleet = self.fleet()
    fleet.set(0..<10, .transientFailure)
    // The others are still connecting.
    XCTAssertEqual(fleet.pick(), .wait)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(100), ["b": 50, "c": 50])
    // At once though the endpoints count as healthy while they are connecting for a moment.
    fleet.set(0..<10, .ready)
    XCTAssertEqual(fleet.calls(100), ["a": 100])
    fleet.set(0..<10, .connecting)
    XCTAssertEqual(fleet.calls(100), ["b": 50, "c": 50])
  }

  func testOtherZonesAreKeptForFifteenMinutes() {
    var fleet = self.fleet()
    fleet.set(0..<5, .transientFailure)
    fleet.connectAll()
    fleet.set(0..<5, .ready)
    XCTAssertEqual(fleet.calls(100), ["a": 100])
    fleet.advance(by: .milliseconds(899_999))
    XCTAssertEqual(fleet.decision.rest, [])
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(fleet.decision.rest.map(\.slot), Array(10..<30))
    XCTAssertNil(fleet.decision.updateAfter)
    XCTAssertEqual(fleet.calls(100), ["a": 100])
  }

  func testWithoutAnOwnZoneAllAreUsed() {
    for zone in [nil, "", "d"] {
      let fleet = self.fleet(zone: zone)
      let calls = fleet.calls(3_000)
      for name in ["a", "b", "c"] { XCTAssertEqual(Double(calls[name] ?? 0), 1_000, accuracy: 2) }
    }
    // Endpoints without a zone are never in the own one.
    let list = (0..<4).map { BalancedEndpoint.number($0, .idle).endpoint }
    var fleet = TreeFixture(self.policy, list, zone: "a")
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(10), ["-": 10])
    XCTAssertEqual(fleet.decision.parts.map(\.name), ["no zone"])
  }

  func testAllZonesFail() {
    var fleet = self.fleet()
    fleet.set(0..<30, .transientFailure)
    XCTAssertEqual(fleet.decision.state, .transientFailure)
    XCTAssertEqual(
      fleet.failure,
      "none of 30 endpoints is available; last error: 10.0.0.29:80: refused"
    )
    fleet.probed = []
    fleet.advance(by: .seconds(60))
    XCTAssertEqual(fleet.probed, [])
    XCTAssertEqual(TreeFixture(self.policy, [], zone: "a").failure, "there are no addresses to connect to")
  }

  // MARK: Return

  func testFailedEndpointsOfTheOwnZoneAreProbed() {
    var fleet = self.fleet()
    fleet.set(0..<10, .transientFailure)
    fleet.connectAll()
    fleet.probed = []
    fleet.advance(by: .milliseconds(499))
    XCTAssertEqual(fleet.probed, [])
    fleet.advance(by: .milliseconds(1_501))
    XCTAssertEqual(fleet.probed, [0, 1, 2, 3])
    // One has returned: the others are tried at once.
    fleet.probed = []
    fleet.set([3], .ready)
    XCTAssertEqual(fleet.probed, [0, 1, 2, 4, 5, 6, 7, 8, 9])
    XCTAssertEqual(Double(fleet.calls(10_000)["a"] ?? 0), 1_400, accuracy: 10)
    fleet.probed = []
    fleet.set(0..<10, .ready)
    fleet.advance(by: .seconds(100))
    XCTAssertEqual(fleet.probed, [])
  }

  /// While all calls stay in the zone, the backoff is enough.
  func testAFewFailuresAreNotProbed() {
    var fleet = self.fleet()
    fleet.set([0, 1], .transientFailure)
    fleet.advance(by: .seconds(100))
    XCTAssertEqual(fleet.probed, [])
    XCTAssertEqual(fleet.endpoints[10].state, .idle)
  }

  /// A server that renews its connection says nothing of those that have failed.
  func testARenewalProbesNothing() {
    var fleet = self.fleet()
    fleet.set(0..<6, .transientFailure)
    fleet.connectAll()
    fleet.probed = []
    fleet.set([9], .connecting)
    fleet.set([9], .ready)
    XCTAssertEqual(fleet.probed, [])
  }

  // MARK: Other policies

  func testPoliciesThatConnectLazily() {
    for base in [BalancingPolicy.ringHash(), .pickFirst] {
      var fleet = TreeFixture(.zoneAware(of: base), ["a": 3, "b": 3], zone: "a")
      fleet.connectAll()
      fleet.advance(by: .seconds(100))
      for index in fleet.endpoints.indices where fleet.endpoints[index].endpoint.zone == "b" {
        XCTAssertEqual(fleet.endpoints[index].state, .idle, "\(base)")
      }
    }
    // Idle endpoints of a ring are no reason to leave the zone.
    var fleet = TreeFixture(.zoneAware(of: .ringHash()), ["a": 10, "b": 10], zone: "a")
    fleet.set([0], .ready)
    fleet.advance(by: .seconds(100))
    XCTAssertEqual(fleet.decision.state, .ready)
    XCTAssertEqual(fleet.decision.parts.map(\.share), [1, 0])
  }

  /// A priority for each region, and zones in each: the zone uses no element of the path.
  func testZonesWithinAPriority() {
    let policy = BalancingPolicy.priority([
      .init("near", .zoneAware(of: .pickFirst)), .init("far", .zoneAware(of: .leastRequest())),
    ])
    var list: [Endpoint] = []
    for part in ["near", "far"] {
      for zone in ["a", "b"] {
        for _ in 0..<2 {
          var endpoint = BalancedEndpoint.number(list.count, .idle).endpoint
          (endpoint.path, endpoint.zone) = ([part], zone)
          list.append(endpoint)
        }
      }
    }
    var fleet = TreeFixture(policy, list, zone: "b")
    XCTAssertEqual(fleet.endpoints.count, 6)
    fleet.connectAll()
    XCTAssertEqual(fleet.endpoints.map(\.state), [.idle, .ready, .idle, .idle, .idle, .idle])
    fleet.set([1], .transientFailure)
    fleet.connectAll()
    XCTAssertEqual(fleet.endpoints.map(\.state), [.ready, .transientFailure, .idle, .idle, .idle, .idle])
    fleet.set([0], .transientFailure)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(10), ["far": 10])
    XCTAssertEqual(fleet.endpoints.suffix(4).map(\.state), [.idle, .idle, .ready, .ready])
    XCTAssertEqual(fleet.decision.parts.map(\.parts.count), [2, 2])
  }

  func testZonesThatCloseAndOpen() {
    var fleet = self.fleet()
    let all = fleet.endpoints.map(\.endpoint)
    fleet.resolve(all.filter { $0.zone != "a" })
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(100), ["b": 50, "c": 50])
    fleet.resolve(all)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(100), ["a": 100])
  }
}
