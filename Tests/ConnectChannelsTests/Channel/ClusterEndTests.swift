import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

/// How channels with clusters shut down while routes come.
final class ClusterEndTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"

  private func shutDown(_ fleet: FakeFleet, within limit: Duration?) -> () -> Bool {
    let isDone = Done()
    fleet.channel.shutDown(within: limit) { isDone.value.store(true, ordering: .relaxed) }
    fleet.executor.runUntilIdle()
    return { isDone.value.load(ordering: .relaxed) }
  }

  private final class Done: Sendable {
    let value = Atomic(false)
  }

  /// Neither the same routes once more nor other ones make clusters that nothing ends.
  func testRoutesThatComeAgainDuringShutdown() {
    for limit in [nil, Duration.seconds(10)] {
      for name in ["a", "c"] {
        let fleet = FakeFleet([], seed: 1)
        fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
        let call = RoutedCall(fleet)
        let isDone = self.shutDown(fleet, within: limit)
        fleet.route([Route(to: name)], [name: Cluster(self.a)])
        XCTAssertNil(call.response)
        XCTAssertFalse(isDone())
        fleet.run { fleet.network.connections[0].streams[0].answer() }
        XCTAssertTrue(call.hasSucceeded)
        XCTAssertTrue(isDone(), "\(String(describing: limit)), \(name)")
        XCTAssertEqual(fleet.channel.connectivity, .shutdown)
        XCTAssertEqual(fleet.network.open(at: self.a).count, 0)
      }
    }
  }

  /// Calls wait for the first routes, and may finish.
  func testRoutesThatFirstComeAfterShutdown() {
    for limit in [nil, Duration.seconds(10)] {
      let fleet = FakeFleet([], seed: 1)
      let call = RoutedCall(fleet)
      let isDone = self.shutDown(fleet, within: limit)
      XCTAssertFalse(isDone())
      fleet.route([Route(to: "a")], ["a": Cluster(self.a), "b": Cluster(self.b)])
      XCTAssertEqual(fleet.network.counts, [self.a: 1])
      XCTAssertNil(call.response)
      XCTAssertFalse(isDone())
      fleet.run { fleet.network.connections[0].streams[0].answer() }
      XCTAssertTrue(call.hasSucceeded)
      XCTAssertTrue(isDone(), "\(String(describing: limit))")
      XCTAssertEqual(fleet.channel.connectivity, .shutdown)
    }
  }

  /// The limit also ends calls of clusters that came after the shutdown began.
  func testTheLimitEndsCallsOfClustersThatCameLate() {
    for hangs in [false, true] {
      let fleet = FakeFleet([], seed: 1)
      if hangs { fleet.network.behaviours[self.a] = .hangs }
      let call = RoutedCall(fleet)
      let isDone = self.shutDown(fleet, within: .seconds(10))
      fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
      fleet.advance(by: .seconds(9))
      XCTAssertNil(call.response)
      XCTAssertFalse(isDone())
      fleet.advance(by: .seconds(2))
      XCTAssertEqual(call.response?.code, .unavailable)
      XCTAssertTrue(isDone(), "\(hangs)")
    }
  }

  /// A server that hangs holds up a shutdown without a limit until there is one.
  func testALaterLimitEndsAShutdownWithoutOne() {
    let fleet = FakeFleet([], seed: 1)
    let call = RoutedCall(fleet)
    let isDone = self.shutDown(fleet, within: nil)
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    fleet.advance(by: .seconds(100))
    XCTAssertNil(call.response)
    XCTAssertFalse(isDone())
    let isDoneAgain = self.shutDown(fleet, within: .zero)
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(call.response?.code, .unavailable)
    XCTAssertTrue(isDone() && isDoneAgain())
  }

  /// The routes never come.
  func testTheLimitEndsCallsThatWaitForRoutes() {
    let fleet = FakeFleet([], seed: 1)
    let call = RoutedCall(fleet)
    let isDone = self.shutDown(fleet, within: .seconds(10))
    fleet.advance(by: .seconds(11))
    XCTAssertEqual(call.response?.code, .unavailable)
    XCTAssertTrue(isDone())
  }
}
