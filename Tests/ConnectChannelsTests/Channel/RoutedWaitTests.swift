import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

/// What routes and clusters keep while calls wait, channels change, and answers come again.
final class RoutedWaitTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"

  // MARK: Calls that are routed while they wait

  func testCallsThatWaitedHaveTheHashOfTheirRoute() {
    let addresses = (1...10).map { "10.0.1.\($0):80" }
    let ring = Cluster(
      endpoints: addresses.compactMap(Endpoint.init),
      balancing: .ringHash(BalancingPolicy.RingHash())
    )
    let fleet = FakeFleet([], seed: 1)
    for _ in 0..<20 { fleet.call(headers: ["user": ["ann"]]) }
    fleet.route([Route(to: "a", hashPolicies: [.header("user")])], ["a": ring])
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(Array(fleet.network.counts.values), [20])
  }

  func testCallsThatWaitedHoldTheirCluster() {
    let fleet = FakeFleet([], seed: 1)
    fleet.network.behaviours[self.a] = .hangs
    let call = fleet.call(waitForReady: true)
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    XCTAssertEqual(fleet.snapshot.clusters.map(\.name), ["a", "b"])
    XCTAssertTrue(call.isPending)
    fleet.run { call.cancel() }
    fleet.executor.runUntilIdle()
    XCTAssertEqual(fleet.snapshot.clusters.map(\.name), ["b"], "a call that is over holds nothing")
  }

  // MARK: Channels for several versions of HTTP

  /// The route of a call is chosen in one channel, and a later attempt may use the channel for another version.
  func testACallKeepsItsClusterInOtherChannels() throws {
    let fleet = FakeFleet([], seed: 1)
    let first = fleet.channel.environment
    let second = OriginChannel(
      ChannelEnvironment(
        origin: first.origin,
        executor: first.executor,
        opener: first.opener,
        resolver: fleet.resolver,
        logger: first.logger,
        clusters: first.shared.clusters
      )
    )
    func names() -> [String] { fleet.executor.sync { ChannelSnapshot(second) }.clusters.map(\.name) }
    fleet.channel.connect()
    second.connect()
    fleet.executor.runUntilIdle()
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    var request: HTTPStreamRequest? = HTTPStreamRequest(
      method: .post,
      target: "/a.B/C",
      headers: [:],
      body: .streamed
    )
    let method = MethodInfo(path: "/a.B/C", streamType: .unary)
    if case .route(_, let destination) = fleet.channel.serviceRules.rules(for: method, [:]) {
      request?.follow(destination)
    }
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    XCTAssertEqual(names(), ["a", "b"])
    var call: FakeCall? = FakeCall()
    if let request { fleet.run { call?.start(on: second, request) } }
    XCTAssertEqual(fleet.network.counts, [self.a: 1])
    fleet.run {
      fleet.network.connections.first { $0.address == self.a && !$0.streams.isEmpty }?.streams[0].end()
    }
    XCTAssertEqual(call?.hasEnded, true)
    (request, call) = (nil, nil)
    fleet.network.forgetRequests()
    fleet.executor.runUntilIdle()
    XCTAssertEqual(names(), ["b"])
    XCTAssertEqual(fleet.snapshot.clusters.map(\.name), ["b"])
    XCTAssertEqual(fleet.network.open(at: self.a).count, 0)
  }

  /// A channel that is idle does not know what the others have learned, and holds no cluster for them.
  func testAnIdleChannelHoldsNoCluster() {
    let fleet = FakeFleet([], seed: 1) { $0.idleTimeout = .seconds(10) }
    fleet.network.answer = { $0.answer() }
    var environment = fleet.channel.environment
    environment.configuration.idleTimeout = .seconds(1_000_000)
    let second = OriginChannel(environment)
    second.connect()
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    fleet.network.forgetRequests()
    fleet.advance(by: .seconds(30))
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    fleet.advance(by: .seconds(1))
    XCTAssertNil(fleet.channel.clusters)
    XCTAssertEqual(fleet.executor.sync { ChannelSnapshot(second) }.clusters.map(\.name), ["b"])
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    XCTAssertEqual(fleet.network.counts, [self.a: 1, self.b: 1])
  }

  // MARK: Updates

  func testClustersConnectInTheOrderOfTheirNames() {
    let fleet = FakeFleet([], seed: 1)
    let names = (10..<40).map { "c\($0)" }
    let addresses = (10..<40).map { "10.0.2.\($0):80" }
    let clusters = Dictionary(uniqueKeysWithValues: zip(names, addresses.map { Cluster($0) }))
    fleet.channel.connect()
    fleet.executor.runUntilIdle()
    fleet.route([Route(to: names.reversed().map { WeightedCluster(name: $0, weight: 1) })], clusters)
    XCTAssertEqual(fleet.network.attempts, addresses)
  }

  /// The first ones of a service and of a channel are found in another way than those that follow.
  func testManyMethodsAndClusters() {
    let fleet = FakeFleet([], seed: 1)
    fleet.network.answer = { $0.answer() }
    func route(_ turn: Int) {
      let numbers = Array(0..<20)
      let clusters = numbers.map { ("c\($0)", Cluster("10.0.\(turn).\($0):80")) }
      fleet.route(
        numbers.map { Route(RouteMatch(path: .exact("/pkg.Service/M\($0)")), to: "c\($0)") },
        Dictionary(uniqueKeysWithValues: clusters)
      )
    }
    for turn in 1...2 {
      route(turn)
      for _ in 0..<2 {
        for number in 0..<20 {
          XCTAssertTrue(RoutedCall(fleet, path: "/pkg.Service/M\(number)").hasSucceeded, "\(number)")
        }
      }
    }
    XCTAssertEqual(fleet.network.counts.count, 40)
    XCTAssertEqual(Set(fleet.network.counts.values), [2])
  }

  func testAnUnchangedAnswerRebuildsNothing() {
    let fleet = FakeFleet([], seed: 1)
    fleet.network.answer = { $0.answer() }
    var routing = Routing(routes: [Route(to: "a")], clusters: ["a": Cluster(self.a)])
    fleet.resolver.update(routing)
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    XCTAssertNil(fleet.executor.sync { ChannelRoutes(fleet.channel).apply(routing).map { _ in true } })
    routing.routes[0].timeout = .seconds(1)
    XCTAssertNotNil(fleet.executor.sync { ChannelRoutes(fleet.channel).apply(routing).map { _ in true } })
  }

  /// The use of a cluster counts when the cluster is gone.
  func testAClusterThatIsGoneDoesNotMakeTheChannelIdle() {
    let fleet = FakeFleet([], seed: 1) { $0.idleTimeout = .seconds(10) }
    fleet.network.answer = { $0.answer() }
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    fleet.advance(by: .seconds(8))
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    fleet.network.forgetRequests()
    fleet.advance(by: .seconds(1))
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    XCTAssertEqual(fleet.snapshot.clusters.map(\.name), ["b"])
    fleet.advance(by: .seconds(6))
    XCTAssertTrue(fleet.channel.resolution.isActive, "the last call was 7 seconds ago")
    fleet.advance(by: .seconds(20))
    XCTAssertFalse(fleet.channel.resolution.isActive)
  }

  func testASnapshotSaysThatThereAreRoutes() {
    let fleet = FakeFleet([], seed: 1)
    fleet.channel.connect()
    fleet.executor.runUntilIdle()
    fleet.route([Route(to: "a")], ["a": Cluster(self.a)])
    let snapshot = fleet.snapshot
    XCTAssertEqual(snapshot.policy, "routes")
    let text = snapshot.description
    XCTAssertTrue(text.hasPrefix("http://fleet.test: READY, routes, 1 clusters, 0 calls wait"), text)
    fleet.resolve([self.a])
    XCTAssertEqual(fleet.snapshot.policy, "pick_first")
  }

  // MARK: Further attempts

  /// The hedges of a route stay in the cluster that was chosen for the call.
  func testHedgesStayInTheCluster() {
    let fleet = FakeFleet([], seed: 1)
    let hedging = MethodConfig.HedgingPolicy(maximumAttempts: 3, hedgingDelay: .seconds(1), nonFatalCodes: [])
    fleet.route([Route(to: "a", attempts: .hedging(hedging))], ["a": Cluster(self.a)])
    let call = RoutedCall(fleet)
    fleet.route([Route(to: "b")], ["b": Cluster(self.b)])
    fleet.advance(by: .seconds(5))
    XCTAssertEqual(fleet.network.counts, [self.a: 3])
    XCTAssertNil(call.response)
    fleet.run { fleet.network.connections.last { !$0.streams.isEmpty }?.streams.last?.answer() }
    XCTAssertTrue(call.hasSucceeded)
  }
}
