import XCTest

@testable import ConnectChannels

final class PickFirstBalancerTests: XCTestCase {
  private func picks(_ decision: BalancerDecision) -> PickResult { decision.picker.pick() }

  func testItConnectsAtOnceAndThenStaysIdleWithoutCalls() {
    var balancer = PickFirstBalancer()
    var decision = balancer.update(.list(.idle))
    XCTAssertEqual(decision.state, .connecting)
    XCTAssertEqual(decision.connect, [EndpointID(0)])
    XCTAssertEqual(self.picks(decision), .wait)
    decision = balancer.update(.list(.connecting))
    XCTAssertEqual(decision.state, .connecting)
    XCTAssertEqual(decision.connect, [])
    decision = balancer.update(.list(.ready))
    XCTAssertEqual(decision.state, .ready)
    XCTAssertEqual(self.picks(decision), .endpoint(EndpointID(0)))
    // The connection is lost: the next call, or a wish, begins another one.
    decision = balancer.update(.list(.idle))
    XCTAssertEqual(decision.state, .idle)
    XCTAssertEqual(decision.connect, [])
    XCTAssertEqual(self.picks(decision), .connect(EndpointID(0)))
    decision = balancer.update(.list(.idle), wantsConnection: true)
    XCTAssertEqual(decision.state, .connecting)
    XCTAssertEqual(decision.connect, [EndpointID(0)])
  }

  func testFailureIsSticky() {
    var balancer = PickFirstBalancer()
    let failed = [BalancedEndpoint.number(0, .transientFailure, error: "refused")]
    XCTAssertEqual(balancer.update(failed).state, .transientFailure)
    XCTAssertEqual(balancer.update(.list(.connecting)).state, .transientFailure)
    // Another endpoint is tried at once, and calls go on failing.
    let decision = balancer.update(failed + [.number(1, .idle)])
    XCTAssertEqual(decision.state, .transientFailure)
    XCTAssertEqual(decision.connect, [EndpointID(1)])
    XCTAssertEqual(
      self.picks(decision),
      .fail("none of 2 endpoints is available; last error: 10.0.0.0:80: refused")
    )
    XCTAssertEqual(balancer.update(.list(.ready)).state, .ready)
    XCTAssertEqual(balancer.update(.list(.idle)).state, .idle)
    XCTAssertEqual(balancer.update(.list(.connecting)).state, .connecting)
  }

  func testGroupsAreTriedInTurn() {
    var balancer = PickFirstBalancer()
    XCTAssertEqual(balancer.update(.list(.idle, .idle)).connect, [EndpointID(0)])
    let next = balancer.update(.list(.transientFailure, .idle))
    XCTAssertEqual(next.state, .connecting)
    XCTAssertEqual(next.connect, [EndpointID(1)])
    let ready = balancer.update(.list(.connecting, .ready))
    XCTAssertEqual(self.picks(ready), .endpoint(EndpointID(1)))
    // One that is better by order does not take over.
    XCTAssertEqual(self.picks(balancer.update(.list(.ready, .ready))), .endpoint(EndpointID(1)))
  }

  func testTheCurrentEndpointLeaves() {
    var balancer = PickFirstBalancer()
    XCTAssertEqual(balancer.update(.list(.ready)).state, .ready)
    let decision = balancer.update([.number(5, .idle)])
    XCTAssertEqual(decision.state, .connecting)
    XCTAssertEqual(decision.connect, [EndpointID(5)])
  }

  func testEmptyListFailsAndIsForgotten() {
    var balancer = PickFirstBalancer()
    let decision = balancer.update([])
    XCTAssertEqual(decision.state, .transientFailure)
    XCTAssertEqual(self.picks(decision), .fail("there are no addresses to connect to"))
    XCTAssertEqual(balancer.update(.list(.idle)).state, .connecting)
  }

  func testEjectionDoesNotCount() {
    var balancer = PickFirstBalancer()
    XCTAssertEqual(balancer.update([.number(0, .ready, isEjected: true)]).state, .ready)
  }

  func testSelectionMakesOneEndpoint() throws {
    var balancer = PickFirstBalancer()
    var random = SeededRandom(seed: 1)
    let texts = ["10.0.0.1:80", "[::1]:80,10.0.0.2:80", "10.0.0.3:80"]
    let endpoints = try texts.map { try XCTUnwrap(Endpoint($0)) }
    let selected = balancer.select(endpoints, random: &random)
    XCTAssertEqual(selected.map(\.description), [texts.joined(separator: ",")])
    // The same endpoint for the channel when addresses change.
    let fewer = balancer.select(Array(endpoints[1...]), random: &random)
    XCTAssertEqual(selected.map(\.identity), fewer.map(\.identity))
    var named = endpoints
    named[1].serverName = "other"
    XCTAssertEqual(
      balancer.select(named, random: &random).map(\.description),
      ["10.0.0.1:80,10.0.0.3:80", "[::1]:80,10.0.0.2:80"]
    )
  }

  func testShuffling() throws {
    let endpoints = try (0..<10).map { try XCTUnwrap(Endpoint("10.0.0.\($0):80,[::\($0)]:80")) }
    var balancer = PickFirstBalancer(shuffles: true)
    var firsts: Set<EndpointAddress> = []
    for seed in 0..<200 {
      var random = SeededRandom(seed: UInt64(seed))
      let addresses = try XCTUnwrap(balancer.select(endpoints, random: &random).first).addresses
      XCTAssertEqual(Set(addresses), Set(endpoints.flatMap(\.addresses)))
      // The order within an endpoint stays.
      for endpoint in endpoints {
        let positions = endpoint.addresses.map { addresses.firstIndex(of: $0) ?? 0 }
        XCTAssertLessThan(positions[0], positions[1])
      }
      firsts.insert(addresses[0])
    }
    XCTAssertEqual(firsts.count, 10)
  }

  /// A merged endpoint is in a zone only if all of its servers are.
  func testZonesOfMergedEndpoints() throws {
    var random = SeededRandom(seed: 1)
    let endpoints = (0..<3).map { BalancedEndpoint.number($0, .idle).endpoint }
    let cases: [([String?], String?)] = [
      (["a", "a", "a"], "a"), (["a", "b", "a"], nil), ([nil, "a", "a"], nil), (["a", "a", nil], nil),
    ]
    for (zones, expected) in cases {
      let list = zip(endpoints, zones).map { endpoint, zone in
        var endpoint = endpoint
        endpoint.zone = zone
        return endpoint
      }
      var balancer = PickFirstBalancer()
      let merged = try XCTUnwrap(balancer.select(list, random: &random).first)
      XCTAssertEqual(merged.zone, expected, "\(zones)")
      XCTAssertEqual(endpoints.map { merged.zone(at: $0.addresses[0]) }, zones)
    }
  }
}
