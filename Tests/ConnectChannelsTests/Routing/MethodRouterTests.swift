import Connect
import XCTest

@testable import ConnectChannels

/// Which route and which cluster a call has.
final class MethodRouterTests: XCTestCase {
  private static let origin = Origin(scheme: .http, host: "fleet.test", port: 80)

  private static func table(
    _ routes: [Route],
    _ names: [String] = ["a", "b", "c"],
    methods: [MethodConfig] = [],
    seed: UInt64 = 1
  ) -> RouteTable {
    var clusters: [String: CallCluster] = [:]
    for name in names { clusters[name] = CallCluster(name, of: Self.origin) {} }
    return RouteTable(
      routes,
      of: Self.origin,
      to: clusters,
      methods: methods,
      throttle: nil,
      numbers: CallNumbers(seed: seed),
      clientHash: 77
    )
  }

  private static func router(_ table: RouteTable, _ path: String = "/pkg.Service/Get") -> any CallRouter {
    table.router(for: MethodInfo(path: path, streamType: .unary))
  }

  /// The cluster of a call; nil if it is refused.
  private static func cluster(
    _ routes: [Route],
    _ path: String = "/pkg.Service/Get",
    _ headers: Headers = [:]
  )
    -> String?
  {
    self.cluster(self.router(self.table(routes), path), headers)
  }

  private static func cluster(_ router: any CallRouter, _ headers: Headers = [:]) -> String? {
    guard case .route(_, let destination) = router.rules(forHeaders: headers) else { return nil }
    return destination.cluster?.name
  }

  func testPaths() {
    let routes = [
      Route(RouteMatch(path: .exact("/pkg.Service/Get")), to: "a"),
      Route(RouteMatch(path: .prefix("/pkg.Service/")), to: "b"),
    ]
    XCTAssertEqual(Self.cluster(routes), "a")
    XCTAssertEqual(Self.cluster(routes, "/pkg.Service/Put"), "b")
    XCTAssertEqual(Self.cluster(routes, "/pkg.Service/GetAll"), "b")
    XCTAssertNil(Self.cluster(routes, "/pkg.Services/Get"))
    XCTAssertNil(Self.cluster(routes, "/pkg.service/Get"), "paths have case")
    XCTAssertEqual(Self.cluster(routes + [Route(to: "c")], "/other/Get"), "c")
  }

  func testTheFirstMatchCounts() {
    XCTAssertEqual(Self.cluster([Route(to: "b"), Route(to: "a")]), "b")
  }

  func testEveryHeaderRule() {
    let cases: [(HeaderMatch.Rule, yes: [String], no: [String])] = [
      (.exact("canary"), ["canary"], ["Canary", "canary1", ""]),
      (.prefix("can"), ["canary", "can"], ["a can", "ca", ""]),
      (.suffix("ary"), ["canary", "ary"], ["aryx", "ry", ""]),
      (.contains("nar"), ["canary", "nar"], ["cabary", "na", ""]),
      (.range(-5..<5), ["-5", "0", "4"], ["5", "-6", "x", "", "1.5"]),
      (.present, ["x", ""], []),
    ]
    for (rule, yes, no) in cases {
      let route = Route(RouteMatch(headers: [HeaderMatch("X-Version", rule)]), to: "a")
      let inverted = Route(RouteMatch(headers: [HeaderMatch("x-version", rule, isInverted: true)]), to: "a")
      for value in yes {
        XCTAssertEqual(Self.cluster([route], "/a/b", ["x-version": [value]]), "a", "\(rule) \(value)")
        XCTAssertNil(Self.cluster([inverted], "/a/b", ["x-version": [value]]), "\(rule) \(value)")
      }
      for value in no {
        XCTAssertNil(Self.cluster([route], "/a/b", ["x-version": [value]]), "\(rule) \(value)")
        XCTAssertEqual(Self.cluster([inverted], "/a/b", ["x-version": [value]]), "a", "\(rule) \(value)")
      }
      XCTAssertNil(Self.cluster([route], "/a/b"), "\(rule)")
      // There is no value that could be another one.
      XCTAssertEqual(Self.cluster([inverted], "/a/b"), rule == .present ? "a" : nil, "\(rule)")
    }
  }

  func testAllHeadersHaveToMatch() {
    let route = Route(
      RouteMatch(headers: [HeaderMatch("a", .exact("1,2")), HeaderMatch("b", .present)]),
      to: "a"
    )
    XCTAssertEqual(Self.cluster([route], "/a/b", ["a": ["1", "2"], "b": ["x"]]), "a", "values are joined")
    XCTAssertNil(Self.cluster([route], "/a/b", ["a": ["1", "2"]]))
    let binary = Route(RouteMatch(headers: [HeaderMatch("a-bin", .present)]), to: "a")
    XCTAssertNil(Self.cluster([binary], "/a/b", ["a-bin": ["x"]]))
  }

  /// Routes of xDS may ask for it, and gRPC lets them.
  func testContentTypeIsThatOfGRPC() {
    func cluster(_ rule: HeaderMatch.Rule) -> String? {
      Self.cluster([Route(RouteMatch(headers: [HeaderMatch("Content-Type", rule)]), to: "a")], "/a/b")
    }
    XCTAssertEqual(cluster(.exact("application/grpc")), "a")
    XCTAssertNil(cluster(.prefix("application/json")))
  }

  /// Calls are asked for their headers and numbers only where those count.
  func testConstantRules() {
    func isConstant(_ routes: [Route], _ names: [String] = ["a", "b"]) -> Bool {
      let rules = Self.router(Self.table(routes, names)).constantRules
      guard case .route(nil, let destination)? = rules else { return false }
      XCTAssertEqual(destination.cluster?.name, "a")
      return true
    }
    XCTAssertTrue(isConstant([Route(to: "a"), Route(to: "b")]))
    XCTAssertTrue(isConstant([Route(RouteMatch(path: .exact("/other")), to: "b"), Route(to: "a")]))
    XCTAssertFalse(isConstant([Route(to: "a")], ["b"]), "there is no such cluster")
    XCTAssertFalse(isConstant([]))
    XCTAssertFalse(isConstant([Route(RouteMatch(fraction: 0.5), to: "a"), Route(to: "a")]))
    XCTAssertFalse(isConstant([Route(RouteMatch(headers: [HeaderMatch("x", .present)]), to: "a")]))
    let clusters = [WeightedCluster(name: "a", weight: 1), WeightedCluster(name: "b", weight: 1)]
    XCTAssertFalse(isConstant([Route(to: clusters)]))
  }

  func testFraction() {
    for (fraction, range) in [(0, 0...0), (0.25, 2_300...2_700), (1, 10_000...10_000)]
      as [(Double, ClosedRange<Int>)]
    {
      let router = Self.router(Self.table([Route(RouteMatch(fraction: fraction), to: "a"), Route(to: "b")]))
      let count = (0..<10_000).filter { _ in Self.cluster(router) == "a" }.count
      XCTAssertTrue(range.contains(count), "\(fraction): \(count)")
    }
  }

  func testWeights() {
    let clusters = [
      WeightedCluster(name: "a", weight: 90), WeightedCluster(name: "b", weight: 10),
      WeightedCluster(name: "c", weight: 0),
    ]
    for seed in 1...5 as ClosedRange<UInt64> {
      let router = Self.router(Self.table([Route(to: clusters)], seed: seed))
      var counts: [String: Int] = [:]
      for _ in 0..<20_000 { counts[Self.cluster(router) ?? "none", default: 0] += 1 }
      XCTAssertEqual(Double(counts["a"] ?? 0), 18_000, accuracy: 200)
      XCTAssertEqual(Double(counts["b"] ?? 0), 2_000, accuracy: 200)
      XCTAssertNil(counts["c"])
    }
    let heavy = ["a", "b", "c"].map { WeightedCluster(name: $0, weight: .max) }
    let router = Self.router(Self.table([Route(to: heavy)]))
    XCTAssertEqual(Set((0..<100).map { _ in Self.cluster(router) }), ["a", "b", "c"])
  }

  func testHashPolicies() {
    func hash(_ policies: [RouteHashPolicy], _ headers: Headers) -> UInt64? {
      let router = Self.router(Self.table([Route(to: "a", hashPolicies: policies)]))
      guard case .route(_, let destination) = router.rules(forHeaders: headers) else { return nil }
      return destination.hash
    }
    XCTAssertEqual(hash([.header("User")], ["user": ["ann"]]), XXH64.hash("ann"))
    XCTAssertNil(hash([.header("user")], [:]))
    XCTAssertEqual(hash([.header("user"), .client], [:]), 77)
    XCTAssertNil(hash([], ["user": ["ann"]]))
    // They are combined (gRFC A42).
    let ann = XXH64.hash("ann")
    XCTAssertEqual(hash([.client, .header("user")], ["user": ["ann"]]), 154 ^ ann)
    XCTAssertEqual(hash([.header("user"), .client], ["user": ["ann"]]), (ann << 1 | ann >> 63) ^ 77)
    XCTAssertEqual(hash([.client, .client], [:]), 154 ^ 77)
    // A terminal one ends that, if there is a hash by then.
    let terminal = RouteHashPolicy.header("User", isTerminal: true)
    XCTAssertEqual(hash([terminal, .client], ["user": ["ann"]]), ann)
    XCTAssertEqual(hash([terminal, .client], [:]), 77)
    XCTAssertEqual(hash([.client, terminal, .client], [:]), 77)
    XCTAssertEqual(
      hash([RouteHashPolicy(.client, isTerminal: true), .header("user")], ["user": ["ann"]]),
      77
    )
  }

  /// A route's timeout and attempts replace those of the service config.
  func testRulesOfRoutesAndOfTheServiceConfig() {
    func retries(_ count: Int) -> MethodConfig.AttemptPolicy {
      .retry(
        MethodConfig.RetryPolicy(
          maximumAttempts: count,
          initialBackoff: .seconds(1),
          maximumBackoff: .seconds(1),
          backoffMultiplier: 1,
          retryableCodes: [.unavailable]
        )
      )
    }
    let config = MethodConfig(
      names: [.init(service: "pkg.Service")],
      timeout: .seconds(9),
      waitsForReady: true,
      maximumRequestMessageSize: 10,
      attempts: retries(2)
    )
    func rules(_ route: Route, _ path: String = "/pkg.Service/Get") -> MethodRules? {
      let router = Self.router(Self.table([route], methods: [config]), path)
      guard case .route(let rules, _) = router.rules(forHeaders: [:]) else { return nil }
      return rules
    }
    let open = rules(Route(to: "a"))
    XCTAssertEqual(open?.timeout, .seconds(9))
    XCTAssertEqual(open?.retry?.maximumAttempts, 2)
    let own = rules(Route(to: "a", timeout: .seconds(3), attempts: retries(4)))
    XCTAssertEqual(own?.timeout, .seconds(3))
    XCTAssertEqual(own?.retry?.maximumAttempts, 4)
    XCTAssertEqual(own?.waitForReady, true)
    XCTAssertEqual(own?.maximumRequestMessageSize, 10)
    let other = rules(Route(to: "a", attempts: retries(4)), "/other.Service/Get")
    XCTAssertNil(other?.timeout)
    XCTAssertNil(other?.waitForReady)
    XCTAssertEqual(other?.retry?.maximumAttempts, 4)
    let hedged = rules(Route(to: "a", attempts: .hedging(.init(maximumAttempts: 3))))
    XCTAssertEqual(hedged?.hedging?.maximumAttempts, 3)
    XCTAssertEqual(hedged?.retry?.maximumAttempts, 1)
  }

  func testRefusals() {
    func error(_ routes: [Route]) -> ConnectError? {
      guard case .refused(let error) = Self.router(Self.table(routes)).rules(forHeaders: [:]) else {
        return nil
      }
      return error
    }
    let none = error([Route(RouteMatch(path: .exact("/other")), to: "a")])
    XCTAssertEqual(none?.code, .unavailable)
    XCTAssertEqual(
      none?.message,
      "no route of http://fleet.test matches the call of /pkg.Service/Get; add a route for it, or a last one for all "
        + "calls"
    )
    let unknown = error([Route(to: "z")])
    XCTAssertEqual(unknown?.code, .unavailable)
    XCTAssertTrue(unknown?.message?.contains("the cluster \"z\", which does not exist; add it") == true)
    let refusing = MethodRouter(refusing: ConnectError(code: .failedPrecondition, message: "bad"))
    var refused: ConnectError?
    if case .refused(let error) = refusing.rules(forHeaders: [:]) { refused = error }
    for error in [none, unknown, refused] {
      XCTAssertEqual(error?.isFinal, true, "no interceptor repeats the call")
      XCTAssertEqual(error?.isUnsent, true)
    }
  }

  func testProblems() {
    func problem(_ route: Route) -> String? {
      Routing(routes: [Route(to: "a"), route], clusters: [:]).problem
    }
    XCTAssertNil(problem(Route(RouteMatch(fraction: 1), to: "a")))
    XCTAssertEqual(problem(Route(to: [])), "route 2 has no cluster; name at least one")
    let zero = [WeightedCluster(name: "a", weight: 0)]
    XCTAssertEqual(
      problem(Route(to: zero)),
      "route 2 has no cluster with a weight; give one of its clusters a weight above 0"
    )
    for fraction in [-0.1, 1.1, .nan, .infinity] {
      XCTAssertTrue(problem(Route(RouteMatch(fraction: fraction), to: "a"))?.contains("from 0 to 1") == true)
    }
  }
}
