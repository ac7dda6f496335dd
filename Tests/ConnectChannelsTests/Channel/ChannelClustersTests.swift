import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

@testable import ConnectChannels

/// Calls that routes lead to clusters, and the lives of clusters.
final class ChannelClustersTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"
  private let canary = Route(RouteMatch(headers: [HeaderMatch("canary", .present)]), to: "b")

  private var both: [String: Cluster] { ["a": Cluster(self.a), "b": Cluster(self.b)] }

  private func fleet(_ configure: (inout ChannelConfiguration) -> Void = { _ in }) -> FakeFleet {
    let fleet = FakeFleet([], seed: 1, configure)
    fleet.network.answer = { $0.answer() }
    return fleet
  }

  // MARK: Where calls go

  func testAHeaderChoosesTheCluster() {
    let fleet = self.fleet()
    let early = RoutedCall(fleet)
    XCTAssertNil(early.response, "it waits for the routes")
    fleet.route([self.canary, Route(to: "a")], self.both)
    XCTAssertTrue(early.hasSucceeded)
    XCTAssertEqual(fleet.network.counts, [self.a: 1])
    for _ in 0..<3 { XCTAssertTrue(RoutedCall(fleet, ["canary": ["yes"]]).hasSucceeded) }
    XCTAssertEqual(fleet.network.counts, [self.a: 1, self.b: 3])
    XCTAssertEqual(fleet.channel.connectivity, .ready)
  }

  /// The transport's own calls, and calls from before the routes.
  func testStreamsWithoutRules() {
    let fleet = self.fleet()
    fleet.network.answer = nil
    let early = fleet.call(headers: ["canary": ["1"]])
    fleet.route([self.canary, Route(to: "a")], self.both)
    XCTAssertEqual(fleet.network.counts, [self.b: 1])
    let call = fleet.call()
    XCTAssertEqual(fleet.network.counts, [self.a: 1, self.b: 1])
    fleet.run { for connection in fleet.network.connections { connection.streams.first?.end() } }
    XCTAssertTrue(early.hasEnded && call.hasEnded)
    fleet.route([self.canary], self.both)
    XCTAssertTrue(fleet.call().error?.message?.contains("no route") == true)
  }

  func testNoRouteAndUnknownCluster() {
    let fleet = self.fleet()
    fleet.route([self.canary, Route(RouteMatch(path: .exact("/x/y")), to: "c")], self.both)
    for waitForReady in [false, true] {
      let none = RoutedCall(fleet, waitForReady: waitForReady).response
      XCTAssertEqual(none?.code, .unavailable)
      XCTAssertTrue(none?.error?.message?.contains("no route") == true)
      let unknown = RoutedCall(fleet, path: "/x/y", waitForReady: waitForReady).response
      XCTAssertTrue(unknown?.error?.message?.contains("\"c\", which does not exist") == true)
    }
    XCTAssertEqual(fleet.network.attempts, [])
  }

  func testRoutesOfTheProgram() {
    let routing = Routing(routes: [Route(to: "a")], clusters: self.both)
    let fleet = self.fleet {
      $0.routing = routing
      $0.resolver = nil
    }
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    XCTAssertEqual(fleet.network.counts, [self.a: 1])
    // A resolver may bring others.
    let other = self.fleet { $0.routing = routing }
    let call = RoutedCall(other)
    other.route([Route(to: "b")], self.both)
    XCTAssertTrue(call.hasSucceeded)
    XCTAssertEqual(other.network.counts, [self.b: 1])
    other.resolver.update([])
    other.executor.runUntilIdle()
    XCTAssertTrue(RoutedCall(other).hasSucceeded)
    XCTAssertEqual(other.network.counts, [self.a: 1, self.b: 1])
  }

  func testTimeoutsOfRoutesAndOfTheServiceConfig() {
    let fleet = self.fleet()
    fleet.network.answer = nil
    let config = #"{"methodConfig":[{"name":[{}],"timeout":"9s","maxRequestMessageBytes":0}]}"#
    fleet.route(
      [Route(self.canary.match, to: "b", timeout: .seconds(2)), Route(to: "a")],
      self.both,
      serviceConfig: #"{"methodConfig":[{"name":[{}],"timeout":"9s"}]}"#
    )
    let short = RoutedCall(fleet, ["canary": ["1"]])
    let long = RoutedCall(fleet)
    XCTAssertEqual(fleet.network.requests.map { $0.headers.first("connect-timeout-ms") }, ["2000", "9000"])
    fleet.advance(by: .seconds(2))
    XCTAssertEqual(short.response?.code, .deadlineExceeded)
    XCTAssertTrue(short.response?.error?.message?.contains("the timeout of the route") == true)
    XCTAssertNil(long.response)
    fleet.advance(by: .seconds(7))
    XCTAssertTrue(long.response?.error?.message?.contains("the timeout of the service config") == true)
    // What the route leaves open stays.
    fleet.route([Route(to: "a", timeout: .seconds(2))], self.both, serviceConfig: config)
    XCTAssertEqual(RoutedCall(fleet).response?.code, .resourceExhausted)
  }

  func testHashPoliciesChooseTheServer() {
    let addresses = (1...10).map { "10.0.1.\($0):80" }
    let cluster = Cluster(
      endpoints: addresses.compactMap(Endpoint.init),
      balancing: .ringHash(BalancingPolicy.RingHash())
    )
    for policies in [[RouteHashPolicy.header("user")], [.client]] {
      let fleet = self.fleet()
      fleet.route([Route(to: "a", hashPolicies: policies)], ["a": cluster])
      for _ in 0..<10 { XCTAssertTrue(RoutedCall(fleet, ["user": ["ann"]]).hasSucceeded) }
      XCTAssertEqual(fleet.network.counts.count, 1, "\(policies)")
      for number in 0..<30 { _ = RoutedCall(fleet, ["user": ["user\(number)"]]) }
      let isByClient = policies == [.client]
      XCTAssertEqual(fleet.network.counts.count > 1, !isByClient, "\(policies)")
    }
    // Without a policy, what the call brings counts.
    let fleet = self.fleet()
    fleet.route([Route(to: "a")], ["a": cluster])
    for _ in 0..<10 { XCTAssertTrue(RoutedCall(fleet, hash: 42).hasSucceeded) }
    XCTAssertEqual(fleet.network.counts.count, 1)
  }

  /// The routes of the origin where the call began do not count there.
  func testAnInterceptorThatGoesToAnotherOrigin() {
    let there = ["a": Cluster("10.9.9.8:80"), "b": Cluster("10.9.9.9:80")]
    for (answer, address) in [
      (
        ResolverUpdate(endpoints: [], routing: Routing(routes: [Route(to: "b")], clusters: there)),
        "10.9.9.9:80"
      ),
      (ResolverUpdate(endpoints: [Endpoint("10.8.8.8:80")].compactMap { $0 }), "10.8.8.8:80"),
    ] {
      let fleet = self.fleet()
      fleet.route([Route(to: "a")], self.both)
      let resolver = PushResolver()
      resolver.update(answer)
      let other = OriginChannel(
        ChannelEnvironment(
          origin: Origin(scheme: .http, host: "other.test", port: 80),
          executor: fleet.executor,
          opener: fleet.network,
          resolver: resolver,
          logger: fleet.channel.environment.logger
        )
      )
      let transport = TwoOrigins(first: fleet.channel, second: other)
      // The second call finds a channel that knows where calls go.
      for _ in 0..<2 {
        XCTAssertTrue(RoutedCall(fleet, interceptors: [{ _ in Redirect() }], through: transport).hasSucceeded)
      }
      XCTAssertEqual(fleet.network.counts, [address: 2])
    }
  }

  private struct TwoOrigins: HTTPClientInterface {
    let first: OriginChannel
    let second: OriginChannel

    func endpoint(
      for origin: Origin,
      on executor: (any CallExecutor)?,
      requiresHTTP2: Bool
    ) throws(ConnectError) -> any HTTPEndpoint {
      origin.host == "other.test" ? self.second : self.first
    }
  }

  private struct Redirect: Interceptor {
    func callFunction(_ method: MethodInfo) -> CallFunction {
      CallFunction(requestFunction: { request in
        request.url.origin = Origin(scheme: .http, host: "other.test", port: 80)
      })
    }
  }
}
