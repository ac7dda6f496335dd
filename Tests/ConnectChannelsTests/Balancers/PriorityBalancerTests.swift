import ConnectChannels
import XCTest

final class PriorityBalancerTests: XCTestCase {
  private let policy = BalancingPolicy.priority([.init("a", .roundRobin), .init("b", .roundRobin)])

  /// Two endpoints a part: 0 and 1 in `a`, 2 and 3 in `b`.
  private func fixture() -> TreeFixture { TreeFixture(self.policy, ["a": 2, "b": 2], paths: true) }

  func testTheFirstPartHasAllCallsAndTheOthersDoNotConnect() {
    var fleet = self.fixture()
    XCTAssertEqual(fleet.decision.state, .connecting)
    XCTAssertEqual(fleet.pick(), .wait)
    XCTAssertEqual(fleet.endpoints.map(\.state), [.connecting, .connecting, .idle, .idle])
    XCTAssertEqual(fleet.decision.rest.map(\.slot), [2, 3])
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(100), ["a": 100])
    XCTAssertEqual(fleet.endpoints.map(\.state), [.ready, .ready, .idle, .idle])
    // One that works is enough.
    fleet.set([0], .transientFailure)
    XCTAssertEqual(fleet.calls(100), ["a": 100])
    XCTAssertEqual(fleet.endpoints[2].state, .idle)
  }

  func testAFailedPartIsLeftAtOnceAndUsedAgainAtOnce() {
    var fleet = self.fixture()
    fleet.connectAll()
    fleet.set([0, 1], .transientFailure)
    XCTAssertEqual(fleet.decision.state, .connecting)
    XCTAssertEqual(fleet.pick(), .wait)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(100), ["b": 100])
    fleet.set([1], .ready)
    XCTAssertEqual(fleet.calls(100), ["a": 100])
    XCTAssertEqual(fleet.decision.rest, [])
  }

  func testAPartThatConnectsForTenSecondsIsPassedOver() {
    var fleet = self.fixture()
    fleet.advance(by: .milliseconds(9_999))
    XCTAssertEqual(fleet.endpoints[2].state, .idle)
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(fleet.endpoints[2].state, .connecting)
    // Both connect: calls wait.
    XCTAssertEqual(fleet.pick(), .wait)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(10), ["a": 10])
  }

  /// From ready to connecting a part has ten seconds again, but not from failed to connecting.
  func testTheTimeToConnectBeginsAfterReadyOnly() {
    var fleet = self.fixture()
    fleet.connectAll()
    fleet.set([0, 1], .connecting)
    fleet.advance(by: .seconds(4))
    fleet.set([0], .ready)
    fleet.advance(by: .seconds(100))
    XCTAssertEqual(fleet.endpoints[2].state, .idle)
    fleet.set([0], .connecting)
    fleet.advance(by: .milliseconds(9_999))
    XCTAssertEqual(fleet.endpoints[2].state, .idle)
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(fleet.endpoints[2].state, .connecting)
    fleet.set([2], .ready)
    XCTAssertEqual(fleet.calls(10), ["b": 10])
    // After a failure, calls do not wait for the part.
    fleet.set([0, 1], .transientFailure)
    fleet.set([0, 1], .connecting)
    XCTAssertEqual(fleet.calls(10), ["b": 10])
  }

  func testALeftPartIsKeptForFifteenMinutes() {
    var fleet = self.fixture()
    fleet.connectAll()
    fleet.set([0, 1], .transientFailure)
    fleet.connectAll()
    fleet.set([0, 1], .ready)
    fleet.advance(by: .seconds(899))
    XCTAssertEqual(fleet.decision.rest, [])
    // It is used again: the time begins at the next return.
    fleet.set([0, 1], .transientFailure)
    XCTAssertEqual(fleet.calls(10), ["b": 10])
    fleet.set([0, 1], .ready)
    fleet.advance(by: .milliseconds(899_999))
    XCTAssertEqual(fleet.decision.rest, [])
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(fleet.decision.rest.map(\.slot), [2, 3])
    XCTAssertNil(fleet.decision.updateAfter)
    XCTAssertEqual(fleet.calls(10), ["a": 10])
    // It begins as a new part.
    fleet.set([2, 3], .idle)
    fleet.set([0, 1], .transientFailure)
    XCTAssertEqual(fleet.endpoints[2].state, .connecting)
    XCTAssertEqual(fleet.pick(), .wait)
  }

  func testAllPartsHaveFailed() {
    var fleet = self.fixture()
    fleet.set([0, 1], .transientFailure)
    fleet.set([2, 3], .transientFailure)
    XCTAssertEqual(fleet.decision.state, .transientFailure)
    XCTAssertEqual(
      fleet.failure,
      "priority b: none of 2 endpoints is available; last error: 10.0.0.3:80: refused"
    )
    // The first part that connects is waited for.
    fleet.set([0], .connecting)
    XCTAssertEqual(fleet.pick(), .wait)
    // All fail: the backoff protects the servers.
    fleet.set([0], .transientFailure)
    fleet.probed = []
    fleet.advance(by: .seconds(60))
    XCTAssertEqual(fleet.probed, [])
  }

  func testAPartWithoutEndpointsIsPassedOver() {
    var fleet = TreeFixture(self.policy, ["b": 2], paths: true)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(10), ["b": 10])
    XCTAssertEqual(fleet.decision.parts.map(\.endpoints), [0, 2])
  }

  /// A part without endpoints counts as failed: calls do not wait for it when it gets some.
  func testAPartThatGetsItsEndpointsBack() {
    var fleet = self.fixture()
    let all = fleet.endpoints.map(\.endpoint)
    fleet.connectAll()
    for _ in 0..<2 {
      fleet.resolve(all.filter { $0.path == ["b"] })
      fleet.connectAll()
      XCTAssertEqual(fleet.calls(10), ["b": 10])
      fleet.resolve(all)
      XCTAssertEqual(fleet.endpoints.map(\.state), [.connecting, .connecting, .ready, .ready])
      XCTAssertEqual(fleet.calls(10), ["b": 10])
      fleet.connectAll()
      XCTAssertEqual(fleet.calls(10), ["a": 10])
    }
    // It has time to connect as any part that was ready.
    fleet.set([0, 1], .connecting)
    XCTAssertEqual(fleet.pick(), .wait)
  }

  /// A part that has failed is tried again and again while another one has its calls.
  func testFailedEndpointsAreProbedInTurn() {
    var fleet = TreeFixture(self.policy, ["a": 3, "b": 1], paths: true)
    fleet.connectAll()
    fleet.set(0..<3, .transientFailure)
    fleet.connectAll()
    fleet.probed = []
    fleet.advance(by: .milliseconds(2_000))
    XCTAssertEqual(fleet.probed, [0, 1, 2, 0])
    fleet.probed = []
    fleet.set([1], .ready)
    // The first part has the calls again. The way to its other endpoints may work again, too.
    XCTAssertEqual(fleet.probed, [0, 2])
    fleet.probed = []
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(fleet.probed, [])
  }

  func testEndpointsOfNoPartAreNotUsed() throws {
    let policy = BalancingPolicy.priority([.init("near", .roundRobin), .init("far", .roundRobin)])
    var fleet = TreeFixture(policy, ["west": 3])
    XCTAssertEqual(fleet.endpoints.count, 0)
    XCTAssertEqual(
      fleet.failure,
      "of 3 endpoints none belongs to a child: 10.0.0.0:80 has the name \"west\", and the children are near, far; "
        + "set path[0] or zone of the endpoints to one of these names"
    )
    // The zone counts where the path is too short.
    fleet = TreeFixture(policy, ["west": 3, "far": 2])
    XCTAssertEqual(fleet.endpoints.count, 2)
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(10), ["far": 10])
    XCTAssertEqual(TreeFixture(policy, []).failure, "there are no addresses to connect to")
    XCTAssertEqual(
      TreeFixture(.priority([]), ["a": 1]).failure,
      "the policy has no children; give it at least one"
    )
    // A list that was not selected by the balancer.
    var random = SeededRandom(seed: 1)
    var balancer = policy.makeBalancer(random: &random)
    XCTAssertEqual(balancer.update(.list(.ready, .ready)).rest.map(\.slot), [0, 1])
  }

  func testParts() {
    var fleet = self.fixture()
    fleet.connectAll()
    XCTAssertEqual(
      fleet.decision.parts,
      [
        BalancerPart(name: "a", policy: "round_robin", state: .ready, endpoints: 2, ready: 2, share: 1),
        BalancerPart(name: "b", policy: "round_robin", state: .idle, endpoints: 2, ready: 0, share: 0),
      ]
    )
  }

  /// Policies that connect with the first call are chosen while they are idle.
  func testAnIdlePartHasTheCalls() {
    let policy = BalancingPolicy.priority([.init("a", .ringHash()), .init("b", .roundRobin)])
    var fleet = TreeFixture(policy, ["a": 2, "b": 2], paths: true)
    XCTAssertEqual(fleet.decision.state, .idle)
    guard case .connect(let id) = fleet.decision.picker.pick(hash: 1) else { return XCTFail() }
    fleet.set([id.slot], .ready)
    XCTAssertEqual(fleet.decision.state, .ready)
    XCTAssertEqual(fleet.endpoints[2].state, .idle)
  }

  // MARK: Trees

  /// `priority` of `weightedTarget` of other policies: the parts of a failed part are left one by one.
  func testTreesOfAllPolicies() {
    for seed in seeds {
      let leaves: [BalancingPolicy] = [
        .ringHash(), .pickFirst, .randomSubset(of: .roundRobin, size: 2), .leastRequest(),
      ]
      let targets = leaves.enumerated().map {
        BalancingPolicy.WeightedChild("t\($0)", weight: UInt32($0 + 1), $1)
      }
      let policy = BalancingPolicy.priority([
        .init("near", .weightedTarget(targets)), .init("far", .weightedTarget(targets)),
      ])
      var endpoints: [Endpoint] = []
      for part in ["near", "far"] {
        for target in 0..<4 {
          for _ in 0..<3 {
            var endpoint = BalancedEndpoint.number(endpoints.count, .idle).endpoint
            endpoint.path = [part, "t\(target)"]
            endpoints.append(endpoint)
          }
        }
      }
      var fleet = TreeFixture(policy, endpoints, seed: seed)
      // Three of the ring, one of pick_first, two of the subset, three.
      XCTAssertEqual(fleet.endpoints.count, 18, "seed \(seed)")
      XCTAssertEqual(Set(fleet.endpoints.map(\.endpoint.identity)).count, 18)
      fleet.set(fleet.endpoints.indices.filter { fleet.endpoints[$0].endpoint.path[0] == "near" }, .ready)
      XCTAssertEqual(fleet.calls(1000), ["near": 1000], "seed \(seed)")
      let near = fleet.endpoints.indices.filter { fleet.endpoints[$0].endpoint.path[0] == "near" }
      // All targets but the last one fail: it gets all.
      fleet.set(near.filter { fleet.endpoints[$0].endpoint.path[1] != "t3" }, .transientFailure)
      XCTAssertEqual(fleet.calls(1000), ["near": 1000], "seed \(seed)")
      fleet.set(near, .transientFailure)
      fleet.connectAll()
      // Calls have the ring connect.
      XCTAssertEqual(fleet.calls(1000), ["far": 900, "": 100], "seed \(seed)")
      let ring = fleet.endpoints.indices.filter { fleet.endpoints[$0].endpoint.path == ["far", "t0"] }
      fleet.set(ring, .ready)
      XCTAssertEqual(fleet.calls(1000), ["far": 1000], "seed \(seed)")
      fleet.set([near[0]], .ready)
      XCTAssertEqual(fleet.calls(1000), ["near": 1000], "seed \(seed)")
      XCTAssertEqual(fleet.decision.parts.map { $0.parts.count }, [4, 4])
    }
  }

  func testTheSameSeedGivesTheSameChoices() {
    func run(_ seed: UInt64) -> [PickResult] {
      let targets = BalancingPolicy.weightedTarget([
        .init("x", weight: 1, .leastRequest()), .init("y", weight: 2, .roundRobin),
      ])
      let policy = BalancingPolicy.priority([.init("a", targets)])
      let parts: KeyValuePairs = ["a/x": 5, "a/y": 5]
      var fleet = TreeFixture(policy, parts, paths: true, seed: seed)
      fleet.connectAll()
      return (0..<50).map { fleet.decision.picker.pick(seed: UInt64($0)) }
    }
    XCTAssertEqual(run(7), run(7))
    XCTAssertNotEqual(run(7), run(8))
  }
}
