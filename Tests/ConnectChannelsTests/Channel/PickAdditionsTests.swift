import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

/// What a pick adds to a call, and calls that it drops.
final class PickAdditionsTests: XCTestCase {
  private let a = "10.0.0.1:80"

  /// Gives one answer for all calls once an endpoint is ready, and counts the picks.
  private struct ScriptedBalancer: LoadBalancer {
    struct Script: Picker {
      let result: PickResult
      let counter: Counter

      func pick(_ call: borrowing PickContext) -> PickResult {
        self.counter.value.add(1, ordering: .relaxed)
        return self.result
      }
    }

    let counter: Counter
    let result: @Sendable (EndpointID) -> PickResult

    mutating func update(
      _ endpoints: [BalancedEndpoint],
      in context: inout BalancerContext
    ) -> BalancerDecision {
      let summary = EndpointSummary(endpoints)
      guard let first = summary.ready.first else { return .unready(summary) }
      let picker = Script(result: self.result(first), counter: self.counter)
      return BalancerDecision(state: .ready, picker: picker, connect: summary.idle)
    }
  }

  private final class Counter: Sendable {
    let value = Atomic(0)
    var count: Int { self.value.load(ordering: .relaxed) }
  }

  private final class Recorder: ChannelObserver {
    let places = Mutex<[PickPlace]>([])
    let drops = Mutex<[String]>([])

    func channel(to origin: Origin, did event: ChannelEvent) {
      switch event {
      case .picked(_, _, let place): self.places.withLock { $0.append(place) }
      case .dropped(let category, _): self.drops.withLock { $0.append(category) }
      default: break
      }
    }
  }

  private func policy(
    _ counter: Counter = Counter(),
    _ result: @escaping @Sendable (EndpointID) -> PickResult
  ) -> BalancingPolicy {
    BalancingPolicy(name: "scripted") { ScriptedBalancer(counter: counter, result: result) }
  }

  private func values(_ request: HTTPStreamRequest?) -> [String] { request?.headers["x-shard"] ?? [] }

  // MARK: Additions

  func testMetadataGoesBehindThatOfTheCall() throws {
    let additions = try PickAdditions(metadata: ["X-Shard": ["7"], "shard-bin": ["AAEC"]])
    let fleet = FakeFleet([self.a]) {
      $0.balancing = self.policy { .endpoint($0, additions: additions) }
    }
    // The first call waits for the connection, the second one does not.
    for round in 0..<2 {
      let call = fleet.call(headers: ["a": ["1"], "x-shard": ["own"]])
      XCTAssertEqual(fleet.network.requests.count, round + 1)
      let names = fleet.network.requests.last?.headers.map { "\($0.name)=\($0.value)" }
      XCTAssertEqual(names, ["a=1", "x-shard=own", "x-shard=7", "shard-bin=AAEC"])
      fleet.run { fleet.network.connections[0].streams[0].end() }
      XCTAssertTrue(call.hasEnded)
    }
  }

  /// A call that waits for room gets what the pick has added, once, however often it is picked again.
  func testCallsThatWait() throws {
    let additions = try PickAdditions(metadata: ["x-shard": ["7"]])
    let fleet = FakeFleet([self.a], limits: ConnectionLimits(http1Connections: 1)) {
      $0.balancing = self.policy { .endpoint($0, additions: additions) }
    }
    fleet.network.standard = .accepts(.http1, streams: 1)
    let first = fleet.call()
    let second = fleet.call()
    XCTAssertEqual(fleet.network.requests.count, 1)
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(first.hasEnded)
    XCTAssertEqual(fleet.network.requests.count, 2)
    XCTAssertEqual(self.values(fleet.network.requests.last), ["7"])
    let third = fleet.call()
    // The connection is lost: the third call is picked again.
    fleet.run { fleet.network.connections[0].die() }
    fleet.advance(by: .seconds(5))
    XCTAssertNotNil(second.error)
    XCTAssertTrue(third.isPending)
    XCTAssertEqual(fleet.network.requests.count, 3)
    XCTAssertEqual(self.values(fleet.network.requests.last), ["7"])
  }

  func testWithoutMetadataNothingIsAdded() throws {
    let additions = try PickAdditions(cluster: "blue")
    let fleet = FakeFleet([self.a]) {
      $0.balancing = self.policy { .endpoint($0, additions: additions) }
    }
    fleet.call(headers: ["a": ["1"]])
    XCTAssertEqual(fleet.network.requests.last?.headers, ["a": ["1"]])
  }

  func testWhatMustNotBeAdded() {
    let cases: [(Headers, String)] = [
      (["te": ["trailers"]], "belongs to the HTTP connection"),
      (["host": ["a"]], "belongs to the HTTP connection"),
      (["content-length": ["1"]], "belongs to the HTTP connection"),
      ([":path": ["/"]], "is a pseudo-header"),
      (["": ["a"]], "is empty"),
      (["a b": ["a"]], "must not be in a field name"),
      (["GRPC-Timeout": ["1S"]], "belongs to the grpc protocol"),
      (["grpc-previous-rpc-attempts": ["1"]], "cannot be added"),
      (["x-grpc-web": ["1"]], "belongs to the grpc-web"),
      (["connect-timeout-ms": ["1"]], "belongs to the connect protocol"),
      (["content-type": ["text/plain"]], "belongs to"),
      (["user-agent": ["me"]], "cannot be added"),
      (["a": ["1\r\nb: 2"]], "has a control character"),
      (["a": ["1\0"]], "has a control character"),
      (["a": [" 1"]], "begins with a space"),
      (["a-bin": ["%"]], "is no base64"),
      (["a": ["1"], "te": ["trailers"]], "belongs to the HTTP connection"),
    ]
    for (headers, words) in cases {
      XCTAssertThrowsError(try PickAdditions(metadata: headers), "\(headers)") { error in
        XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
        let message = (error as? ConnectError)?.message ?? ""
        XCTAssertTrue(message.contains(words), message)
      }
    }
    XCTAssertNoThrow(try PickAdditions(metadata: ["lb-token": ["x y"], "a-bin": ["AAEC"]]))
  }

  func testObserversHearThePlace() throws {
    let recorder = Recorder()
    let additions = try PickAdditions(cluster: "blue")
    let fleet = FakeFleet {
      $0.balancing = self.policy { .endpoint($0, additions: additions) }
      $0.observer = recorder
      $0.zone = "east"
    }
    var endpoint = try XCTUnwrap(Endpoint(self.a))
    endpoint.zone = "west"
    fleet.resolver.update([endpoint])
    fleet.call()
    fleet.call()
    let place = PickPlace(cluster: "blue", zone: "west", ownZone: "east")
    XCTAssertEqual(recorder.places.withLock { $0 }, [place, place])
    XCTAssertTrue(place.isInOtherZone)
    XCTAssertFalse(PickPlace(zone: "west", ownZone: "west").isInOtherZone)
    XCTAssertFalse(PickPlace(zone: "west").isInOtherZone)
    XCTAssertFalse(PickPlace(ownZone: "west").isInOtherZone)
  }

  /// pick_first makes one endpoint of all: the zone is that of the server that has answered.
  func testThePlaceOfAMergedEndpoint() {
    for policy in [nil, BalancingPolicy.pickFirst, .zoneAware(of: .pickFirst)] {
      let recorder = Recorder()
      let fleet = FakeFleet {
        $0.balancing = policy
        $0.observer = recorder
        $0.zone = "east"
      }
      fleet.network.behaviours[self.a] = .refuses
      fleet.resolver.update(
        [(self.a, "west"), ("10.0.0.77:80", "east")].compactMap { address, zone in
          var endpoint = Endpoint(address)
          endpoint?.zone = zone
          return endpoint
        }
      )
      fleet.call()
      XCTAssertEqual(recorder.places.withLock { $0 }, [PickPlace(zone: "east", ownZone: "east")])
    }
  }

  // MARK: Drops

  func testDroppedCallsFailAtOnce() {
    let recorder = Recorder()
    let fleet = FakeFleet([self.a]) {
      $0.balancing = self.policy { _ in .drop(category: "lottery") }
      $0.observer = recorder
    }
    // The first call waits until the endpoint is ready, then it is dropped, as all others are.
    for waits in [false, true, true, false] {
      let call = fleet.call(waitForReady: waits)
      XCTAssertEqual(call.error?.code, .unavailable)
      XCTAssertEqual(call.error?.isFinal, true, "not retried")
      XCTAssertEqual(call.error?.isUnsent, true, "says nothing of the servers")
      XCTAssertEqual(
        call.error?.message,
        "the call was dropped and not sent: the balancing policy scripted for http://fleet.test drops calls of the "
          + "category 'lottery'; try again later, and with fewer calls"
      )
    }
    XCTAssertEqual(recorder.drops.withLock { $0 }, ["lottery", "lottery", "lottery", "lottery"])
    XCTAssertEqual(fleet.network.requests.count, 0)
    XCTAssertEqual(fleet.network.connections.count, 1)
  }

  /// The first pick gets the endpoint, all others are dropped.
  private struct DroppingBalancer: LoadBalancer {
    struct Once: Picker {
      let first: EndpointID
      let counter: Counter

      func pick(_ call: borrowing PickContext) -> PickResult {
        let earlier = self.counter.value.add(1, ordering: .relaxed).oldValue
        return earlier == 0 ? .endpoint(self.first) : .drop(category: "lottery")
      }
    }

    let counter: Counter

    mutating func update(
      _ endpoints: [BalancedEndpoint],
      in context: inout BalancerContext
    ) -> BalancerDecision {
      let summary = EndpointSummary(endpoints)
      guard let first = summary.ready.first else { return .unready(summary) }
      return BalancerDecision(state: .ready, picker: Once(first: first, counter: self.counter))
    }
  }

  /// A hedge that is dropped ends its call, as one with a fatal code does.
  func testAHedgeIsDroppedWhileAnAttemptRuns() throws {
    let counter = Counter()
    let fleet = FakeFleet([self.a]) {
      $0.balancing = BalancingPolicy(name: "dropping") { DroppingBalancer(counter: counter) }
      $0.serviceConfig = try? ServiceConfig(
        json: """
          { "methodConfig": [
            { "name": [{}],
              "hedgingPolicy": { "maxAttempts": 4, "hedgingDelay": "1s", "nonFatalStatusCodes": ["UNAVAILABLE"] } }
          ] }
          """
      )
    }
    let call = RuledCall(fleet)
    XCTAssertEqual(fleet.network.requests.count, 1)
    XCTAssertNil(call.response)
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(call.response?.code, .unavailable)
    XCTAssertEqual(call.response?.error?.message?.contains("'lottery'"), true)
    XCTAssertEqual(counter.count, 2)
    XCTAssertEqual(fleet.network.requests.count, 1)
  }

  /// Hedges of a call stop with its first drop, though the service config would go on after `unavailable`.
  func testDroppedCallsAreNotHedged() throws {
    let config = try ServiceConfig(
      json: """
        { "methodConfig": [
          { "name": [{}],
            "hedgingPolicy": { "maxAttempts": 4, "hedgingDelay": "1s", "nonFatalStatusCodes": ["UNAVAILABLE"] } }
        ] }
        """
    )
    for fails in [true, false] {
      let counter = Counter()
      let fleet = FakeFleet([self.a]) {
        $0.balancing = self.policy(counter) { _ in fails ? .fail("overloaded") : .drop(category: "lottery") }
        $0.serviceConfig = config
      }
      let call = RuledCall(fleet)
      fleet.advance(by: .seconds(10))
      XCTAssertEqual(call.response?.code, .unavailable)
      XCTAssertEqual(counter.count, fails ? 4 : 1)
    }
  }
}
