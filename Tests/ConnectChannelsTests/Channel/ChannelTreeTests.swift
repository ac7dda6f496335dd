import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

/// Channels with trees of policies: endpoints that rest, and endpoints that are probed.
final class ChannelTreeTests: XCTestCase {
  private let near = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80"]
  private let far = ["10.0.1.1:80", "10.0.1.2:80"]

  private func fleet(
    _ policy: BalancingPolicy = .zoneAware(of: .roundRobin),
    limits: ConnectionLimits = ConnectionLimits()
  ) -> FakeFleet {
    let fleet = FakeFleet(limits: limits) {
      $0.balancing = policy
      $0.zone = "near"
      // Otherwise the channel itself becomes idle.
      $0.idleTimeout = .seconds(1_000_000)
    }
    fleet.network.answer = { $0.end() }
    self.resolve(fleet)
    return fleet
  }

  private func resolve(_ fleet: FakeFleet) {
    let zones = [("near", self.near), ("far", self.far)]
    fleet.resolver.update(
      zones.flatMap { zone, addresses in
        addresses.compactMap { address in
          var endpoint = Endpoint(address)
          endpoint?.zone = zone
          return endpoint
        }
      }
    )
    fleet.executor.runUntilIdle()
  }

  private func fail(
    _ addresses: [String],
    of fleet: FakeFleet,
    as behaviour: FakeNetwork.Behaviour = .refuses
  ) {
    for address in addresses {
      fleet.network.behaviours[address] = behaviour
      for connection in fleet.network.open(at: address) { fleet.run { connection.die() } }
    }
    fleet.executor.runUntilIdle()
  }

  /// How many of 100 calls are answered in the own zone; nil if a call fails.
  private func nearCalls(_ fleet: FakeFleet) -> Int? {
    let before = fleet.network.counts
    for _ in 0..<100 where !fleet.call().hasEnded { return nil }
    let after = fleet.network.counts
    return self.near.reduce(0) { $0 + (after[$1] ?? 0) - (before[$1] ?? 0) }
  }

  func testOtherZonesDoNotConnectWithoutNeed() {
    let fleet = self.fleet()
    XCTAssertEqual(self.nearCalls(fleet), 100)
    fleet.advance(by: .seconds(3_600))
    XCTAssertEqual(Set(fleet.network.attempts), Set(self.near))
  }

  /// However long the outage was, calls are back within a second of its end.
  func testAZoneIsUsedSoonAfterItsReturn() {
    for behaviour in [FakeNetwork.Behaviour.refuses, .timesOut] {
      for outage in [5, 60, 3_600] {
        let fleet = self.fleet()
        XCTAssertEqual(self.nearCalls(fleet), 100)
        self.fail(self.near, of: fleet, as: behaviour)
        fleet.advance(by: .milliseconds(1_001))
        XCTAssertEqual(self.nearCalls(fleet), 0)
        fleet.advance(by: .seconds(outage))
        XCTAssertEqual(self.nearCalls(fleet), 0)
        for address in self.near { fleet.network.behaviours[address] = nil }
        let attempts = fleet.network.attempts.count
        fleet.advance(by: .milliseconds(1_000))
        XCTAssertEqual(self.nearCalls(fleet), 100, "\(behaviour) \(outage)")
        // No storm of attempts.
        XCTAssertLessThanOrEqual(fleet.network.attempts.count - attempts, 12)
      }
    }
  }

  /// One probe each 500 ms, besides those of the backoff.
  func testProbesAreFew() {
    let fleet = self.fleet()
    XCTAssertEqual(self.nearCalls(fleet), 100)
    self.fail(self.near, of: fleet)
    fleet.advance(by: .seconds(600))
    let attempts = fleet.network.attempts.count
    fleet.advance(by: .seconds(100))
    XCTAssertLessThanOrEqual(fleet.network.attempts.count - attempts, 200 + 4 * 2)
    XCTAssertGreaterThanOrEqual(fleet.network.attempts.count - attempts, 198)
  }

  func testAPriorityIsUsedSoonAfterItsReturn() {
    let fleet = self.fleet(.priority([.init("near", .leastRequest()), .init("far", .roundRobin)]))
    XCTAssertEqual(self.nearCalls(fleet), 100)
    XCTAssertEqual(Set(fleet.network.attempts), Set(self.near))
    self.fail(self.near, of: fleet)
    XCTAssertEqual(self.nearCalls(fleet), 0)
    fleet.advance(by: .seconds(3_600))
    for address in self.near { fleet.network.behaviours[address] = nil }
    fleet.advance(by: .milliseconds(1_000))
    XCTAssertEqual(self.nearCalls(fleet), 100)
  }

  /// Nothing answers, not even with a refusal: calls fail over after 10 s.
  func testFailoverTime() {
    let fleet = self.fleet(.priority([.init("near", .roundRobin), .init("far", .roundRobin)]))
    self.fail(self.near, of: fleet, as: .hangs)
    let call = fleet.call()
    fleet.advance(by: .milliseconds(9_999))
    XCTAssertTrue(call.isPending)
    fleet.advance(by: .milliseconds(1))
    XCTAssertTrue(call.hasEnded)
  }

  /// Connections of a part that was left stay for 15 minutes, then close after the idle timeout.
  func testConnectionsOfALeftPartClose() {
    let limits = ConnectionLimits(idleTimeout: .seconds(30))
    let policies: [BalancingPolicy] = [
      .zoneAware(of: .roundRobin), .priority([.init("near", .roundRobin), .init("far", .roundRobin)]),
    ]
    for policy in policies {
      let fleet = self.fleet(policy, limits: limits)
      XCTAssertEqual(self.nearCalls(fleet), 100)
      self.fail(self.near, of: fleet)
      XCTAssertEqual(self.nearCalls(fleet), 0)
      for address in self.near { fleet.network.behaviours[address] = nil }
      fleet.advance(by: .seconds(1))
      XCTAssertEqual(self.nearCalls(fleet), 100)
      fleet.advance(by: .seconds(890))
      XCTAssertEqual(self.far.map { fleet.network.open(at: $0).count }, [1, 1], "\(policy)")
      // They had no calls for long, so that they close at once.
      fleet.advance(by: .seconds(10))
      XCTAssertEqual(self.far.map { fleet.network.open(at: $0).count }, [0, 0], "\(policy)")
      XCTAssertEqual(self.near.map { fleet.network.open(at: $0).count }, [1, 1, 1, 1])
      let attempts = fleet.network.attempts.count
      fleet.advance(by: .seconds(3_600))
      XCTAssertEqual(fleet.network.attempts.count, attempts)
      XCTAssertEqual(self.near.map { fleet.network.open(at: $0).count }, [1, 1, 1, 1])
      // The part can be used again, and is kept again.
      self.fail(self.near, of: fleet)
      XCTAssertEqual(self.nearCalls(fleet), 0)
      fleet.advance(by: .seconds(3_600))
      XCTAssertEqual(self.far.map { fleet.network.open(at: $0).count }, [1, 1], "\(policy)")
    }
  }

  /// Calls in flight at a part that rests are not cut off.
  func testCallsOfALeftPartAreFinished() {
    let fleet = self.fleet()
    self.fail(self.near, of: fleet)
    _ = fleet.call()
    fleet.network.answer = nil
    let call = fleet.call()
    for address in self.near { fleet.network.behaviours[address] = nil }
    fleet.advance(by: .seconds(2_000))
    XCTAssertTrue(call.isPending)
    XCTAssertEqual(self.far.map { fleet.network.open(at: $0).count }.reduce(0, +), 1)
    fleet.run { for connection in fleet.network.connections { connection.streams.first?.end() } }
    XCTAssertTrue(call.hasEnded)
    fleet.advance(by: .seconds(1_000))
    XCTAssertEqual(self.far.map { fleet.network.open(at: $0).count }, [0, 0])
  }

  /// A part that was left while its servers were down does not go on trying for ever.
  func testAttemptsOfALeftPartEnd() {
    let fleet = self.fleet()
    self.fail(self.far, of: fleet)
    self.fail(Array(self.near.dropFirst()), of: fleet)
    XCTAssertEqual(self.nearCalls(fleet), 100)
    fleet.advance(by: .seconds(60))
    XCTAssertTrue(self.far.allSatisfy { fleet.network.attempts.contains($0) })
    for address in self.near { fleet.network.behaviours[address] = nil }
    fleet.advance(by: .seconds(2_000))
    let attempts = fleet.network.attempts.count
    fleet.advance(by: .seconds(3_600))
    XCTAssertEqual(fleet.network.attempts.count, attempts)
  }

  /// Only endpoints of policies that keep them connected stay connected.
  func testPartsWithDifferentPolicies() {
    let limits = ConnectionLimits(idleTimeout: .seconds(30))
    let targets = BalancingPolicy.weightedTarget([
      .init("near", weight: 1, .pickFirst), .init("far", weight: 1, .roundRobin),
    ])
    let fleet = self.fleet(targets, limits: limits)
    XCTAssertEqual(self.nearCalls(fleet), 50)
    fleet.advance(by: .seconds(100))
    XCTAssertEqual(self.near.map { fleet.network.open(at: $0).count }, [0, 0, 0, 0])
    XCTAssertEqual(self.far.map { fleet.network.open(at: $0).count }, [1, 1])
    // The target that is idle has not lost its share: the first call for it has it connect.
    XCTAssertGreaterThanOrEqual(self.nearCalls(fleet) ?? 0, 49)
    XCTAssertEqual(self.nearCalls(fleet), 50)
  }

  /// An endpoint that moves to another part begins there without the failures that nobody has judged.
  func testFailuresBeforeAMoveDoNotCount() async {
    let strict = OutlierDetection(
      successRate: nil,
      failurePercentage: .init(threshold: 10, minimumHosts: 1, minimumCalls: 10)
    )
    let fleet = FakeFleet {
      $0.balancing = .weightedTarget([
        .init("strict", weight: 1, .outlierDetection(strict, of: .roundRobin)),
        .init("none", weight: 1, .roundRobin),
      ])
    }
    func resolve(_ parts: [String]) {
      let list = parts.enumerated().map { number, part in
        Endpoint(addresses: BalancedEndpoint.number(number, .idle).endpoint.addresses, path: [part])
      }
      fleet.resolver.update(list)
      fleet.executor.runUntilIdle()
    }
    resolve(["strict", "strict", "none", "none"])
    var fails = true
    fleet.network.answer = { stream in
      stream.respond()
      stream.end(["grpc-status": [fails && stream.address == "10.0.0.2:80" ? "14" : "0"]])
    }
    for _ in 0..<400 { fleet.call() }
    fails = false
    resolve(["strict", "strict", "strict", "none"])
    for _ in 0..<400 { fleet.call() }
    fleet.advance(by: .seconds(11))
    let snapshot = await fleet.channel.snapshot()
    XCTAssertEqual(snapshot.endpoints.map(\.isEjected), [false, false, false, false])
    XCTAssertEqual(snapshot.parts.map(\.ready), [3, 1])
  }

  /// Each part with outlier detection compares its own endpoints, by its own settings.
  func testPartsAreJudgedByThemselves() async {
    let strict = OutlierDetection(
      successRate: nil,
      failurePercentage: .init(threshold: 10, minimumHosts: 1, minimumCalls: 10)
    )
    let lax = OutlierDetection(
      successRate: nil,
      failurePercentage: .init(threshold: 90, minimumHosts: 1, minimumCalls: 10)
    )
    let fleet = FakeFleet {
      $0.balancing = .weightedTarget([
        .init("strict", weight: 1, .outlierDetection(strict, of: .roundRobin)),
        .init("lax", weight: 1, .outlierDetection(lax, of: .roundRobin)),
        .init("none", weight: 1, .roundRobin),
      ])
    }
    var endpoints: [Endpoint] = []
    for part in ["strict", "lax", "none"] {
      for _ in 0..<2 {
        var endpoint = BalancedEndpoint.number(endpoints.count, .idle).endpoint
        endpoint.path = [part]
        endpoints.append(endpoint)
      }
    }
    fleet.resolver.update(endpoints)
    fleet.executor.runUntilIdle()
    let failing = endpoints.enumerated().filter { $0.offset % 2 == 0 }.map(\.element.description)
    var count = 0
    fleet.network.answer = { stream in
      count += 1
      // Half of the calls to the first server of each part.
      let fails = failing.contains(stream.address) && count % 4 < 2
      stream.respond()
      stream.end(["grpc-status": [fails ? "14" : "0"]])
    }
    for _ in 0..<600 { fleet.call() }
    fleet.advance(by: .seconds(11))
    fleet.call()
    let snapshot = await fleet.channel.snapshot()
    XCTAssertEqual(snapshot.endpoints.map(\.isEjected), [true, false, false, false, false, false])
    XCTAssertEqual(snapshot.parts.map(\.ready), [1, 2, 2])
    // Without detection, the endpoint returns.
    fleet.resolver.update(endpoints.map { Endpoint(addresses: $0.addresses, path: ["none"]) })
    fleet.executor.runUntilIdle()
    let after = await fleet.channel.snapshot()
    XCTAssertEqual(after.endpoints.filter(\.isEjected).count, 0)
    XCTAssertEqual(after.parts.map(\.ready), [0, 0, 6])
  }

  func testTheSnapshotShowsTheTree() {
    let fleet = self.fleet(.priority([.init("near", .zoneAware(of: .roundRobin)), .init("far", .pickFirst)]))
    XCTAssertEqual(self.nearCalls(fleet), 100)
    let lines = ChannelSnapshot(fleet.channel).description.split(separator: "\n")
    XCTAssertEqual(
      lines.prefix(4),
      [
        "http://fleet.test: READY, priority, 5 endpoints, 0 calls wait, 1 resolver updates",
        "  near: READY, zone_aware, 4 of 4 endpoints ready, 100 % of the calls",
        "    near: READY, round_robin, 4 of 4 endpoints ready, 100 % of the calls",
        "  far: IDLE, pick_first, 0 of 1 endpoints ready, 0 % of the calls",
      ]
    )
    let part = BalancerPart(
      name: "a",
      policy: "p",
      state: .idle,
      endpoints: 3,
      ready: 1,
      share: 0.0149
    )
    XCTAssertEqual(part.description, "a: IDLE, p, 1 of 3 endpoints ready, 1.5 % of the calls")
  }
}
