import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

/// Calls of a channel whose policy limits and counts them.
final class ChannelLimitsTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"
  private let statistics = CallStatistics(cluster: "blue")

  private final class Recorder: ChannelObserver {
    let places = Mutex<[PickPlace]>([])
    let drops = Mutex<[String]>([])

    func channel(to origin: Origin, did event: ChannelEvent) {
      switch event {
      case .picked(_, _, let place): self.places.withLock { $0.append(place) }
      case .dropped(let category, let cluster):
        self.drops.withLock { $0.append("\(category) of \(cluster ?? "the channel")") }
      default: break
      }
    }
  }

  private func fleet(
    maximumCalls: UInt32? = nil,
    drops: [CallLimits.Drop] = [],
    of base: BalancingPolicy = .roundRobin,
    limits: ConnectionLimits = ConnectionLimits(),
    observer: Recorder? = nil
  ) -> FakeFleet {
    let policy = BalancingPolicy.limited(
      CallLimits(drops: drops, maximumCalls: maximumCalls, statistics: self.statistics),
      of: base
    )
    let fleet = FakeFleet(limits: limits) {
      $0.balancing = policy
      $0.observer = observer
    }
    let zones = [(self.a, "west"), (self.b, "east")]
    fleet.resolver.update(
      zones.compactMap { address, zone in
        var endpoint = Endpoint(address)
        endpoint?.zone = zone
        return endpoint
      }
    )
    fleet.executor.runUntilIdle()
    return fleet
  }

  private func stream(_ fleet: FakeFleet, _ address: String) throws -> FakeStream {
    try XCTUnwrap(fleet.network.open(at: address).first?.streams.first)
  }

  /// Those of a client tell by themselves how they end.
  func testCallsOfAClientAreCounted() throws {
    let fleet = self.fleet()
    let calls = (0..<4).map { _ in RoutedCall(fleet) }
    let stream = try self.stream(fleet, self.a)
    XCTAssertFalse(stream.handler is TrackedCall)
    fleet.run { stream.answer() }
    fleet.run { try? self.stream(fleet, self.a).refuse() }
    calls[1].cancel()
    fleet.run { fleet.network.open(at: self.b).first?.die() }
    let counts = self.statistics.take()
    XCTAssertTrue(calls[0].hasSucceeded)
    XCTAssertEqual(calls.map { $0.response?.error?.code }, [nil, .canceled, .unavailable, .unavailable])
    XCTAssertEqual(counts.zones["west"]?.succeeded, 1)
    XCTAssertEqual(counts.zones["west"]?.failed, 1)
    XCTAssertEqual(counts.zones["east"]?.succeeded, 0)
    XCTAssertEqual(counts.zones["east"]?.failed, 2)
    XCTAssertEqual(self.statistics.inFlight.count, 0)
  }

  func testCallsAreCountedByZone() throws {
    let recorder = Recorder()
    let fleet = self.fleet(observer: recorder)
    for _ in 0..<4 { fleet.call() }
    var counts = self.statistics.take()
    XCTAssertEqual(counts.zones["west"]?.issued, 2)
    XCTAssertEqual(counts.zones["west"]?.inFlight, 2)
    XCTAssertEqual(counts.zones["east"]?.inFlight, 2)
    fleet.run { try? self.stream(fleet, self.a).end() }
    fleet.run { try? self.stream(fleet, self.a).end(["grpc-status": ["14"]]) }
    counts = self.statistics.take()
    XCTAssertEqual(counts.zones["west"]?.issued, 0, "told before")
    XCTAssertEqual(counts.zones["west"]?.succeeded, 1)
    XCTAssertEqual(counts.zones["west"]?.failed, 1)
    XCTAssertEqual(counts.zones["west"]?.inFlight, 0)
    fleet.run { try? self.stream(fleet, self.b).refuse() }
    fleet.run { fleet.network.open(at: self.b).first?.die() }
    counts = self.statistics.take()
    XCTAssertEqual(counts.zones["east"]?.failed, 2)
    XCTAssertEqual(counts.zones["east"]?.inFlight, 0)
    XCTAssertEqual(self.statistics.inFlight.count, 0)
    XCTAssertEqual(Set(recorder.places.withLock { $0 }.map(\.cluster)), ["blue"])
    XCTAssertEqual(Set(recorder.places.withLock { $0 }.map(\.zone)), ["west", "east"])
  }

  func testCallsThatAreGivenUpHaveFailed() {
    let fleet = self.fleet()
    let calls = (0..<4).map { _ in fleet.call() }
    fleet.run {
      calls[0].cancel()
      calls[1].expire()
    }
    let zones = self.statistics.take().zones
    XCTAssertEqual(zones.values.reduce(0) { $0 + $1.failed }, 2)
    XCTAssertEqual(zones.values.reduce(0) { $0 + $1.inFlight }, 2)
    XCTAssertEqual(self.statistics.inFlight.count, 2)
  }

  /// A policy that makes one endpoint of several servers: the zone is that of the server.
  func testMergedEndpoints() throws {
    let fleet = self.fleet(of: .pickFirst)
    fleet.call()
    XCTAssertEqual(self.statistics.take().zones.mapValues(\.issued), ["west": 1])
  }

  func testTheCircuitBreaker() {
    let recorder = Recorder()
    let fleet = self.fleet(maximumCalls: 3, observer: recorder)
    let calls = (0..<3).map { _ in fleet.call() }
    for waits in [false, true] {
      let refused = fleet.call(waitForReady: waits)
      XCTAssertEqual(refused.error?.code, .unavailable)
      XCTAssertEqual(refused.error?.isFinal, true, "not retried")
      XCTAssertEqual(
        refused.error?.message,
        "the call was dropped and not sent: as many calls to the cluster \"blue\" of http://fleet.test are in flight "
          + "as its circuit breaker allows; try again later, and with fewer calls"
      )
    }
    XCTAssertTrue(calls.allSatisfy(\.isPending))
    fleet.run { calls[1].cancel() }
    XCTAssertTrue(fleet.call().isPending)
    XCTAssertNotNil(fleet.call().error)
    let counts = self.statistics.take()
    XCTAssertEqual(counts.refused, 3)
    XCTAssertEqual(counts.drops, [:])
    XCTAssertEqual(recorder.drops.withLock { $0 }, Array(repeating: "circuit_breaking of blue", count: 3))
  }

  /// Where there is one endpoint, calls ask the picker only if there is no room.
  func testTheCircuitBreakerOfOneEndpoint() {
    let fleet = self.fleet(maximumCalls: 2, of: .pickFirst)
    let first = fleet.call()
    let second = fleet.call()
    XCTAssertTrue(first.isPending && second.isPending)
    XCTAssertEqual(fleet.call().error?.code, .unavailable)
    fleet.run { first.cancel() }
    XCTAssertTrue(fleet.call().isPending)
    XCTAssertNotNil(fleet.call().error)
    let counts = self.statistics.take()
    XCTAssertEqual(counts.refused, 2)
    XCTAssertEqual(counts.zones["west"]?.issued, 3)
    XCTAssertEqual(self.statistics.inFlight.count, 2)
  }

  /// Calls that wait for room on a connection count, too: otherwise any number of them could wait.
  func testCallsThatWaitForRoomCount() {
    let fleet = self.fleet(maximumCalls: 4, limits: ConnectionLimits(http1Connections: 1))
    fleet.network.standard = .accepts(.http1, streams: 1)
    var calls = (0..<4).map { _ in fleet.call() }
    XCTAssertEqual(fleet.network.requests.count, 2)
    XCTAssertNotNil(fleet.call().error)
    XCTAssertEqual(self.statistics.take().zones.values.reduce(0) { $0 + $1.issued }, 2)
    // One that waits is given up.
    fleet.run { calls[3].cancel() }
    calls.append(fleet.call())
    XCTAssertTrue(calls[4].isPending)
    XCTAssertNotNil(fleet.call().error)
    // One ends, and one that waits begins: three are in flight.
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertEqual(fleet.network.requests.count, 3)
    XCTAssertEqual(self.statistics.inFlight.count, 3)
    // Connections are lost: what waits for them is picked again.
    fleet.run { for connection in fleet.network.connections where !connection.isClosed { connection.die() } }
    fleet.advance(by: .seconds(5))
    // The one that had no connection, which has one now.
    XCTAssertTrue(calls[4].isPending)
    XCTAssertEqual(self.statistics.inFlight.count, 1)
    XCTAssertEqual(fleet.network.requests.count, 4)
    fleet.run { for call in calls where call.isPending { call.cancel() } }
    XCTAssertEqual(self.statistics.inFlight.count, 0)
  }

  func testDropsOfAWaitingCall() {
    let fleet = self.fleet(drops: [CallLimits.Drop(category: "lb", perMillion: 1_000_000)])
    fleet.network.standard = .hangs
    let call = fleet.call(waitForReady: true)
    XCTAssertEqual(call.error?.message?.contains("'lb'"), true)
    XCTAssertEqual(self.statistics.take().drops, ["lb": 1])
  }

  /// Each priority has limits of its own, and the same object may count for several.
  func testLimitsBelowPriorities() {
    let other = CallStatistics(cluster: "green")
    let policy = BalancingPolicy.priority([
      .init("one", .limited(CallLimits(maximumCalls: 1, statistics: self.statistics), of: .roundRobin)),
      .init("two", .limited(CallLimits(statistics: other), of: .roundRobin)),
    ])
    let recorder = Recorder()
    let fleet = FakeFleet {
      $0.balancing = policy
      $0.observer = recorder
    }
    fleet.resolver.update(
      [(self.a, "one"), (self.b, "two")].compactMap { address, part in
        var endpoint = Endpoint(address)
        endpoint?.path = [part]
        endpoint?.zone = "z"
        return endpoint
      }
    )
    fleet.executor.runUntilIdle()
    fleet.call()
    XCTAssertNotNil(fleet.call().error, "a full circuit breaker is no reason to use the next priority")
    fleet.network.behaviours[self.a] = .refuses
    fleet.run { fleet.network.open(at: self.a).first?.die() }
    fleet.advance(by: .seconds(20))
    fleet.call()
    fleet.call()
    // The name is that of the part, as for parts of an aggregate cluster.
    XCTAssertEqual(recorder.drops.withLock { $0 }, ["circuit_breaking of blue"])
    XCTAssertEqual(other.take().zones["z"]?.inFlight, 2)
    XCTAssertEqual(self.statistics.take().zones["z"]?.failed, 1)
    XCTAssertEqual(recorder.places.withLock { $0 }.map(\.cluster), ["blue", "green", "green"])
  }

  /// Without such a policy nothing stands between a call and its connection.
  func testOtherPoliciesCountNothing() {
    XCTAssertFalse(
      BalancingPolicy.limited(CallLimits(statistics: self.statistics), of: .roundRobin).countsCalls
    )
    XCTAssertTrue(
      BalancingPolicy.limited(CallLimits(statistics: self.statistics), of: .leastRequest()).countsCalls
    )
    let fleet = FakeFleet([self.a]) { $0.balancing = .roundRobin }
    fleet.call()
    XCTAssertFalse(fleet.network.connections[0].streams[0].handler is TrackedCall)
  }

  /// Least request and limits both follow calls.
  func testLimitsAboveAPolicyThatCounts() {
    let fleet = self.fleet(of: .leastRequest())
    let calls = (0..<10).map { _ in fleet.call() }
    XCTAssertEqual(fleet.network.counts, [self.a: 5, self.b: 5])
    fleet.run { for call in calls { call.cancel() } }
    XCTAssertEqual(self.statistics.take().zones.mapValues(\.failed), ["west": 5, "east": 5])
  }
}
