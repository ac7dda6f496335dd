import Connect
import XCTest

@testable import ConnectChannels

/// Drops, the limit of calls in flight, and what is counted.
final class LimitedBalancerTests: XCTestCase {
  private let statistics = CallStatistics(cluster: "blue")

  private func balancer(
    _ drops: [CallLimits.Drop] = [],
    maximumCalls: UInt32? = nil,
    of base: BalancingPolicy = .roundRobin
  ) -> any LoadBalancer {
    let limits = CallLimits(drops: drops, maximumCalls: maximumCalls, statistics: self.statistics)
    var random = SeededRandom(seed: 1)
    return BalancingPolicy.limited(limits, of: base).makeBalancer(random: &random)
  }

  private func zoned(_ zones: [String?]) -> [BalancedEndpoint] {
    zones.enumerated().map { slot, zone in
      var endpoint = BalancedEndpoint.number(slot, .ready)
      endpoint.endpoint.zone = zone
      return endpoint
    }
  }

  private func shares(_ picker: any Picker, calls: Int = 100_000) -> [String: Double] {
    var random = SeededRandom(seed: 9)
    var counts: [String: Int] = [:]
    for _ in 0..<calls {
      switch picker.pick(seed: random.next()) {
      case .endpoint: counts["", default: 0] += 1
      case .drop(let category, let cluster):
        XCTAssertEqual(cluster, "blue")
        counts[category, default: 0] += 1
      default: XCTFail("neither dropped nor sent")
      }
    }
    return counts.mapValues { Double($0) / Double(calls) }
  }

  func testEachDropHasItsShareOfWhatTheOnesBeforeLeave() {
    let drops = [
      CallLimits.Drop(category: "lb", perMillion: 100_000),
      CallLimits.Drop(category: "throttle", perMillion: 500_000),
      CallLimits.Drop(category: "never", perMillion: 0),
    ]
    var balancer = self.balancer(drops)
    let decision = balancer.update(.ready(3))
    XCTAssertEqual(decision.state, .ready)
    let shares = self.shares(decision.picker)
    XCTAssertEqual(shares["lb"] ?? 0, 0.1, accuracy: 0.01)
    XCTAssertEqual(shares["throttle"] ?? 0, 0.45, accuracy: 0.01)
    XCTAssertEqual(shares[""] ?? 0, 0.45, accuracy: 0.01)
    XCTAssertNil(shares["never"])
    let counts = self.statistics.take()
    XCTAssertEqual(
      counts.drops,
      ["lb", "throttle"].reduce(into: [:]) { $0[$1] = UInt64(((shares[$1] ?? 0) * 100_000).rounded()) }
    )
    XCTAssertEqual(counts.zones, [:], "a pick is no call")
    XCTAssertEqual(self.statistics.take(), CallStatistics.Counts(), "counted once")
  }

  /// A call that waits is picked again, and keeps its luck.
  func testTheSameCallHasTheSameLuck() {
    var balancer = self.balancer([CallLimits.Drop(category: "lb", perMillion: 500_000)])
    let first = balancer.update(.ready(3)).picker
    let second = balancer.update(.list(.connecting)).picker
    var drops = 0
    for seed in 0..<1_000 as Range<UInt64> {
      guard case .drop = first.pick(seed: seed) else {
        XCTAssertEqual(second.pick(seed: seed), .wait)
        continue
      }
      drops += 1
      XCTAssertEqual(second.pick(seed: seed), .drop(category: "lb", cluster: "blue"))
    }
    XCTAssertTrue((400...600).contains(drops), "\(drops)")
  }

  /// The servers that calls go to do not depend on the drops.
  func testDropsDoNotSkewThePicks() {
    let half = [CallLimits.Drop(category: "lb", perMillion: 500_000)]
    for policy in [BalancingPolicy.leastRequest(), .ringHash()] {
      var balancer = self.balancer(half, of: policy)
      let picker = balancer.update(.ready(4)).picker
      var random = SeededRandom(seed: 3)
      let counts = picker.counts(40_000, of: 4, &random)
      for count in counts { XCTAssertEqual(Double(count), 5_000, accuracy: 1_500, "\(policy)") }
    }
  }

  func testACategoryThatDropsAllNeedsNoServer() {
    for drops in [[], [CallLimits.Drop(category: "all", perMillion: 1_000_000)]] {
      var balancer = self.balancer(drops)
      for endpoints in [[BalancedEndpoint].list(.connecting), .list(.transientFailure), []] {
        let decision = balancer.update(endpoints)
        XCTAssertEqual(decision.state == .ready, !drops.isEmpty)
        if !drops.isEmpty { XCTAssertEqual(decision.picker.pick(), .drop(category: "all", cluster: "blue")) }
      }
    }
  }

  func testTheLimitIsOnCallsInFlightOfTheStatistics() {
    var balancer = self.balancer(maximumCalls: 2)
    let picker = balancer.update(.ready(3)).picker
    let counter = self.statistics.counter(of: "a")
    func isRefused() -> Bool { picker.pick() == .drop(category: CallLimits.circuitBreaking, cluster: "blue") }
    counter.begin()
    XCTAssertFalse(isRefused())
    // Of another zone, or another channel.
    self.statistics.counter(of: "b").begin()
    XCTAssertTrue(isRefused())
    counter.end(isSuccess: true)
    XCTAssertFalse(isRefused())
    do {
      let queued = QueuedCall(self.statistics.inFlight)
      withExtendedLifetime(queued) { XCTAssertTrue(isRefused()) }
    }
    XCTAssertFalse(isRefused())
    let counts = self.statistics.take()
    XCTAssertEqual(counts.refused, 2)
    XCTAssertEqual(counts.drops, [:])
    var none = self.balancer(maximumCalls: 0)
    XCTAssertEqual(
      none.update(.ready(1)).picker.pick(),
      .drop(category: CallLimits.circuitBreaking, cluster: "blue")
    )
  }

  func testPicksNameTheClusterAndCountByZone() throws {
    var balancer = self.balancer(of: .roundRobin)
    let picker = balancer.update(self.zoned(["a", "b", "b", nil])).picker
    var additions: [Int: PickAdditions] = [:]
    for _ in 0..<4 {
      guard case .endpoint(let id, nil, let added?) = picker.pick() else { return XCTFail("not picked") }
      additions[id.slot] = added
    }
    XCTAssertEqual(additions.count, 4)
    XCTAssertTrue(additions[1] === additions[2], "one object for a zone")
    for (slot, zone) in ["a", "b", "b", ""].enumerated() {
      XCTAssertEqual(additions[slot]?.cluster, "blue")
      XCTAssertTrue(additions[slot]?.counting?.counter === self.statistics.counter(of: zone))
    }
    // They stay the same when the servers change.
    let later = balancer.update(self.zoned(["b"])).picker
    guard case .endpoint(_, nil, let added?) = later.pick() else { return XCTFail("not picked") }
    XCTAssertTrue(added === additions[1])
  }

  func testWhatThePolicyBelowAddsStays() throws {
    let own = try PickAdditions(metadata: ["x-shard": ["7"]], cluster: "other")
    struct Adding: LoadBalancer {
      struct Pick: Picker {
        let id: EndpointID
        let additions: PickAdditions
        func pick(_ call: borrowing PickContext) -> PickResult {
          .endpoint(self.id, connect: EndpointID(3), additions: self.additions)
        }
      }
      let additions: PickAdditions
      mutating func update(
        _ endpoints: [BalancedEndpoint],
        in context: inout BalancerContext
      ) -> BalancerDecision {
        BalancerDecision(state: .ready, picker: Pick(id: endpoints[0].id, additions: self.additions))
      }
    }
    var balancer = self.balancer(of: BalancingPolicy(name: "adding") { Adding(additions: own) })
    let picker = balancer.update(self.zoned(["a"])).picker
    guard case .endpoint(EndpointID(0), EndpointID(3), let added?) = picker.pick() else {
      return XCTFail("not picked")
    }
    XCTAssertEqual(added.metadata, ["x-shard": ["7"]])
    XCTAssertEqual(added.cluster, "blue")
    XCTAssertTrue(added.counting?.counter === self.statistics.counter(of: "a"))
  }

  /// Zones come from a control plane, and never end.
  func testZonesThatNobodyUsesAreForgotten() {
    weak var old: CallCounter?
    do {
      let counter = self.statistics.counter(of: "a")
      old = counter
      counter.begin()
      XCTAssertEqual(self.statistics.take().zones["a"]?.inFlight, 1)
      counter.end(isSuccess: false)
    }
    let counts = self.statistics.take().zones["a"]
    XCTAssertEqual(counts?.failed, 1)
    XCTAssertNotNil(old, "it had something to tell")
    XCTAssertEqual(self.statistics.take().zones, [:])
    XCTAssertNil(old)
    // In use, it stays.
    let counter = self.statistics.counter(of: "b")
    _ = self.statistics.take()
    XCTAssertTrue(counter === self.statistics.counter(of: "b"))
  }
}
