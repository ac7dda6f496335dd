import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

@testable import ConnectChannels

/// Endpoints that the balancer does not need: nothing keeps them connected, or connects them again.
final class ChannelRestTests: XCTestCase {
  private let near = "10.0.0.1:80"
  private let far = "10.0.1.1:80"

  private func fleet(
    _ far: BalancingPolicy = .roundRobin,
    _ configure: (inout ChannelConfiguration) -> Void = { _ in }
  ) -> FakeFleet {
    let fleet = FakeFleet(limits: ConnectionLimits(idleTimeout: .seconds(30))) {
      $0.balancing = .priority([.init("near", .roundRobin), .init("far", far)])
      // Otherwise the channel itself becomes idle.
      $0.idleTimeout = .seconds(1_000_000)
      configure(&$0)
    }
    fleet.network.answer = { stream in
      if stream.request.target == "/grpc.health.v1.Health/Watch" {
        // The service is well.
        stream.respond(bytes: ByteBuffer(bytes: [0, 0, 0, 0, 2, 8, 1]))
      } else {
        stream.end()
      }
    }
    self.resolve(fleet)
    return fleet
  }

  private func resolve(_ fleet: FakeFleet, far: [String]? = nil) {
    let lists = [("near", [self.near]), ("far", far ?? [self.far])]
    fleet.resolver.update(
      lists.flatMap { part, addresses in
        addresses.compactMap { address in
          var endpoint = Endpoint(address)
          endpoint?.path = [part]
          return endpoint
        }
      }
    )
    fleet.executor.runUntilIdle()
  }

  /// A long call goes to the far part, whose calls then go back to the near one.
  private func leaveCallAtFarPart(_ fleet: FakeFleet) -> FakeCall {
    self.failNear(fleet)
    let answer = fleet.network.answer
    fleet.network.answer = { stream in if stream.request.target != "/a.B/C" { answer?(stream) } }
    let call = fleet.call()
    fleet.network.answer = answer
    fleet.network.behaviours[self.near] = nil
    fleet.advance(by: .seconds(1_000))
    XCTAssertTrue(call.isPending)
    XCTAssertEqual(fleet.network.open(at: self.far).count, 1)
    return call
  }

  private func failNear(_ fleet: FakeFleet) {
    fleet.network.behaviours[self.near] = .refuses
    for connection in fleet.network.open(at: self.near) { fleet.run { connection.die() } }
  }

  /// The host of a long call dies after some silence, in which another connection was looked for.
  func testAConnectionInDoubt() {
    let fleet = self.fleet()
    let call = self.leaveCallAtFarPart(fleet)
    let attempts = fleet.network.attempts.count
    fleet.network.behaviours[self.far] = .refuses
    for connection in fleet.network.open(at: self.far) { fleet.run { connection.suspect() } }
    fleet.advance(by: .seconds(1))
    for connection in fleet.network.open(at: self.far) { fleet.run { connection.die() } }
    XCTAssertNotNil(call.error)
    fleet.advance(by: .seconds(3_600))
    XCTAssertEqual(fleet.network.attempts.count, attempts)
    // It is needed again.
    fleet.network.behaviours[self.far] = nil
    self.failNear(fleet)
    XCTAssertTrue(fleet.call().hasEnded)
  }

  /// A part is needed again while its connection is in doubt: another one is looked for.
  func testAConnectionInDoubtThatIsNeededAgain() {
    let fleet = self.fleet()
    _ = self.leaveCallAtFarPart(fleet)
    for connection in fleet.network.open(at: self.far) { fleet.run { connection.suspect() } }
    fleet.advance(by: .seconds(60))
    self.failNear(fleet)
    let call = fleet.call()
    fleet.advance(by: .seconds(1))
    XCTAssertTrue(call.hasEnded)
  }

  /// The resolver replaces the addresses of an endpoint that is connected and not needed.
  func testOtherAddresses() {
    let fleet = self.fleet(.pickFirst)
    let call = self.leaveCallAtFarPart(fleet)
    let other = "10.0.1.2:80"
    fleet.network.behaviours[other] = .refuses
    self.resolve(fleet, far: [other])
    fleet.advance(by: .seconds(3_600))
    XCTAssertTrue(call.isPending)
    XCTAssertLessThanOrEqual(fleet.network.attempts.filter { $0 == other }.count, 1)
    fleet.network.behaviours[other] = nil
    self.failNear(fleet)
    XCTAssertTrue(fleet.call().hasEnded)
  }

  /// Watches of health do not keep connections that nobody needs.
  func testHealthIsNotWatched() {
    let fleet = self.fleet { $0.healthCheckedService = "pkg.Service" }
    self.failNear(fleet)
    XCTAssertTrue(fleet.call().hasEnded)
    XCTAssertEqual(fleet.network.counts[self.far], 2)
    fleet.network.behaviours[self.near] = nil
    fleet.advance(by: .seconds(1))
    XCTAssertTrue(fleet.call().hasEnded)
    fleet.advance(by: .seconds(890))
    XCTAssertEqual(fleet.network.open(at: self.far).count, 1)
    fleet.advance(by: .seconds(60))
    XCTAssertEqual(fleet.network.open(at: self.far).count, 0)
    XCTAssertEqual(fleet.network.open(at: self.near).map(\.streams.count), [1])
    self.failNear(fleet)
    XCTAssertTrue(fleet.call().hasEnded)
    XCTAssertEqual(fleet.network.open(at: self.far).map(\.streams.count), [1])
  }

  /// A part that is left and used again before its connection has closed watches health again.
  func testHealthIsWatchedAgain() {
    let fleet = self.fleet { $0.healthCheckedService = "pkg.Service" }
    let call = self.leaveCallAtFarPart(fleet)
    XCTAssertEqual(fleet.network.open(at: self.far).map(\.streams.count), [1])
    self.failNear(fleet)
    XCTAssertTrue(fleet.call().hasEnded)
    XCTAssertEqual(fleet.network.open(at: self.far).map(\.streams.count), [2])
    XCTAssertTrue(call.isPending)
  }

  private struct Spare: LoadBalancer {
    let usesIt: Bool

    mutating func update(
      _ endpoints: [BalancedEndpoint],
      in context: inout BalancerContext
    ) -> BalancerDecision {
      let ids = endpoints.map(\.id)
      let summary = EndpointSummary(endpoints)
      let picker: ConstantPicker
      if let ready = summary.ready.first {
        picker = ConstantPicker(.endpoint(ready))
      } else {
        picker = ConstantPicker(self.usesIt ? ids.first.map { .connect($0) } ?? .wait : .wait)
      }
      var decision = BalancerDecision(state: .idle, picker: picker, connect: ids, updateAfter: .seconds(1))
      decision.rest = ids
      decision.probe = ids
      return decision
    }
  }

  /// What a balancer does not need connects for calls only.
  func testOnlyCallsConnectWhatIsNotNeeded() {
    for usesIt in [false, true] {
      let fleet = FakeFleet([self.near], limits: ConnectionLimits(idleTimeout: .seconds(30))) {
        $0.balancing = BalancingPolicy(name: "spare") { Spare(usesIt: usesIt) }
        $0.idleTimeout = .seconds(1_000_000)
      }
      fleet.network.answer = { $0.end() }
      fleet.advance(by: .seconds(100))
      XCTAssertEqual(fleet.network.attempts, [])
      XCTAssertEqual(fleet.call().hasEnded, usesIt)
      fleet.advance(by: .seconds(100))
      XCTAssertEqual(fleet.network.attempts.count, usesIt ? 1 : 0)
      XCTAssertEqual(fleet.network.open(at: self.near).count, 0)
      // Attempts that fail are followed by the backoff, and not by others without a call.
      fleet.network.behaviours[self.near] = .refuses
      let call = fleet.call(waitForReady: true)
      fleet.advance(by: .milliseconds(100))
      XCTAssertEqual(fleet.network.attempts.count, usesIt ? 2 : 0)
      fleet.run { call.cancel() }
      fleet.advance(by: .seconds(3_600))
      XCTAssertLessThanOrEqual(fleet.network.attempts.count, usesIt ? 2 : 0)
    }
  }

  /// Connections that a policy keeps close once another policy does not keep them.
  func testAPolicyThatDoesNotKeepConnections() {
    let fleet = FakeFleet(limits: ConnectionLimits(idleTimeout: .seconds(30))) {
      $0.idleTimeout = .seconds(1_000_000)
    }
    func config(_ policy: String) -> String { "{\"loadBalancingConfig\": [{\"\(policy)\": {}}]}" }
    fleet.network.answer = { $0.end() }
    fleet.resolve([self.near, self.far], serviceConfig: config("round_robin"))
    fleet.call()
    fleet.advance(by: .seconds(100))
    XCTAssertEqual(fleet.network.connections.filter { !$0.isClosed }.count, 2)
    fleet.resolve([self.near, self.far], serviceConfig: config("ring_hash_experimental"))
    fleet.advance(by: .seconds(31))
    XCTAssertEqual(fleet.network.connections.filter { !$0.isClosed }.count, 0)
  }

  /// Whether servers report their load with calls differs between parts.
  func testReportsOfCallsAreTakenByPart() {
    let fleet = self.fleet(.weightedRoundRobin(.init(outOfBandPeriod: .seconds(1))))
    fleet.call()
    let endpoints = fleet.channel.endpoints.subchannels.list
    XCTAssertEqual(endpoints.map(\.counting.calls.takesReports), [true, false])
  }

  /// A channel that is idle shows no parts of its last endpoints.
  func testAnIdleChannelHasNoParts() {
    let fleet = self.fleet { $0.idleTimeout = .seconds(100) }
    XCTAssertTrue(fleet.call().hasEnded)
    XCTAssertEqual(ChannelSnapshot(fleet.channel).parts.count, 2)
    fleet.advance(by: .seconds(201))
    XCTAssertEqual(ChannelSnapshot(fleet.channel).state, .idle)
    XCTAssertEqual(ChannelSnapshot(fleet.channel).parts, [])
  }
}
