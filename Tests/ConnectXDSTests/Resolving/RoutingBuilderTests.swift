import Connect
import ConnectChannels
import XCTest

@testable import ConnectXDS

final class RoutingBuilderTests: XCTestCase {
  private var builder = RoutingBuilder()
  private let statistics = CallStatistics(cluster: "a")

  private func configuration(
    _ listener: ListenerResource,
    _ clusters: [String: XDSConfiguration.Cluster] = [:]
  ) throws -> XDSConfiguration {
    guard case .inline(let routes) = listener.routes, let host = routes.virtualHosts.first else {
      throw ConnectError(code: .internalError, message: "no virtual host")
    }
    return XDSConfiguration(listener: listener, virtualHost: host, clusters: clusters)
  }

  private func leaf(
    _ name: String,
    _ endpoints: EndpointsResource?,
    _ policy: ClusterResource.Policy = .byLocality(.roundRobin),
    note: String? = nil
  ) -> XDSConfiguration.Leaf {
    .init(name: name, resource: .endpoints(name, policy), endpoints: endpoints, note: note)
  }

  private func build(
    _ clusters: [String: XDSConfiguration.Cluster],
    _ listener: ListenerResource = .inline(.to("a"))
  ) throws -> Routing {
    let statistics = self.statistics
    let configuration = try self.configuration(listener, clusters)
    return Routing(
      routes: configuration.routes,
      clusters: self.builder.build(configuration.clusters) { _ in statistics }
    )
  }

  private func zone(_ name: String) -> String { XDSLocality(zone: name).description }

  // MARK: - Clusters

  func testATreeOfPrioritiesAndLocalities() throws {
    var leaf = self.leaf(
      "a",
      .priorities([[("x", ["10.0.0.1:1"]), ("y", ["10.0.0.2:1"])], [("z", ["10.0.0.3:1"])]])
    )
    leaf.endpoints?.priorities[0][1].weight = 3
    leaf.endpoints?.drops = [.init(category: "load", perMillion: 5)]
    leaf.resource.maximumCalls = 7
    leaf.resource.outlierDetection = .defaults
    let cluster = try XCTUnwrap(try self.build(["a": .leaf(leaf)]).clusters["a"])
    let (first, second) = ("{cluster=a, child_number=0}", "{cluster=a, child_number=1}")
    let limits = CallLimits(
      drops: [.init(category: "load", perMillion: 5)],
      maximumCalls: 7,
      statistics: self.statistics
    )
    XCTAssertEqual(
      cluster.balancing,
      .outlierDetection(
        .defaults,
        of: .limited(
          limits,
          of: .priority([
            .init(
              first,
              .weightedTarget([
                .init(self.zone("x"), weight: 1, .roundRobin), .init(self.zone("y"), weight: 3, .roundRobin),
              ])
            ),
            .init(second, .weightedTarget([.init(self.zone("z"), weight: 1, .roundRobin)])),
          ])
        )
      )
    )
    XCTAssertEqual(cluster.endpoints.map(\.description), ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"])
    XCTAssertEqual(
      cluster.endpoints.map(\.path),
      [[first, self.zone("x")], [first, self.zone("y")], [second, self.zone("z")]]
    )
    XCTAssertEqual(cluster.endpoints.map(\.zone), [self.zone("x"), self.zone("y"), self.zone("z")])
    XCTAssertEqual(cluster.endpoints.map(\.cluster), [nil, nil, nil])
    XCTAssertEqual(cluster.endpoints.map(\.weight), [1, 1, 1])
    XCTAssertNil(cluster.problem)
  }

  func testWeightsOverAllEndpoints() throws {
    var resource = EndpointsResource.priorities([
      [("x", ["10.0.0.1:1", "10.0.0.2:1"]), ("y", ["10.0.0.3:1"])]
    ])
    resource.priorities[0][0].weight = 10
    resource.priorities[0][0].endpoints[1].weight = 3
    resource.priorities[0][1].weight = 2
    resource.priorities[0][1].endpoints[0].weight = .max
    let cluster = try XCTUnwrap(
      try self.build(["a": .leaf(self.leaf("a", resource, .overall(.ringHash())))]).clusters["a"]
    )
    XCTAssertEqual(cluster.endpoints.map(\.weight), [10, 30, .max])
    XCTAssertEqual(
      cluster.balancing,
      .limited(
        CallLimits(maximumCalls: 1024, statistics: self.statistics),
        of: .priority([.init("{cluster=a, child_number=0}", .ringHash())])
      )
    )
  }

  func testAnAggregate() throws {
    let (b, c) = (self.leaf("b", .at("10.0.0.1:1")), self.leaf("c", nil, note: "no endpoints"))
    let routing = try self.build(["a": .aggregate([b, c]), "b": .leaf(b)])
    let cluster = try XCTUnwrap(routing.clusters["a"])
    XCTAssertEqual(cluster.endpoints.map(\.path), [["b", "{cluster=b, child_number=0}", self.zone("a")]])
    XCTAssertEqual(cluster.endpoints.map(\.cluster), ["b"])
    XCTAssertEqual(cluster.problem, "no endpoints")
    XCTAssertEqual(cluster.balancing?.name, "priority")
    XCTAssertEqual(routing.clusters["b"]?.endpoints.map(\.cluster), [nil])
  }

  /// Endpoints name the TLS settings of their cluster, so that others make new connections.
  func testEndpointsNameTheirSecurity() throws {
    let matcher = ClusterSecurity.NameMatcher(rule: .exact("a"))
    let settings: [ClusterSecurity?] = [
      nil, ClusterSecurity(), ClusterSecurity(roots: "none"), ClusterSecurity(roots: "r"),
      ClusterSecurity(identity: "r"), ClusterSecurity(roots: "r", acceptedNames: [matcher]),
      ClusterSecurity(roots: "r", acceptedNames: [matcher, matcher]),
      ClusterSecurity(roots: "r", acceptedNames: [.init(rule: .exact("a\", \"exact a"))]),
      ClusterSecurity(roots: "r", acceptedNames: [.init(rule: .exact("a"), ignoresCase: true)]),
      ClusterSecurity(roots: "r", acceptedNames: [.init(rule: .prefix("a"))]),
    ]
    var texts: Set<String?> = []
    for setting in settings {
      var leaf = self.leaf("a", .at("10.0.0.1:1"))
      leaf.resource.security = setting
      let clusters = try self.build(["a": .leaf(leaf), "b": .aggregate([leaf])]).clusters
      let endpoint = try XCTUnwrap(clusters["a"]?.endpoints.first)
      XCTAssertEqual(endpoint.security == nil, setting == nil)
      XCTAssertEqual(clusters["b"]?.endpoints.first?.security, endpoint.security)
      texts.insert(endpoint.security)
    }
    XCTAssertEqual(texts.count, settings.count, "\(texts)")
  }

  func testAClusterThatCannotBeUsed() throws {
    let routing = try self.build(["a": .problem("it is gone")])
    XCTAssertEqual(routing.clusters["a"], Cluster(endpoints: [], problem: "it is gone"))
  }

  func testNamesStayOverUpdates() throws {
    _ = try self.build(["a": .leaf(self.leaf("a", .priorities([[("x", [])], [("y", [])]])))])
    let leaf = self.leaf("a", .priorities([[("y", ["10.0.0.1:1"])], [("x", [])]]))
    let routing = try self.build(["a": .leaf(leaf)])
    XCTAssertEqual(routing.clusters["a"]?.endpoints.first?.path.first, "{cluster=a, child_number=1}")
    // Also if it is now a part of an aggregate.
    let nested = try self.build(["b": .aggregate([leaf])])
    XCTAssertEqual(
      nested.clusters["b"]?.endpoints.first?.path.prefix(2),
      ["a", "{cluster=a, child_number=1}"]
    )
  }

  func testWithoutLocalitiesThereIsAPlaceForDrops() throws {
    var leaf = self.leaf("a", EndpointsResource(priorities: []), note: "none")
    leaf.endpoints?.drops = [.init(category: "all", perMillion: 1_000_000)]
    let cluster = try XCTUnwrap(try self.build(["a": .leaf(leaf)]).clusters["a"])
    XCTAssertEqual(cluster.balancing?.name, "limited")
    XCTAssertEqual(cluster.problem, "none")
  }

  /// What has not changed is not made again: its arrays are the same.
  func testUnchangedClustersAreKept() throws {
    let addresses = (0..<1000).map { "10.0.\($0 / 250).\($0 % 250):1" }
    let clusters: [String: XDSConfiguration.Cluster] = [
      "a": .leaf(self.leaf("a", .priorities([[("x", addresses)]]))),
      "b": .aggregate([self.leaf("c", .priorities([[("x", addresses)]]))]),
    ]
    let first = try self.build(clusters)
    let second = try self.build(clusters)
    for name in ["a", "b"] {
      let (one, two) = (try XCTUnwrap(first.clusters[name]), try XCTUnwrap(second.clusters[name]))
      one.endpoints.withUnsafeBufferPointer { one in
        two.endpoints.withUnsafeBufferPointer { two in XCTAssertEqual(one.baseAddress, two.baseAddress) }
      }
    }
  }

  // MARK: - Routes

  func testRoutes() throws {
    let retry = MethodConfig.RetryPolicy(
      maximumAttempts: 3,
      initialBackoff: .milliseconds(25),
      maximumBackoff: .milliseconds(250),
      backoffMultiplier: 2,
      retryableCodes: [.unavailable]
    )
    var forward = RouteForward(shares: [.init(cluster: "a", weight: 9), .init(cluster: "b", weight: 1)])
    forward.retry = retry
    forward.hashPolicies = [.header("user")]
    var listener = ListenerResource.inline(
      RouteResource(match: RouteMatch(path: .exact("/a/B")), action: .forward(forward)),
      RouteResource(match: .all, action: .inappropriate)
    )
    listener.maximumStreamDuration = .seconds(5)
    let routes = try self.build([:], listener).routes
    XCTAssertEqual(routes[0].match.path, .exact("/a/B"))
    XCTAssertEqual(routes[0].clusters, [.init(name: "a", weight: 9), .init(name: "b", weight: 1)])
    XCTAssertEqual(routes[0].attempts, .retry(retry))
    XCTAssertEqual(routes[0].hashPolicies, [.header("user")])
    XCTAssertEqual(routes[0].timeout, .seconds(5))
    XCTAssertNil(routes[0].fault)
    XCTAssertNil(routes[0].refusal)
    XCTAssertNotNil(routes[1].refusal)
  }

  func testTimeouts() throws {
    let cases: [(listener: Duration?, route: Duration?, timeout: Duration?)] = [
      (nil, nil, nil), (.seconds(1), nil, .seconds(1)), (.zero, nil, nil),
      (.seconds(1), .seconds(2), .seconds(2)),
      (.seconds(1), .zero, nil),
    ]
    for (limit, own, timeout) in cases {
      var forward = RouteForward(shares: [.init(cluster: "a", weight: 1)])
      forward.maximumStreamDuration = own
      var listener = ListenerResource.inline(RouteResource(match: .all, action: .forward(forward)))
      listener.maximumStreamDuration = limit
      XCTAssertEqual(try self.build([:], listener).routes[0].timeout, timeout)
    }
  }

  func testFaults() throws {
    let fault = { (count: UInt32) in FaultSettings(abort: .init(.fixed(.aborted), perMillion: count)) }
    let filters: [ListenerResource.Filter] = [
      .init(name: "f", kind: .fault(fault(1))), .init(name: "router", kind: .router),
    ]
    // The share's, the route's, the virtual host's, and what comes of it for the cluster and for the route.
    let cases: [(share: UInt32?, route: UInt32?, host: UInt32?, cluster: UInt32?, all: UInt32)] = [
      (nil, nil, nil, nil, 1), (nil, nil, 2, nil, 2), (nil, 3, 2, nil, 3), (4, 3, 2, 4, 3),
      (4, nil, nil, 4, 1),
    ]
    for (share, route, host, cluster, all) in cases {
      let override = { (count: UInt32?) in count.map { ["f": FilterOverride.fault(fault($0))] } ?? [:] }
      let forward = RouteForward(shares: [.init(cluster: "a", weight: 1, overrides: override(share))])
      var virtualHost = RouteConfigurationResource.VirtualHost(
        domains: ["*"],
        routes: [RouteResource(match: .all, action: .forward(forward), overrides: override(route))]
      )
      virtualHost.overrides = override(host)
      let listener = ListenerResource(
        routes: .inline(RouteConfigurationResource(virtualHosts: [virtualHost])),
        filters: filters
      )
      let made = try self.build([:], listener).routes[0]
      XCTAssertEqual(made.fault, fault(all))
      XCTAssertEqual(made.clusters[0].fault, cluster.map(fault))
    }
    // Overrides of filters that are not there do not count.
    var route = RouteResource.to("a")
    route.overrides = ["g": .fault(fault(9))]
    XCTAssertNil(try self.build([:], .inline(route)).routes[0].fault)
  }

  func testSeveralFaultFilters() throws {
    let delay = FaultInjection.Delay(.fixed(.seconds(1)), perMillion: 5)
    let abort = FaultInjection.Abort(.fixed(.aborted), perMillion: 6)
    let other = FaultInjection.Abort(.fixed(.notFound), perMillion: 7)
    let cases: [(filters: [FaultSettings], route: [String: FaultSettings], all: FaultSettings)] = [
      ([.init(), .init(abort: abort)], [:], .init(abort: abort)),
      (
        [.init(abort: abort, maximumActive: 1), .init(delay: delay, abort: other, maximumActive: 2)], [:],
        .init(delay: delay, abort: abort, maximumActive: 2)
      ),
      (
        [.init(delay: delay, maximumActive: 1), .init(abort: abort, maximumActive: 2)], [:],
        .init(delay: delay, abort: abort, maximumActive: 1)
      ),
      ([.init(abort: abort), .init(abort: other)], ["0": .init()], .init(abort: other)),
      ([.init(), .init(abort: abort)], ["1": .init(abort: other)], .init(abort: other)),
    ]
    for (filters, overrides, all) in cases {
      var route = RouteResource.to("a")
      route.overrides = overrides.mapValues { .fault($0) }
      let listener = ListenerResource.inline(
        route,
        filters: filters.enumerated().map { .init(name: "\($0)", kind: .fault($1)) }
      )
      XCTAssertEqual(try self.build([:], listener).routes[0].fault, all)
      // The share has its own for one filter, and the route's for the other.
      route.overrides["0"] = .fault(.init(delay: delay))
      let share = RouteForward.Share(cluster: "a", weight: 1, overrides: ["1": .fault(.init(abort: other))])
      route.action = .forward(RouteForward(shares: [share]))
      let made = try self.build([:], .inline(route, filters: listener.filters)).routes[0]
      XCTAssertEqual(made.clusters[0].fault, .init(delay: delay, abort: other))
    }
  }
}
