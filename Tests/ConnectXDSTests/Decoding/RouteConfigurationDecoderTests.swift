internal import Connect
internal import ConnectChannels
internal import XCTest

@testable internal import ConnectXDS

final class RouteConfigurationDecoderTests: XCTestCase {
  private let faultType = "envoy.extensions.filters.http.fault.v3.HTTPFault"

  private func check(_ text: String, _ problems: [String], line: UInt = #line) throws {
    XCTAssertEqual(try ResourceText.problems(text, as: .routeConfiguration), problems, line: line)
  }

  /// A virtual host with a route for all calls.
  private func route(_ action: String, _ more: String = "") -> String {
    "virtual_hosts { domains: '*' routes { match { prefix: '' } route { \(action) } \(more) } }"
  }

  /// - Parameter problems: Behind the path of the route's action.
  private func checkAction(_ action: String, _ problems: [String], line: UInt = #line) throws {
    let prefix = "virtual_hosts[0].routes[0].route"
    try self.check(self.route(action), problems.map { prefix + $0 }, line: line)
  }

  private func forward(_ action: String, _ more: String = "") throws -> RouteForward? {
    let route = try ResourceText.routes(self.route(action, more))?.virtualHosts.first?.routes.first
    guard case .forward(let forward)? = route?.action else { return nil }
    return forward
  }

  // MARK: - Virtual hosts

  func testDomains() throws {
    let domains = ["*", "a.b", "*.b", "*b", "a.*", "a*", "*a*"]
    let list = domains.map { "domains: '\($0)'" }.joined(separator: " ")
    XCTAssertEqual(try ResourceText.routes("virtual_hosts { \(list) }")?.virtualHosts.first?.domains, domains)
    try self.check(
      "virtual_hosts { domains: 'a' domains: '' domains: 'a*b' } virtual_hosts {}",
      [
        "virtual_hosts[0].domains[1]: invalid domain pattern \"\"",
        "virtual_hosts[0].domains[2]: invalid domain pattern \"a*b\"",
        "virtual_hosts[1].domains: must be non-empty",
      ]
    )
  }

  func testNoVirtualHosts() throws {
    XCTAssertEqual(try ResourceText.routes("name: 'a'"), .init(virtualHosts: []))
  }

  // MARK: - Actions

  func testOneCluster() throws {
    XCTAssertEqual(try self.forward("cluster: 'c'"), .init(shares: [.init(cluster: "c", weight: 1)]))
    try self.checkAction("cluster: ''", [".cluster: must be non-empty"])
  }

  func testActionsOfOthers() throws {
    // A cluster that a header names, or nothing that is known: the route is left out.
    for action in ["cluster_header: 'x'", ""] {
      XCTAssertEqual(try ResourceText.routes(self.route(action))?.virtualHosts.first?.routes, [])
    }
    for action in ["non_forwarding_action {}", ""] {
      let text = "virtual_hosts { domains: '*' routes { match { prefix: '' } \(action) } }"
      XCTAssertEqual(
        try ResourceText.routes(text)?.virtualHosts.first?.routes,
        [RouteResource(match: .all, action: .inappropriate)]
      )
    }
    try self.check(
      "virtual_hosts { domains: '*' routes { route { cluster: 'c' } } }",
      ["virtual_hosts[0].routes[0].match: field not present"]
    )
  }

  func testWeightedClusters() throws {
    let text = """
      weighted_clusters {
        clusters { name: 'a' weight { value: 3 } }
        clusters { name: 'b' weight { value: 0 } }
        clusters { name: 'c' weight { value: 4294967292 } }
      }
      """
    XCTAssertEqual(
      try self.forward(text)?.shares,
      [.init(cluster: "a", weight: 3), .init(cluster: "c", weight: 4_294_967_292)]
    )
    try self.checkAction(
      "weighted_clusters { clusters { name: '' weight { value: 1 } } clusters { name: 'b' } }",
      [
        ".weighted_clusters.clusters[0].name: must be non-empty",
        ".weighted_clusters.clusters[1].weight: field not present",
      ]
    )
    for clusters in ["", "clusters { name: 'a' weight {} }"] {
      try self.checkAction(
        "weighted_clusters { \(clusters) }",
        [".weighted_clusters: no valid clusters specified"]
      )
    }
    try self.checkAction(
      """
      weighted_clusters {
        clusters { name: 'a' weight { value: 4294967295 } } clusters { name: 'b' weight { value: 1 } }
      }
      """,
      [".weighted_clusters: sum of cluster weights exceeds uint32 max"]
    )
  }

  func testPlugins() throws {
    func plugin(_ fields: String) -> String { "cluster_specifier_plugins { \(fields) }" }
    let unknown = "extension { name: 'p' typed_config { type_url: 'a/b.C' } }"
    let routes = self.route("cluster_specifier_plugin: 'p'")
    let optional = plugin("\(unknown) is_optional: true")
    XCTAssertEqual(try ResourceText.routes("\(optional) \(routes)")?.virtualHosts.first?.routes, [])
    let path = "cluster_specifier_plugins[0].extension"
    try self.check(
      plugin(unknown),
      ["\(path).typed_config.value[b.C]: unsupported ClusterSpecifierPlugin type"]
    )
    try self.check(plugin(""), ["\(path): field not present"])
    try self.check(plugin("extension { name: 'p' }"), ["\(path).typed_config: field not present"])
    try self.check(
      "\(optional) \(optional)",
      ["cluster_specifier_plugins[1].extension.name: duplicate name \"p\""]
    )
    try self.checkAction(
      "cluster_specifier_plugin: 'q'",
      [".cluster_specifier_plugin: unknown cluster specifier plugin name \"q\""]
    )
    try self.checkAction("cluster_specifier_plugin: ''", [".cluster_specifier_plugin: must be non-empty"])
  }

  func testMaximumStreamDuration() throws {
    let cases: [(String, Duration?)] = [
      ("", nil),
      ("max_stream_duration {}", nil),
      ("max_stream_duration { max_stream_duration { seconds: 1 } }", .seconds(1)),
      ("max_stream_duration { max_stream_duration { seconds: 1 } grpc_timeout_header_max {} }", .zero),
      ("max_stream_duration { grpc_timeout_header_max { seconds: 2 } }", .seconds(2)),
    ]
    for (text, duration) in cases {
      XCTAssertEqual(try self.forward("cluster: 'c' \(text)")?.maximumStreamDuration, duration, text)
    }
    for name in ["max_stream_duration", "grpc_timeout_header_max"] {
      try self.checkAction(
        "cluster: 'c' max_stream_duration { \(name) { seconds: -1 } }",
        [".max_stream_duration.\(name).seconds: value must be in the range [0, 315576000000]"]
      )
    }
  }

  // MARK: - Hash policies

  func testHashPolicies() throws {
    let forward = try self.forward(
      """
      cluster: 'c'
      hash_policy { header { header_name: 'a' } terminal: true }
      hash_policy {}
      hash_policy { filter_state { key: 'other' } }
      hash_policy { filter_state { key: 'io.grpc.channel_id' } }
      hash_policy { header { header_name: 'b' regex_rewrite { pattern { regex: 'x+' } substitution: 'y' } } }
      """
    )
    XCTAssertEqual(
      forward?.hashPolicies,
      [
        .header("a", isTerminal: true), .client,
        .header("b", rewrite: .init(pattern: "x+", substitution: "y")),
      ]
    )
  }

  func testHashPoliciesThatAreRefused() throws {
    try self.checkAction(
      "cluster: 'c' hash_policy { filter_state {} } hash_policy { header {} }",
      [".hash_policy[1].header.header_name: must be non-empty"]
    )
    func header(_ rewrite: String) -> String {
      "cluster: 'c' hash_policy { header { header_name: 'a' regex_rewrite { \(rewrite) } } }"
    }
    let path = ".hash_policy[0].header.regex_rewrite.pattern"
    try self.checkAction(header(""), ["\(path): field not present"])
    try self.checkAction(header("pattern {}"), ["\(path).regex: field not present"])
    let problem = try XCTUnwrap(RegexSyntax.problem(of: "a("))
    try self.checkAction(
      header("pattern { regex: 'a(' }"),
      ["\(path).regex: errors compiling regex: \(problem)"]
    )
  }

  // MARK: - Retries

  func testRetryPolicies() throws {
    func policy(_ fields: String) throws -> MethodConfig.RetryPolicy? {
      try self.forward("cluster: 'c' retry_policy { \(fields) }")?.retry
    }
    XCTAssertNil(try self.forward("cluster: 'c'")?.retry)
    let all = "cancelled,deadline-exceeded,internal,resource-exhausted,unavailable,5xx,reset"
    var expected = MethodConfig.RetryPolicy(
      maximumAttempts: 2,
      initialBackoff: .milliseconds(25),
      maximumBackoff: .milliseconds(250),
      backoffMultiplier: 2,
      retryableCodes: [.canceled, .deadlineExceeded, .internalError, .resourceExhausted, .unavailable]
    )
    XCTAssertEqual(try policy("retry_on: '\(all)'"), expected)
    expected.retryableCodes = [.unavailable]
    for (retries, attempts) in [(1, 2), (4, 5), (5, 5), (4_294_967_295, 5)] {
      expected.maximumAttempts = attempts
      XCTAssertEqual(try policy("retry_on: 'unavailable' num_retries { value: \(retries) }"), expected)
    }
    let backoffs: [(String, Duration, Duration)] = [
      ("base_interval { seconds: 1 }", .seconds(1), .seconds(10)),
      ("base_interval { seconds: 1 } max_interval { seconds: 3 }", .seconds(1), .seconds(3)),
      ("base_interval {}", .milliseconds(1), .milliseconds(10)),
      ("base_interval { seconds: 3 } max_interval { seconds: 1 }", .seconds(3), .seconds(3)),
    ]
    for (text, initial, maximum) in backoffs {
      let found = try policy("retry_on: 'unavailable' retry_back_off { \(text) }")
      XCTAssertEqual(found?.initialBackoff, initial, text)
      XCTAssertEqual(found?.maximumBackoff, maximum, text)
    }
  }

  func testRetryPoliciesThatAreRefused() throws {
    try self.checkAction(
      "cluster: 'c' retry_policy { num_retries {} retry_back_off { max_interval { nanos: -1 } } }",
      [
        ".retry_policy.num_retries: must be greater than 0",
        ".retry_policy.retry_back_off.base_interval: field not present",
        ".retry_policy.retry_back_off.max_interval.nanos: value must be in the range [0, 999999999]",
      ]
    )
    try self.check(
      "virtual_hosts { domains: '*' retry_policy { num_retries {} } }",
      ["virtual_hosts[0].retry_policy.num_retries: must be greater than 0"]
    )
  }

  func testRetryPolicyOfTheVirtualHost() throws {
    func retry(_ own: String) throws -> MethodConfig.RetryPolicy? {
      let routes = try ResourceText.routes(
        """
        virtual_hosts {
          domains: '*'
          retry_policy { retry_on: 'internal' }
          routes { match { prefix: '' } route { cluster: 'c' \(own) } }
        }
        """
      )
      guard case .forward(let forward)? = routes?.virtualHosts.first?.routes.first?.action else { return nil }
      return forward.retry
    }
    XCTAssertEqual(try retry("")?.retryableCodes, [.internalError])
    XCTAssertEqual(try retry("retry_policy { retry_on: 'unavailable' }")?.retryableCodes, [.unavailable])
    // Its own policy repeats nothing.
    XCTAssertNil(try retry("retry_policy { retry_on: '5xx' }"))
  }

  // MARK: - Settings of filters

  private func override(_ key: String, _ value: String) -> String {
    "typed_per_filter_config { key: '\(key)' value { \(value) } }"
  }

  func testOverrides() throws {
    let fault = ResourceText.any(self.faultType, "max_active_faults { value: 3 }")
    let config = ResourceText.any("envoy.config.route.v3.FilterConfig", "config { \(fault) }")
    let expected: [String: FilterOverride] = ["f": .fault(FaultSettings(maximumActive: 3))]
    for value in [fault, config] {
      let override = self.override("f", value)
      let cluster = "weighted_clusters { clusters { name: 'a' weight { value: 1 } \(override) } }"
      let routes = try XCTUnwrap(
        ResourceText.routes(
          """
          virtual_hosts {
            domains: '*' \(override)
            routes { match { prefix: '' } route { \(cluster) } \(override) }
          }
          """
        )
      )
      XCTAssertEqual(routes.virtualHosts.first?.overrides, expected)
      XCTAssertEqual(routes.virtualHosts.first?.routes.first?.overrides, expected)
      XCTAssertEqual(try self.forward(cluster)?.shares.first?.overrides, expected)
    }
  }

  func testOverridesThatAreUnknown() throws {
    let unknown = "type_url: 'a/b.C'"
    func config(_ fields: String) -> String {
      self.override("f", ResourceText.any("envoy.config.route.v3.FilterConfig", fields))
    }
    let optional = try ResourceText.routes(
      "virtual_hosts { domains: '*' \(config("is_optional: true config { \(unknown) }")) }"
    )
    XCTAssertEqual(optional?.virtualHosts.first?.overrides, [:])
    let path = "typed_per_filter_config[f]"
    let inner = "\(path).value[envoy.config.route.v3.FilterConfig].config"
    let cases = [
      (self.override("f", unknown), ["\(path).value[b.C]: unsupported filter type"]),
      (self.override("f", ""), ["\(path).type_url: field not present"]),
      (config("config { \(unknown) }"), ["\(inner).value[b.C]: unsupported filter type"]),
      (config("is_optional: true"), ["\(inner): field not present"]),
      (
        self.override("", ResourceText.any(self.faultType)),
        ["typed_per_filter_config[]: filter name must be non-empty"]
      ),
      (
        self.override("f", "type_url: 'a/\(self.faultType)' value: '\\377'"),
        ["\(path).value[\(self.faultType)]: could not parse fault injection filter config"]
      ),
      (
        self.override("f", "type_url: 'a/envoy.config.route.v3.FilterConfig' value: '\\377'"),
        ["\(path).value[envoy.config.route.v3.FilterConfig]: could not parse FilterConfig"]
      ),
    ]
    for (text, problems) in cases {
      try self.check("virtual_hosts { domains: '*' \(text) }", problems.map { "virtual_hosts[0].\($0)" })
      try self.check(self.route("cluster: 'c'", text), problems.map { "virtual_hosts[0].routes[0].\($0)" })
      try self.checkAction(
        "weighted_clusters { clusters { name: 'a' weight { value: 1 } \(text) } }",
        problems.map { ".weighted_clusters.clusters[0].\($0)" }
      )
    }
  }
}
