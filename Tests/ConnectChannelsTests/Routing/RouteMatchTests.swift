import Connect
import XCTest

@testable import ConnectChannels

/// Patterns, case, rewrites and refusals of routes.
final class RouteMatchTests: XCTestCase {
  private static let origin = Origin(scheme: .http, host: "fleet.test", port: 80)

  private func rules(_ routes: [Route], _ path: String, _ headers: Headers) -> CallRules {
    let cluster = CallCluster("a", of: Self.origin) {}
    let table = RouteTable(
      routes,
      of: Self.origin,
      to: ["a": cluster],
      methods: [],
      throttle: nil,
      numbers: CallNumbers(seed: 1),
      clientHash: 77
    )
    return table.router(for: MethodInfo(path: path, streamType: .unary)).rules(forHeaders: headers)
  }

  private func matches(_ match: RouteMatch, _ path: String = "/a.B/C", _ headers: Headers = [:]) -> Bool {
    if case .route = self.rules([Route(match, to: "a")], path, headers) { true } else { false }
  }

  func testPaths() {
    let cases: [(RouteMatch, yes: [String], no: [String])] = [
      (RouteMatch(path: .regex("/a\\.(B|D)/.*")), ["/a.B/C", "/a.D/"], ["/a.B", "x/a.B/C", "/A.B/C"]),
      (RouteMatch(path: .exact("/A.b/C"), isCaseSensitive: false), ["/a.B/c", "/A.b/C"], ["/a.B/cc"]),
      (RouteMatch(path: .prefix("/A.b/"), isCaseSensitive: false), ["/a.B/c"], ["/a.C/c"]),
      (RouteMatch(path: .exact("/É"), isCaseSensitive: false), ["/É"], ["/é"]),
      // Patterns say themselves what case is to them.
      (RouteMatch(path: .regex("/a"), isCaseSensitive: false), ["/a"], ["/A"]),
    ]
    for (match, yes, no) in cases {
      for path in yes { XCTAssertTrue(self.matches(match, path), "\(match.path) \(path)") }
      for path in no { XCTAssertFalse(self.matches(match, path), "\(match.path) \(path)") }
    }
  }

  func testHeaders() {
    let cases: [(HeaderMatch, yes: [String], no: [String])] = [
      (HeaderMatch("v", .regex("v[0-9]+")), ["v1", "v12"], ["v", "xv1", "V1"]),
      (HeaderMatch("v", .regex("a"), ignoresCase: true), ["a"], ["A"]),
      (HeaderMatch("v", .exact("CaNary"), ignoresCase: true), ["canary", "CANARY"], ["canarys"]),
      (HeaderMatch("v", .prefix("Can"), ignoresCase: true), ["cANx"], ["xcan"]),
      (HeaderMatch("v", .suffix("Ary"), ignoresCase: true), ["canARY"], ["aryx"]),
      (HeaderMatch("v", .contains("NAR"), ignoresCase: true), ["canary"], ["can"]),
      (HeaderMatch("v", .range(1..<3), ignoresCase: true), ["1"], ["3"]),
      (HeaderMatch("v", .present, ignoresCase: true), ["X"], []),
    ]
    for (header, yes, no) in cases {
      var inverted = header
      inverted.isInverted = true
      for value in yes {
        XCTAssertTrue(self.matches(RouteMatch(headers: [header]), "/a", ["v": [value]]), "\(header)")
        XCTAssertFalse(self.matches(RouteMatch(headers: [inverted]), "/a", ["v": [value]]), "\(header)")
      }
      for value in no {
        XCTAssertFalse(self.matches(RouteMatch(headers: [header]), "/a", ["v": [value]]), "\(header)")
        XCTAssertTrue(self.matches(RouteMatch(headers: [inverted]), "/a", ["v": [value]]), "\(header)")
      }
      XCTAssertFalse(self.matches(RouteMatch(headers: [header])), "\(header)")
    }
    let joined = HeaderMatch("v", .regex("a,b"))
    XCTAssertTrue(self.matches(RouteMatch(headers: [joined]), "/a", ["v": ["a", "b"]]))
  }

  func testRewrittenHashes() {
    func hash(_ policies: [RouteHashPolicy], _ value: String) -> UInt64? {
      guard
        case .route(_, let destination) = self.rules(
          [Route(to: "a", hashPolicies: policies)],
          "/a",
          ["user": [value]]
        )
      else { return nil }
      return destination.hash
    }
    let rewrite = RouteHashPolicy.Rewrite(pattern: #"^(\w+)-\d+$"#, substitution: #"\1"#)
    let policy = RouteHashPolicy.header("User", rewrite: rewrite)
    XCTAssertEqual(hash([policy], "ann-1"), XXH64.hash("ann"))
    XCTAssertEqual(hash([policy], "ann-2"), XXH64.hash("ann"))
    XCTAssertEqual(hash([policy], "ann"), XXH64.hash("ann"), "without a match it is as it was")
    XCTAssertEqual(hash([policy], "bob-1"), XXH64.hash("bob"))
  }

  func testARouteThatRefuses() {
    let routes = [
      Route(RouteMatch(headers: [HeaderMatch("v", .present)]), refusing: "the route is for servers"),
      Route(to: "a"),
    ]
    guard case .refused(let error) = self.rules(routes, "/a", ["v": ["1"]]) else {
      return XCTFail("not refused")
    }
    XCTAssertEqual(error.code, .unavailable)
    XCTAssertEqual(error.message, "the route is for servers")
    XCTAssertTrue(error.isFinal && error.isUnsent)
    guard case .route = self.rules(routes, "/a", [:]) else { return XCTFail("no route") }
  }

  func testProblems() {
    func problem(_ route: Route) -> String? { Routing(routes: [route], clusters: [:]).problem }
    XCTAssertNil(problem(Route(refusing: "no")))
    XCTAssertNil(problem(Route(RouteMatch(path: .regex("a|b")), to: "a")))
    var rewriting = Route(to: "a")
    rewriting.hashPolicies = [.header("a", rewrite: .init(pattern: "[", substitution: ""))]
    for route in [
      Route(RouteMatch(path: .regex("(")), to: "a"),
      Route(RouteMatch(headers: [HeaderMatch("a", .regex("*"))]), to: "a"),
      Route(RouteMatch(path: .regex("(")), refusing: "no"),
      rewriting,
    ] {
      let problem = problem(route) ?? ""
      XCTAssertTrue(problem.hasPrefix("route 1 has a pattern that cannot be used: "), problem)
    }
  }

  // MARK: Through a channel

  func testACallThatIsRefusedFailsAtOnce() {
    let fleet = FakeFleet()
    fleet.route([Route(refusing: "the listener \"x\" does not exist")], [:])
    for waits in [false, true] {
      let call = RoutedCall(fleet, waitForReady: waits)
      XCTAssertEqual(call.response?.code, .unavailable)
      XCTAssertEqual(call.response?.error?.message, "the listener \"x\" does not exist")
    }
    // A transport's own call.
    XCTAssertEqual(fleet.call(waitForReady: true).error?.message, "the listener \"x\" does not exist")
    XCTAssertEqual(fleet.network.attempts, [])
  }

  func testAClusterWithoutServersSaysWhy() {
    let policies: [BalancingPolicy?] = [
      nil, .roundRobin, .ringHash(),
      .priority([.init("0", .limited(CallLimits(statistics: CallStatistics(cluster: "a")), of: .roundRobin))]
      ),
    ]
    for policy in policies {
      let fleet = FakeFleet()
      let cluster = Cluster(endpoints: [], balancing: policy, problem: "the cluster resource was deleted")
      fleet.route([Route(to: "a")], ["a": cluster])
      let call = RoutedCall(fleet)
      XCTAssertEqual(call.response?.code, .unavailable)
      XCTAssertEqual(
        call.response?.error?.message,
        "cannot reach the cluster \"a\" of http://fleet.test: the cluster resource was deleted"
      )
      let patient = RoutedCall(fleet, waitForReady: true)
      XCTAssertNil(patient.response, "it waits")
      fleet.network.answer = { $0.answer() }
      fleet.route([Route(to: "a")], ["a": Cluster("10.0.0.1:80")])
      XCTAssertTrue(patient.hasSucceeded)
    }
  }

  /// The problem says nothing of servers that there are.
  func testServersThatFailHaveTheirOwnErrors() {
    let fleet = FakeFleet()
    fleet.network.standard = .refuses
    var cluster = Cluster("10.0.0.1:80")
    cluster.problem = "the cluster resource was deleted"
    fleet.route([Route(to: "a")], ["a": cluster])
    let message = RoutedCall(fleet).response?.error?.message ?? ""
    XCTAssertTrue(message.contains("10.0.0.1:80") && !message.contains("deleted"), message)
  }
}
