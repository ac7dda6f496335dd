import XCTest

@testable import ConnectChannels

/// The example of ``LoadBalancer``.
private struct FirstReady: LoadBalancer {
  mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    let summary = EndpointSummary(endpoints)
    guard let first = summary.ready.first else { return .unready(summary) }
    return BalancerDecision(state: .ready, picker: ConstantPicker(.endpoint(first)), connect: summary.idle)
  }
}

final class BalancingPolicyTests: XCTestCase {
  func testNames() {
    let policies: [BalancingPolicy] = [
      .pickFirst, .roundRobin, .leastRequest(), .weightedRoundRobin(), .ringHash(),
      .randomSubset(of: .roundRobin), .outlierDetection(.defaults, of: .roundRobin),
      .priority([]), .weightedTarget([]), .zoneAware(of: .roundRobin),
    ]
    XCTAssertEqual(
      policies.map(\.description),
      [
        "pick_first", "round_robin", "least_request", "weighted_round_robin", "ring_hash",
        "random_subsetting", "outlier_detection", "priority", "weighted_target", "zone_aware",
      ]
    )
  }

  func testEachPolicyMakesItsBalancer() {
    var random = SeededRandom(seed: 1)
    func balancer(_ policy: BalancingPolicy) -> any LoadBalancer { policy.makeBalancer(random: &random) }
    XCTAssertTrue((balancer(.pickFirst(shuffles: true)) as? PickFirstBalancer)?.shuffles == true)
    XCTAssertTrue(balancer(.roundRobin) is RoundRobinBalancer)
    XCTAssertEqual((balancer(.leastRequest(choices: 3)) as? LeastRequestBalancer)?.choices, 3)
    let weighted = BalancingPolicy.WeightedRoundRobin(source: .resolver)
    XCTAssertEqual(
      (balancer(.weightedRoundRobin(weighted)) as? WeightedRoundRobinBalancer)?.configuration,
      weighted
    )
    let ring = BalancingPolicy.RingHash(minimumRingSize: 5)
    XCTAssertEqual((balancer(.ringHash(ring)) as? RingHashBalancer)?.configuration, ring)
    XCTAssertEqual((balancer(.randomSubset(of: .roundRobin, size: 7)) as? RandomSubset)?.size, 7)
    XCTAssertTrue(balancer(.outlierDetection(.defaults, of: .roundRobin)) is RoundRobinBalancer)
  }

  func testTheOutermostOutlierDetectionCounts() {
    let settings = OutlierDetection(interval: .seconds(1))
    let inner = BalancingPolicy.outlierDetection(.defaults, of: .roundRobin)
    XCTAssertNil(BalancingPolicy.roundRobin.outlierDetection)
    XCTAssertEqual(inner.outlierDetection, .defaults)
    XCTAssertEqual(BalancingPolicy.randomSubset(of: inner).outlierDetection, .defaults)
    XCTAssertEqual(BalancingPolicy.outlierDetection(settings, of: inner).outlierDetection, settings)
  }

  /// The settings that count for an endpoint, and the endpoints that it is compared with.
  func testOutlierDetectionInTrees() {
    let settings = OutlierDetection(interval: .seconds(1))
    let judged = BalancingPolicy.outlierDetection(settings, of: .roundRobin)
    var endpoint = BalancedEndpoint.number(0, .idle).endpoint
    (endpoint.path, endpoint.zone) = (["a", "x"], "z")
    func scope(_ policy: BalancingPolicy) -> [String]? {
      let scope = OutlierScope(of: endpoint, in: policy)
      XCTAssertEqual(scope == nil, policy.outlierDetection == nil)
      return scope?.place.names
    }
    XCTAssertEqual(scope(judged), [])
    XCTAssertEqual(scope(.randomSubset(of: judged)), [])
    XCTAssertEqual(scope(.zoneAware(of: judged)), ["z"])
    XCTAssertEqual(scope(.priority([.init("b", .roundRobin), .init("a", judged)])), ["a"])
    let targets = BalancingPolicy.weightedTarget([.init("x", weight: 1, .zoneAware(of: judged))])
    XCTAssertEqual(scope(.priority([.init("a", targets)])), ["a", "x", "z"])
    XCTAssertEqual(scope(.outlierDetection(.defaults, of: .priority([.init("a", targets)]))), [])
    XCTAssertNil(scope(.priority([.init("a", .roundRobin)])))
    XCTAssertNil(OutlierScope(of: endpoint, in: .priority([.init("b", judged)])))
  }

  /// What the channel does for an endpoint depends on the policy of its part.
  func testNeedsInTrees() {
    let reports = BalancingPolicy.weightedRoundRobin(.init(outOfBandPeriod: .seconds(3)))
    let policy = BalancingPolicy.priority([.init("a", .zoneAware(of: reports)), .init("b", .pickFirst)])
    var endpoint = BalancedEndpoint.number(0, .idle).endpoint
    endpoint.path = ["a"]
    XCTAssertTrue(policy.keepsConnected(endpoint))
    XCTAssertEqual(policy.outOfBandPeriod(of: endpoint), .seconds(3))
    endpoint.path = ["b"]
    XCTAssertFalse(policy.keepsConnected(endpoint))
    XCTAssertNil(policy.outOfBandPeriod(of: endpoint))
    XCTAssertTrue(policy.countsCalls)
    XCTAssertTrue(policy.usesHealth)
  }

  func testEquality() {
    XCTAssertEqual(BalancingPolicy.leastRequest(choices: 99), .leastRequest(choices: 10))
    XCTAssertNotEqual(BalancingPolicy.pickFirst, .pickFirst(shuffles: true))
    XCTAssertNotEqual(BalancingPolicy.randomSubset(of: .roundRobin), .randomSubset(of: .pickFirst))
    let policy = BalancingPolicy(name: "first_ready") { FirstReady() }
    let copy = policy
    XCTAssertEqual(policy, copy)
    XCTAssertNotEqual(policy, BalancingPolicy(name: "first_ready") { FirstReady() })
  }

  func testABalancerOfAUser() {
    var random = SeededRandom(seed: 1)
    var balancer = BalancingPolicy(name: "first_ready") { FirstReady() }.makeBalancer(random: &random)
    let endpoints = [BalancedEndpoint].ready(2).map(\.endpoint)
    XCTAssertEqual(balancer.select(endpoints, random: &random), endpoints)
    XCTAssertEqual(balancer.update(.list(.idle, .ready)).picker.pick(), .endpoint(EndpointID(1)))
    XCTAssertEqual(balancer.update(.list(.idle)).state, .connecting)
  }
}
