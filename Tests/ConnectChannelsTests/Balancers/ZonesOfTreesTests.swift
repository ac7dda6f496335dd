import ConnectChannels
import XCTest

/// `zone_aware` over policies that do not keep all endpoints connected, and over trees.
final class ZonesOfTreesTests: XCTestCase {
  /// The zones of the endpoints that calls would connect.
  private func woken(_ fleet: TreeFixture) -> Set<String> {
    var zones: Set<String> = []
    for number in UInt64(0)..<100 {
      let hash = number &* 0x9e37_79b9_7f4a_7c15
      guard case .connect(let id) = fleet.decision.picker.pick(seed: hash, hash: hash) else { continue }
      if let zone = fleet.endpoints.first(where: { $0.id == id })?.endpoint.zone { zones.insert(zone) }
    }
    return zones
  }

  /// Most endpoints of the own zone have failed: the first calls for other zones have those connect.
  func testOtherZonesWithRingsAreWoken() {
    var fleet = TreeFixture(.zoneAware(of: .ringHash()), ["a": 10, "b": 10], zone: "a")
    fleet.set([0], .ready)
    fleet.set(1..<10, .transientFailure)
    XCTAssertEqual(self.woken(fleet), ["b"])
    fleet.set(10..<20, .ready)
    XCTAssertEqual(Double(fleet.calls(10_000)["b"] ?? 0), 8_600, accuracy: 10)
  }

  /// A balancer of a user's own may pass such lists on.
  func testAnEndpointThatIsThereTwice() {
    var random = SeededRandom(seed: 1)
    var balancer = BalancingPolicy.zoneAware(of: .roundRobin).makeBalancer(random: &random)
    let server = BalancedEndpoint(
      id: EndpointID(slot: 0, generation: 1),
      endpoint: Endpoint(addresses: [], zone: "a"),
      state: .ready
    )
    var context = BalancerContext(now: .zero, random: random, loads: EndpointLoads(), zone: "a")
    for list in [[server, server], [server, server, server], [server]] {
      let decision = balancer.update(list, in: &context)
      XCTAssertEqual(decision.state, .ready)
      XCTAssertEqual(decision.parts.first?.ready, list.count)
    }
  }

  func testAllZonesAreWokenWithoutAnOwnOne() {
    var fleet = TreeFixture(.zoneAware(of: .ringHash()), ["a": 3, "b": 3, "c": 3])
    XCTAssertEqual(fleet.decision.state, .idle)
    fleet.set([0], .ready)
    XCTAssertTrue(self.woken(fleet).isSuperset(of: ["b", "c"]))
    fleet.set(0..<9, .ready)
    for name in ["a", "b", "c"] {
      XCTAssertEqual(Double(fleet.calls(3_000)[name] ?? 0), 1_000, accuracy: 2)
    }
  }

  /// The server of the own zone has closed its connection in order while another zone is connected.
  func testTheOwnZoneIsWoken() {
    var fleet = TreeFixture(.zoneAware(of: .pickFirst), ["a": 1, "b": 1], zone: "a")
    fleet.connectAll()
    fleet.set([0], .transientFailure)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(10), ["b": 10])
    fleet.set([0], .ready)
    XCTAssertEqual(fleet.calls(10), ["a": 10])
    fleet.set([0], .idle)
    XCTAssertEqual(fleet.pick(), .connect(EndpointID(0)))
    fleet.set([0], .connecting)
    XCTAssertEqual(fleet.calls(10), ["b": 10])
    fleet.set([0], .ready)
    XCTAssertEqual(fleet.calls(10), ["a": 10])
  }

  /// Endpoints that the zone's own policy does not need do not make the zone look ill.
  func testUnneededEndpointsDoNotCount() {
    let policies: [BalancingPolicy] = [
      .priority([.init("x", .roundRobin), .init("y", .roundRobin)]),
      .weightedTarget([.init("x", weight: 1, .roundRobin), .init("y", weight: 0, .roundRobin)]),
      .weightedTarget([.init("x", weight: 1, .roundRobin), .init("y", weight: 1, .ringHash())]),
    ]
    for policy in policies {
      for isNested in [false, true] {
        var list: [Endpoint] = []
        for zone in ["a", "b"] {
          for part in ["x", "y", "y", "y"] {
            var endpoint = BalancedEndpoint.number(list.count, .idle).endpoint
            (endpoint.zone, endpoint.path) = (zone, isNested ? ["near", part] : [part])
            list.append(endpoint)
          }
        }
        let zones = BalancingPolicy.zoneAware(of: policy)
        let tree = isNested ? .priority([.init("near", zones)]) : zones
        var fleet = TreeFixture(tree, list, zone: "a")
        fleet.connectAll()
        fleet.advance(by: .seconds(100))
        let parts = isNested ? fleet.decision.parts[0].parts : fleet.decision.parts
        XCTAssertEqual(parts.map(\.share), [1, 0], "\(policy.name), \(isNested)")
        XCTAssertEqual(fleet.endpoints[4].state, .idle, "\(policy.name), \(isNested)")
      }
    }
  }

  /// 1.4 × 45 / 63 is 1, though not in binary.
  func testRoundingDoesNotSpill() {
    var fleet = TreeFixture(.zoneAware(of: .roundRobin), ["a": 63, "b": 1], zone: "a")
    fleet.connectAll()
    fleet.set(0..<18, .transientFailure)
    XCTAssertEqual(fleet.decision.parts.map(\.share), [1, 0])
    XCTAssertEqual(fleet.endpoints[63].state, .idle)
    fleet.set([18], .transientFailure)
    XCTAssertEqual(fleet.endpoints[63].state, .connecting)
  }
}
