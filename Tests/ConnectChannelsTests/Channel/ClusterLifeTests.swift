import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

@testable import ConnectChannels

/// How clusters come, change and go while calls run.
final class ClusterLifeTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"

  private func fleet(_ configure: (inout ChannelConfiguration) -> Void = { _ in }) -> FakeFleet {
    FakeFleet([], seed: 1, configure)
  }

  /// A stream keeps its cluster; then its connections close.
  func testAClusterLivesWhileCallsRun() {
    let fleet = self.fleet()
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    let call = RoutedCall(fleet)
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    let other = RoutedCall(fleet)
    XCTAssertEqual(fleet.network.counts, [self.a: 1, self.b: 1])
    fleet.network.forgetRequests()
    let during = fleet.snapshot
    XCTAssertEqual(during.clusters.map(\.name), ["a", "b"])
    XCTAssertEqual(fleet.network.open(at: self.a).count, 1)
    fleet.run { for connection in fleet.network.connections { connection.streams.first?.answer() } }
    XCTAssertTrue(call.hasSucceeded && other.hasSucceeded)
    fleet.executor.runUntilIdle()
    XCTAssertEqual(fleet.network.open(at: self.a).count, 0)
    XCTAssertEqual(fleet.network.open(at: self.b).count, 1)
    let after = fleet.snapshot
    XCTAssertEqual(after.clusters.map(\.name), ["b"])
    XCTAssertEqual(after.clusters.first?.snapshot.endpoints.map(\.startedCalls), [1])
    XCTAssertTrue(after.description.contains("cluster b of http://fleet.test: READY"), after.description)
  }

  func testACallThatWaitsKeepsItsCluster() {
    let fleet = self.fleet()
    fleet.network.answer = { $0.answer() }
    fleet.network.behaviours[self.a] = .refuses
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    let patient = RoutedCall(fleet, waitForReady: true)
    XCTAssertEqual(RoutedCall(fleet).response?.code, .unavailable)
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    XCTAssertNil(patient.response)
    fleet.network.behaviours[self.a] = .accepts()
    fleet.advance(by: .seconds(10))
    XCTAssertTrue(patient.hasSucceeded)
    XCTAssertEqual(fleet.network.counts[self.a], 1)
    fleet.network.forgetRequests()
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(fleet.network.open(at: self.a).count, 0)
  }

  func testACancelledWaitLetsTheClusterGo() {
    let fleet = self.fleet()
    fleet.route([Route(to: "a")], ["a": Cluster(endpoints: [])])
    let call = RoutedCall(fleet, waitForReady: true)
    XCTAssertNil(call.response, "the cluster has no endpoints")
    XCTAssertEqual(RoutedCall(fleet).response?.code, .unavailable)
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    call.cancel()
    XCTAssertEqual(call.response?.code, .canceled)
    fleet.executor.runUntilIdle()
    let names = fleet.snapshot.clusters.map(\.name)
    XCTAssertEqual(names, ["b"])
  }

  /// Nothing would ever say where the servers of the old cluster are.
  func testACallThatWaitsForEndpointsChoosesAgain() {
    let fleet = self.fleet()
    fleet.network.answer = { $0.answer() }
    fleet.route([Route(to: "a")], ["a": Cluster(endpoints: [])])
    let call = RoutedCall(fleet, waitForReady: true)
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    fleet.advance(by: .seconds(1))
    XCTAssertTrue(call.hasSucceeded)
    XCTAssertEqual(fleet.network.counts, [self.b: 1])
    XCTAssertEqual(fleet.snapshot.clusters.map(\.name), ["b"])
  }

  func testEndpointsThatComeLaterServeCallsThatWait() {
    let fleet = self.fleet()
    fleet.network.answer = { $0.answer() }
    fleet.route([Route(to: "a")], ["a": Cluster(endpoints: [])])
    let call = RoutedCall(fleet, waitForReady: true)
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    fleet.advance(by: .seconds(1))
    XCTAssertTrue(call.hasSucceeded)
  }

  /// A retry goes to the cluster that was chosen for the call.
  func testARetryKeepsItsCluster() {
    let fleet = self.fleet()
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    let call = RoutedCall(fleet, interceptors: [{ _ in RetryOnce() }])
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    fleet.run { fleet.network.connections.first?.streams.first?.refuse() }
    XCTAssertEqual(fleet.network.counts, [self.a: 2])
    fleet.run { fleet.network.connections.first?.streams.first?.answer() }
    XCTAssertTrue(call.hasSucceeded)
  }

  private struct RetryOnce: Interceptor {
    func callFunction(_ method: MethodInfo) -> CallFunction {
      var count = 0
      return CallFunction(retryFunction: { outcome in
        count += 1
        return outcome.error != nil && count == 1 ? RetryRequest() : nil
      })
    }
  }

  func testAClusterThatComesBackIsTheSame() {
    let fleet = self.fleet()
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    let call = RoutedCall(fleet)
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    let second = RoutedCall(fleet)
    XCTAssertEqual(fleet.network.connections.count, 1)
    fleet.run { for stream in fleet.network.connections[0].streams { stream.answer() } }
    XCTAssertTrue(call.hasSucceeded && second.hasSucceeded)
    // Once nothing has held it, it is a new one.
    fleet.network.forgetRequests()
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    XCTAssertEqual(fleet.network.open(at: self.a).count, 0)
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    _ = RoutedCall(fleet)
    XCTAssertEqual(fleet.network.open(at: self.a).count, 1)
  }

  /// A new cluster, its route, and the end of the old one in one update, again and again, while calls run.
  func testUpdatesLoseNoCall() {
    let fleet = self.fleet()
    fleet.network.delay = .milliseconds(30)
    fleet.network.answer = { stream in
      let stream = Confined(stream)
      _ = fleet.executor.schedule(after: .milliseconds(70)) { stream.value.answer() }
    }
    var calls: [RoutedCall] = []
    for round in 0..<30 {
      let name = "v\(round)"
      fleet.route([Route(to: name)], [name: Cluster("10.0.1.\(round + 1):80")])
      for _ in 0..<5 {
        calls.append(RoutedCall(fleet))
        fleet.advance(by: .milliseconds(11))
      }
    }
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(calls.filter { !$0.hasSucceeded }.count, 0)
    XCTAssertEqual(fleet.network.counts.count, 30)
    fleet.network.forgetRequests()
    fleet.route([Route(to: "v29")], ["v29": Cluster("10.0.1.30:80")])
    XCTAssertEqual(fleet.network.connections.filter { !$0.isClosed }.count, 1)
  }

  func testRoutesAppearAndDisappear() {
    let fleet = self.fleet()
    fleet.resolve([self.a])
    let first = RoutedCall(fleet)
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    let second = RoutedCall(fleet)
    fleet.resolve([self.a])
    let third = RoutedCall(fleet)
    XCTAssertEqual(fleet.network.counts, [self.a: 2, self.b: 1])
    XCTAssertEqual(fleet.channel.connectivity, .ready)
    fleet.network.forgetRequests()
    fleet.run {
      for connection in fleet.network.connections {
        for stream in connection.streams { stream.answer() }
      }
    }
    XCTAssertTrue(first.hasSucceeded && second.hasSucceeded && third.hasSucceeded)
    XCTAssertNil(fleet.channel.clusters, "it is as without routes")
    XCTAssertNotNil(fleet.channel.endpoints.single)
    XCTAssertEqual(fleet.network.open(at: self.b).count, 0)
  }

  func testRoutesThatCannotBeUsedLeaveTheLastGoodOnes() {
    let fleet = self.fleet()
    fleet.network.answer = { $0.answer() }
    let bad = Routing(routes: [Route(to: [])], clusters: [:])
    fleet.resolver.update(bad)
    fleet.executor.runUntilIdle()
    let refused = RoutedCall(fleet).response
    XCTAssertEqual(refused?.code, .unavailable)
    XCTAssertTrue(
      refused?.error?.message?.contains("that the resolver has found cannot be used: route 1") == true
    )
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    fleet.resolver.update(bad)
    fleet.executor.runUntilIdle()
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    fleet.resolve([self.b])
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    fleet.resolver.update(bad)
    fleet.executor.runUntilIdle()
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    XCTAssertEqual(fleet.network.counts, [self.a: 2, self.b: 2])
    let program = self.fleet {
      $0.routing = bad
      $0.resolver = nil
    }
    for waitForReady in [false, true] {
      let response = RoutedCall(program, waitForReady: waitForReady).response
      XCTAssertEqual(response?.code, .failedPrecondition)
      XCTAssertTrue(response?.error?.message?.contains("ChannelConfiguration.routing cannot be used") == true)
    }
  }

  // MARK: Idleness and the end

  func testIdlenessAndAWayBack() {
    let fleet = self.fleet { $0.idleTimeout = .seconds(100) }
    fleet.network.answer = { $0.answer() }
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    fleet.advance(by: .seconds(300))
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    XCTAssertEqual(fleet.network.open(at: self.a).count, 0)
    XCTAssertEqual(fleet.executor.scheduled, [])
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    XCTAssertEqual(fleet.channel.connectivity, .ready)
  }

  func testALongCallKeepsTheChannelAwake() {
    let fleet = self.fleet { $0.idleTimeout = .seconds(10) }
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    let call = RoutedCall(fleet)
    fleet.advance(by: .seconds(100))
    XCTAssertEqual(fleet.channel.connectivity, .ready)
    fleet.run { fleet.network.connections[0].streams[0].answer() }
    XCTAssertTrue(call.hasSucceeded)
  }

  func testConnectingWithoutACall() {
    let fleet = self.fleet()
    fleet.channel.connect()
    fleet.executor.runUntilIdle()
    fleet.route([Route(to: "a")], ["a": Cluster(self.a), "unused": Cluster(self.b)])
    XCTAssertEqual(fleet.network.attempts, [self.a])
    XCTAssertEqual(fleet.channel.connectivity, .ready)
  }

  func testShutdownLetsCallsOfClustersFinish() {
    let fleet = self.fleet()
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    let call = RoutedCall(fleet)
    let isDone = Atomic(false)
    fleet.channel.shutDown(within: .seconds(10)) { isDone.store(true, ordering: .relaxed) }
    fleet.executor.runUntilIdle()
    XCTAssertNil(call.response)
    XCTAssertFalse(isDone.load(ordering: .relaxed))
    XCTAssertEqual(RoutedCall(fleet).response?.error?.message, ConnectError.clientShutDown.message)
    fleet.run { fleet.network.connections[0].streams[0].answer() }
    XCTAssertTrue(call.hasSucceeded)
    XCTAssertTrue(isDone.load(ordering: .relaxed))
    XCTAssertEqual(fleet.channel.connectivity, .shutdown)
  }

  func testShutdownEndsCallsOfClustersInTime() {
    let fleet = self.fleet()
    fleet.network.behaviours[self.b] = .hangs
    fleet.route(
      [Route(RouteMatch(headers: [HeaderMatch("b", .present)]), to: "b"), Route(to: "a")],
      ["a": Cluster(self.a), "b": Cluster(self.b)]
    )
    let running = RoutedCall(fleet)
    let waiting = RoutedCall(fleet, ["b": ["1"]])
    let isDone = Atomic(false)
    fleet.channel.shutDown(within: .seconds(10)) { isDone.store(true, ordering: .relaxed) }
    fleet.advance(by: .seconds(9))
    XCTAssertFalse(isDone.load(ordering: .relaxed))
    XCTAssertNil(waiting.response)
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(running.response?.code, .unavailable)
    XCTAssertEqual(waiting.response?.code, .unavailable)
    XCTAssertTrue(isDone.load(ordering: .relaxed))
  }

  func testAReleasedChannelClosesItsClusters() {
    var fleet: FakeFleet? = self.fleet()
    let network = fleet?.network
    let executor = fleet?.executor
    network?.answer = { $0.answer() }
    fleet?.route([Route(to: "a")], ["a": Cluster(self.a)])
    if let fleet { XCTAssertTrue(RoutedCall(fleet).hasSucceeded) }
    XCTAssertEqual(network?.open(at: self.a).count, 1)
    fleet = nil
    executor?.runUntilIdle()
    XCTAssertEqual(network?.open(at: self.a).count, 0)
  }

  // MARK: States and several channels

  func testTheStateIsThatOfAllClusters() {
    let fleet = self.fleet()
    fleet.network.answer = { $0.answer() }
    fleet.network.behaviours[self.a] = .refuses
    fleet.network.behaviours[self.b] = .refuses
    fleet.route(
      [Route(RouteMatch(headers: [HeaderMatch("b", .present)]), to: "b"), Route(to: "a")],
      ["a": Cluster(self.a), "b": Cluster(self.b)]
    )
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    _ = RoutedCall(fleet)
    XCTAssertEqual(fleet.channel.connectivity, .idle, "one has failed, and one is not needed yet")
    let error = RoutedCall(fleet, ["b": ["1"]]).response?.error
    XCTAssertEqual(error?.code, .unavailable)
    XCTAssertEqual(fleet.channel.connectivity, .transientFailure)
    fleet.network.behaviours[self.b] = .accepts()
    fleet.advance(by: .seconds(5))
    XCTAssertTrue(RoutedCall(fleet, ["b": ["1"]]).hasSucceeded)
    XCTAssertEqual(fleet.channel.connectivity, .ready)
  }

  /// Channels of several event loops follow the same routes, and judge a cluster's endpoints together.
  func testSeveralChannelsToOneOrigin() {
    let fleet = self.fleet()
    fleet.network.answer = { $0.answer() }
    var environment = fleet.channel.environment
    environment.shared = fleet.channel.shared
    let second = OriginChannel(environment)
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    XCTAssertTrue(RoutedCall(fleet, through: ChannelTransport(channel: second)).hasSucceeded)
    XCTAssertEqual(fleet.network.open(at: self.a).count, 2)
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    XCTAssertTrue(RoutedCall(fleet, through: ChannelTransport(channel: second)).hasSucceeded)
    XCTAssertEqual(fleet.network.counts, [self.a: 2, self.b: 1])
    let executor = fleet.executor
    let resolver = PushResolver()
    let one = fleet.channel.shared.ofCluster("a", resolver, on: executor)
    let two = fleet.channel.shared.ofCluster("a", resolver, on: executor)
    XCTAssertTrue(one.outliers === two.outliers)
    let clusters = [fleet.channel, second].map { channel in
      executor.sync { channel.clusters?.table["b"]?.channel.environment.shared.outliers }
    }
    XCTAssertNotNil(clusters[0])
    XCTAssertTrue(clusters[0] === clusters[1], "the clusters of both channels have it")
    XCTAssertFalse(one.outliers === fleet.channel.shared.ofCluster("b", resolver, on: executor).outliers)
  }
}
