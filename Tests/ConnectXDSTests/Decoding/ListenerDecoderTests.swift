internal import Connect
internal import ConnectChannels
internal import XCTest

@testable internal import ConnectXDS

final class ListenerDecoderTests: XCTestCase {
  private let place =
    "api_listener.api_listener"
    + ".value[envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager]"
  private let routerType = "envoy.extensions.filters.http.router.v3.Router"
  private let faultType = "envoy.extensions.filters.http.fault.v3.HTTPFault"
  private let rds = "rds { route_config_name: 'r' config_source { ads {} } }"

  private var router: String { self.filter("router", ResourceText.any(self.routerType)) }

  private func filter(_ name: String, _ config: String, isOptional: Bool = false) -> String {
    "http_filters { name: '\(name)' typed_config { \(config) } is_optional: \(isOptional) }"
  }

  private func fault(_ fields: String) -> String {
    self.filter("fault", ResourceText.any(self.faultType, fields))
  }

  private func listener(_ manager: String) -> String {
    let type = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
    return "name: 'l' api_listener { api_listener { \(ResourceText.any(type, manager)) } }"
  }

  /// - Parameter problems: Behind the path of the connection manager.
  private func check(_ manager: String, _ problems: [String], line: UInt = #line) throws {
    let found = try ResourceText.problems(self.listener(manager), as: .listener)
    XCTAssertEqual(found, problems.map { self.place + $0 }, line: line)
  }

  // MARK: - Routes

  func testNamedRoutes() throws {
    for source in ["ads {}", "self {}"] {
      let manager = "rds { route_config_name: 'r' config_source { \(source) } } \(self.router)"
      let listener = try XCTUnwrap(ResourceText.listener(self.listener(manager)))
      XCTAssertEqual(listener.routes, .named("r"))
      XCTAssertNil(listener.maximumStreamDuration)
      XCTAssertEqual(listener.filters, [.init(name: "router", kind: .router)])
    }
  }

  func testInlineRoutes() throws {
    let routes =
      "route_config { virtual_hosts { domains: 'a' routes { match { prefix: '' } route { cluster: 'c' } } } }"
    let listener = try XCTUnwrap(ResourceText.listener(self.listener("\(routes) \(self.router)")))
    let route = RouteResource(match: .all, action: .forward(.init(shares: [.init(cluster: "c", weight: 1)])))
    XCTAssertEqual(listener.routes, .inline(.init(virtualHosts: [.init(domains: ["a"], routes: [route])])))
    try self.check(
      "route_config { virtual_hosts { domains: 'a*b' } } \(self.router)",
      [".route_config.virtual_hosts[0].domains[0]: invalid domain pattern \"a*b\""]
    )
  }

  func testRoutesThatAreRefused() throws {
    try self.check(self.router, [": neither route_config nor rds fields are present"])
    try self.check(
      "rds { route_config_name: 'r' } \(self.router)",
      [".rds.config_source: field not present"]
    )
    try self.check(
      "rds { config_source {} } \(self.router)",
      [
        ".rds.config_source: ConfigSource does not specify ADS or SELF",
        ".rds.route_config_name: must be non-empty",
      ]
    )
  }

  // MARK: - The listener

  func testListenersThatAreRefused() throws {
    XCTAssertEqual(
      try ResourceText.problems("name: 'l'", as: .listener),
      ["api_listener: field not present: a listener for servers is of no use for clients"]
    )
    XCTAssertEqual(
      try ResourceText.problems("name: 'l' api_listener {}", as: .listener),
      ["api_listener.api_listener: field not present"]
    )
    XCTAssertEqual(
      try ResourceText.problems("api_listener { api_listener {} }", as: .listener),
      ["api_listener.api_listener.type_url: field not present"]
    )
    for url in ["a", "a/"] {
      XCTAssertEqual(
        try ResourceText.problems("api_listener { api_listener { type_url: '\(url)' } }", as: .listener),
        ["api_listener.api_listener.type_url: invalid value \"\(url)\""]
      )
    }
    XCTAssertEqual(
      try ResourceText.problems("api_listener { api_listener { type_url: 'a/b.C' } }", as: .listener),
      ["api_listener.api_listener.value[b.C]: unsupported filter type"]
    )
    let type = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
    XCTAssertEqual(
      try ResourceText.problems(
        "api_listener { api_listener { type_url: 'a/\(type)' value: '\\377' } }",
        as: .listener
      ),
      ["\(self.place): could not parse HttpConnectionManager config"]
    )
    let typed = ResourceText.typedStruct(type)
    XCTAssertEqual(
      try ResourceText.problems("api_listener { api_listener { \(typed) } }", as: .listener),
      [
        "api_listener.api_listener.value[xds.type.v3.TypedStruct].value[\(type)]: "
          + "could not parse HttpConnectionManager config"
      ]
    )
  }

  func testSettingsThatAreRefused() throws {
    try self.check(
      "\(self.rds) \(self.router) xff_num_trusted_hops: 1",
      [".xff_num_trusted_hops: must be zero"]
    )
    try self.check(
      "\(self.rds) \(self.router) original_ip_detection_extensions { name: 'a' }",
      [".original_ip_detection_extensions: must be empty"]
    )
  }

  func testMaximumStreamDuration() throws {
    func manager(_ duration: String) -> String {
      "\(self.rds) \(self.router) common_http_protocol_options { max_stream_duration { \(duration) } }"
    }
    let listener = try ResourceText.listener(self.listener(manager("seconds: 3 nanos: 5")))
    XCTAssertEqual(listener?.maximumStreamDuration, .seconds(3) + .nanoseconds(5))
    XCTAssertEqual(try ResourceText.listener(self.listener(manager("")))?.maximumStreamDuration, .zero)
    let path = ".common_http_protocol_options.max_stream_duration"
    try self.check(
      manager("seconds: -1 nanos: 1000000000"),
      [
        "\(path).seconds: value must be in the range [0, 315576000000]",
        "\(path).nanos: value must be in the range [0, 999999999]",
      ]
    )
    try self.check(
      manager("seconds: 315576000001"),
      ["\(path).seconds: value must be in the range [0, 315576000000]"]
    )
  }

  // MARK: - Filters

  func testFiltersThatAreRefused() throws {
    try self.check(self.rds, [".http_filters: expected at least one HTTP filter"])
    try self.check(
      "\(self.rds) \(self.filter("", ResourceText.any(self.routerType)))",
      [".http_filters[0].name: empty filter name"]
    )
    try self.check(
      "\(self.rds) \(self.router) \(self.router)",
      [".http_filters[1].name: duplicate HTTP filter name: router"]
    )
    try self.check(
      "\(self.rds) http_filters { name: 'a' } \(self.router)",
      [".http_filters[0].typed_config: field not present"]
    )
    try self.check(
      "\(self.rds) \(self.filter("a", "type_url: 'a/b.C'")) \(self.router)",
      [".http_filters[0].typed_config.value[b.C]: unsupported filter type"]
    )
    try self.check(
      "\(self.rds) \(self.router) \(self.filter("b", ResourceText.any(self.routerType)))",
      [".http_filters: terminal filter \"router\" must be the last filter in the chain"]
    )
    try self.check(
      "\(self.rds) \(self.fault(""))",
      [".http_filters: non-terminal filter \"fault\" is the last filter in the chain"]
    )
    try self.check(
      "\(self.rds) \(self.fault("")) \(self.filter("a", "type_url: 'a/b.C'"))",
      [
        ".http_filters[1].typed_config.value[b.C]: unsupported filter type",
        ".http_filters: non-terminal filter \"fault\" is the last filter in the chain",
      ]
    )
    for type in [self.routerType, self.faultType] {
      let name = type == self.routerType ? "router filter config" : "fault injection filter config"
      try self.check(
        "\(self.rds) \(self.filter("a", "type_url: 'a/\(type)' value: '\\377'"))",
        [".http_filters[0].typed_config.value[\(type)]: could not parse \(name)"]
      )
    }
  }

  func testUnknownFiltersThatAreOptionalAreLeftOut() throws {
    let unknown = self.filter("a", "type_url: 'a/b.C'", isOptional: true)
    let listener = try XCTUnwrap(
      ResourceText.listener(self.listener("\(self.rds) \(unknown) \(self.router) "))
    )
    XCTAssertEqual(listener.filters.map(\.name), ["router"])
    try self.check("\(self.rds) \(unknown)", [".http_filters: expected at least one HTTP filter"])
  }

  private func faultSettings(_ fields: String) throws -> FaultSettings? {
    let text = self.listener("\(self.rds) \(self.fault(fields)) \(self.router)")
    guard case .fault(let fault)? = try ResourceText.listener(text)?.filters.first?.kind else { return nil }
    return fault
  }

  func testDelays() throws {
    let cases: [(String, FaultInjection.Delay?)] = [
      ("", nil),
      ("delay {}", nil),
      ("delay { fixed_delay {} percentage { numerator: 1 } }", nil),
      ("delay { fixed_delay { seconds: 1 } }", .init(.fixed(.seconds(1)), perMillion: 0)),
      (
        "delay { fixed_delay { seconds: 1 } percentage { numerator: 7 } }",
        .init(.fixed(.seconds(1)), perMillion: 70_000)
      ),
      (
        "delay { header_delay {} percentage { numerator: 7 denominator: TEN_THOUSAND } }",
        .init(.header, perMillion: 700, headerUnit: 100)
      ),
      (
        "delay { header_delay {} percentage { numerator: 4294967295 denominator: MILLION } }",
        .init(.header, perMillion: 1_000_000, headerUnit: 1)
      ),
      (
        "delay { header_delay {} percentage { numerator: 2 denominator: 9 } }",
        .init(.header, perMillion: 20_000)
      ),
    ]
    for (text, delay) in cases { XCTAssertEqual(try self.faultSettings(text)?.delay, delay, text) }
    try self.check(
      "\(self.rds) \(self.fault("delay { fixed_delay { nanos: -1 } }")) \(self.router)",
      [
        ".http_filters[0].typed_config.value[\(self.faultType)].delay.fixed_delay.nanos: "
          + "value must be in the range [0, 999999999]"
      ]
    )
  }

  func testAborts() throws {
    let cases: [(String, FaultInjection.Abort?)] = [
      ("", nil),
      ("abort { percentage { numerator: 1 } }", nil),
      ("abort { grpc_status: 0 percentage { numerator: 1 } }", nil),
      ("abort { http_status: 200 percentage { numerator: 1 } }", nil),
      (
        "abort { grpc_status: 14 percentage { numerator: 1 } }",
        .init(.fixed(.unavailable), perMillion: 10_000)
      ),
      (
        "abort { http_status: 404 percentage { numerator: 1 } }",
        .init(.fixed(.unimplemented), perMillion: 10_000)
      ),
      ("abort { http_status: 4294967295 }", .init(.fixed(.unknown), perMillion: 0)),
      ("abort { header_abort {} percentage { numerator: 1 } }", .init(.header, perMillion: 10_000)),
      (
        "abort { header_abort {} percentage { numerator: 1 denominator: TEN_THOUSAND } }",
        .init(.header, perMillion: 100, headerUnit: 100)
      ),
    ]
    for (text, abort) in cases { XCTAssertEqual(try self.faultSettings(text)?.abort, abort, text) }
    try self.check(
      "\(self.rds) \(self.fault("abort { grpc_status: 17 }")) \(self.router)",
      [
        ".http_filters[0].typed_config.value[\(self.faultType)].abort.grpc_status: "
          + "invalid gRPC status code: 17"
      ]
    )
  }

  func testMaximumOfActiveFaults() throws {
    XCTAssertNil(try self.faultSettings("")?.maximumActive)
    XCTAssertEqual(try self.faultSettings("max_active_faults {}")?.maximumActive, 0)
    XCTAssertEqual(try self.faultSettings("max_active_faults { value: 3 }")?.maximumActive, 3)
  }
}
