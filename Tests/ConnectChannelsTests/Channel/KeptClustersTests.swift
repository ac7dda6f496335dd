import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

/// Clusters that calls hold, and that routes have left: the resolver goes on to say where their servers are.
final class KeptClustersTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"
  private let other = "10.0.0.3:80"

  /// Notes which clusters are in use.
  private final class Listening: NameResolver {
    let base: PushResolver
    let kept = Mutex<[[String]]>([])

    init(_ base: PushResolver) {
      self.base = base
    }

    func watch(
      _ origin: Origin,
      on executor: any CallExecutor,
      _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
    ) -> any ResolverWatch {
      let watch = self.base.watch(origin, on: executor, report)
      return ClosureWatch(
        onKeep: { names in self.kept.withLock { $0.append(names.sorted()) } },
        onCancel: { watch.cancel() }
      )
    }
  }

  private func wait(_ fleet: FakeFleet, waitForReady: Bool = true) -> RoutedCall {
    fleet.network.answer = { $0.answer() }
    fleet.network.behaviours[self.a] = .hangs
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    let call = RoutedCall(fleet, waitForReady: waitForReady)
    fleet.route([Route(to: "b")], ["a": Cluster(self.a), "b": Cluster(self.b)])
    XCTAssertNil(call.response)
    return call
  }

  func testTheResolverHearsWhichClustersAreInUse() {
    let resolver = PushResolver()
    let listening = Listening(resolver)
    let fleet = FakeFleet(seed: 1, resolver: resolver, behind: listening)
    let call = self.wait(fleet)
    let kept = { listening.kept.withLock { $0 } }
    XCTAssertEqual(kept().filter { !$0.isEmpty }, [["a"], ["a", "b"]])
    call.cancel()
    fleet.executor.runUntilIdle()
    XCTAssertEqual(kept().last, ["b"])
    XCTAssertEqual(fleet.snapshot.clusters.map(\.name), ["b"])
  }

  func testCallsThatWaitHearOfOtherServers() {
    let fleet = FakeFleet(seed: 1)
    let call = self.wait(fleet)
    fleet.route([Route(to: "b")], ["a": Cluster(self.other), "b": Cluster(self.b)])
    XCTAssertTrue(call.hasSucceeded)
    XCTAssertEqual(fleet.network.counts, [self.other: 1])
    fleet.network.forgetRequests()
    fleet.executor.runUntilIdle()
    XCTAssertEqual(fleet.snapshot.clusters.map(\.name), ["b"])
  }

  /// A cluster that the resolver brings, and that nothing holds, is no cluster of the channel.
  func testAClusterThatNothingHoldsIsNotMade() {
    let fleet = FakeFleet(seed: 1)
    fleet.channel.connect()
    fleet.executor.runUntilIdle()
    fleet.route([Route(to: "b")], ["a": Cluster(self.a), "b": Cluster(self.b)])
    XCTAssertEqual(fleet.snapshot.clusters.map(\.name), ["b"])
  }

  func testADeletedClusterFailsCallsThatWait() {
    let fleet = FakeFleet(seed: 1)
    let call = self.wait(fleet, waitForReady: false)
    let gone = Cluster(endpoints: [], problem: "the cluster does not exist")
    fleet.route([Route(to: "b")], ["a": gone, "b": Cluster(self.b)])
    XCTAssertEqual(call.response?.code, .unavailable)
    let message = call.response?.error?.message ?? ""
    XCTAssertTrue(message.contains("the cluster does not exist"), message)
  }

  /// A deleted cluster has no server to wait for: another cluster serves the call.
  func testADeletedClusterLeavesPatientCallsToOthers() {
    let fleet = FakeFleet(seed: 1)
    let call = self.wait(fleet)
    let gone = Cluster(endpoints: [], problem: "the cluster does not exist")
    fleet.route([Route(to: "b")], ["a": gone, "b": Cluster(self.b)])
    XCTAssertTrue(call.hasSucceeded)
    XCTAssertEqual(fleet.network.counts, [self.b: 1])
  }

  /// A call that was led to the cluster before it was deleted begins afterwards.
  func testAPatientCallThatBeginsLateGoesToOthers() throws {
    let fleet = FakeFleet(seed: 1)
    let first = self.wait(fleet)
    let request = try XCTUnwrap(self.request(to: "a", fleet))
    fleet.route([Route(to: "b")], ["a": Cluster(endpoints: []), "b": Cluster(self.b)])
    XCTAssertTrue(first.hasSucceeded)
    let call = FakeCall()
    fleet.run { call.start(on: fleet.channel, request) }
    XCTAssertTrue(call.hasEnded)
    XCTAssertEqual(fleet.network.counts, [self.b: 2])
  }

  /// A request for a cluster that something holds.
  private func request(to cluster: String, _ fleet: FakeFleet) -> HTTPStreamRequest? {
    var request = HTTPStreamRequest(method: .post, target: "/a.B/C", headers: [:], body: .streamed)
    request.waitsForReady = true
    let handle = fleet.channel.environment.shared.clusters.handle(cluster, of: fleet.channel.origin)
    request.follow(CallDestination(cluster: handle))
    return request
  }
}
