import ConnectChannels
import XCTest

/// The times of parts, such as the time to connect, go on when the policy changes.
final class SuccessorBalancerTests: XCTestCase {
  private func priorities(_ last: BalancingPolicy, _ first: BalancingPolicy = .roundRobin) -> BalancingPolicy
  {
    .priority([.init("a", first), .init("b", last)])
  }

  private func fixture(_ policy: BalancingPolicy) -> TreeFixture {
    TreeFixture(policy, ["a": 2, "b": 2], paths: true)
  }

  func testTheTimeToConnectGoesOn() {
    for policy in [self.priorities(.leastRequest()), self.priorities(.leastRequest(), .leastRequest())] {
      var fleet = self.fixture(self.priorities(.roundRobin))
      fleet.advance(by: .seconds(9))
      fleet.follow(policy)
      XCTAssertEqual(fleet.pick(), .wait)
      fleet.advance(by: .milliseconds(999))
      XCTAssertEqual(fleet.endpoints[2].state, .idle)
      fleet.advance(by: .milliseconds(1))
      XCTAssertEqual(fleet.endpoints[2].state, .connecting)
    }
  }

  func testCallsDoNotWaitForAPartThatHadFailed() {
    for policy in [self.priorities(.leastRequest()), self.priorities(.leastRequest(), .leastRequest())] {
      var fleet = self.fixture(self.priorities(.roundRobin))
      fleet.set([0, 1], .transientFailure)
      fleet.set([2, 3], .ready)
      fleet.set([0, 1], .connecting)
      XCTAssertEqual(fleet.calls(10), ["b": 10])
      fleet.follow(policy)
      XCTAssertEqual(fleet.calls(10), ["b": 10])
    }
  }

  func testALeftPartIsKeptForTheRestOfItsTime() {
    var fleet = self.fixture(self.priorities(.roundRobin))
    fleet.set([0, 1], .transientFailure)
    fleet.connectAll()
    fleet.set([0, 1], .ready)
    fleet.advance(by: .seconds(800))
    fleet.follow(self.priorities(.leastRequest()))
    XCTAssertEqual(fleet.decision.rest, [])
    fleet.advance(by: .milliseconds(99_999))
    XCTAssertEqual(fleet.decision.rest, [])
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(fleet.decision.rest.map(\.slot), [2, 3])
  }

  func testNewPartsBeginAndOldOnesAreForgotten() {
    var fleet = self.fixture(self.priorities(.roundRobin))
    fleet.connectAll()
    // The first part gets another name: its endpoints belong to none.
    fleet.follow(.priority([.init("c", .roundRobin), .init("b", .roundRobin)]))
    fleet.connectAll()
    XCTAssertEqual(fleet.calls(10), ["b": 10])
    XCTAssertEqual(fleet.decision.parts.map(\.name), ["c", "b"])
    // They were not selected, so that they are unknown now.
    fleet.follow(.roundRobin)
    XCTAssertEqual(fleet.calls(10), ["b": 10])
  }

  func testATargetThatHadFailedCountsAsFailing() {
    func targets(_ weight: UInt32) -> BalancingPolicy {
      .weightedTarget([.init("a", weight: weight, .roundRobin), .init("b", weight: 1, .roundRobin)])
    }
    var fleet = self.fixture(targets(1))
    fleet.set([0, 1], .transientFailure)
    fleet.set([2, 3], .transientFailure)
    fleet.set([0, 1], .connecting)
    XCTAssertEqual(fleet.decision.state, .transientFailure)
    fleet.follow(targets(3))
    XCTAssertEqual(fleet.decision.state, .transientFailure)
    fleet.set([0, 1, 2, 3], .ready)
    XCTAssertEqual(fleet.calls(100), ["a": 75, "b": 25])
  }
}
