internal import ConnectChannels
internal import XCTest

@testable internal import ConnectXDS

final class ClusterDecoderTests: XCTestCase {
  private let eds = "type: EDS eds_cluster_config { eds_config { ads {} } }"

  private func check(_ text: String, _ problems: [String], line: UInt = #line) throws {
    XCTAssertEqual(try ResourceText.problems(text, as: .cluster), problems, line: line)
  }

  private func cluster(_ more: String) throws -> ClusterResource? {
    try ResourceText.cluster("name: 'c' \(self.eds) \(more)")
  }

  // MARK: - Kinds

  func testDefaults() throws {
    XCTAssertEqual(
      try self.cluster(""),
      ClusterResource(kind: .endpoints("c"), policy: .byLocality(.roundRobin))
    )
  }

  func testEndpoints() throws {
    let named = "type: EDS eds_cluster_config { eds_config { self {} } service_name: 's' }"
    XCTAssertEqual(try ResourceText.cluster("name: 'c' \(named)")?.kind, .endpoints("s"))
    XCTAssertEqual(try ResourceText.cluster("name: 'xdstp:c' \(named)")?.kind, .endpoints("s"))
    let path = "eds_cluster_config"
    try self.check("name: 'c' type: EDS", ["\(path): field not present"])
    try self.check("name: 'c' type: EDS eds_cluster_config {}", ["\(path).eds_config: field not present"])
    try self.check(
      "name: 'c' type: EDS eds_cluster_config { eds_config {} }",
      ["\(path).eds_config: ConfigSource is not ads or self"]
    )
    try self.check(
      "name: 'xdstp:c' \(self.eds)",
      ["\(path).service_name: must be set if Cluster resource has an xdstp name"]
    )
  }

  private func dns(_ socket: String) -> String {
    """
    type: LOGICAL_DNS
    load_assignment { endpoints { lb_endpoints { endpoint { address { socket_address { \(socket) } } } } } }
    """
  }

  func testLogicalDNS() throws {
    XCTAssertEqual(
      try ResourceText.cluster(self.dns("address: 'example.com' port_value: 443"))?.kind,
      .logicalDNS(host: "example.com", port: 443)
    )
    let path = "load_assignment.endpoints"
    let socket = "\(path)[0].lb_endpoints[0].endpoint.address.socket_address"
    try self.check(
      self.dns("resolver_name: 'r'"),
      [
        "\(socket).resolver_name: LOGICAL_DNS clusters must NOT have a custom resolver name set",
        "\(socket).address: field not present", "\(socket).port_value: field not present",
      ]
    )
    try self.check(self.dns("address: 'a' port_value: 65536"), ["\(socket).port_value: invalid port"])
    let cases = [
      ("", "load_assignment: field not present for LOGICAL_DNS cluster"),
      ("load_assignment {}", "\(path): must contain exactly one locality for LOGICAL_DNS cluster, found 0"),
      (
        "load_assignment { endpoints {} endpoints {} }",
        "\(path): must contain exactly one locality for LOGICAL_DNS cluster, found 2"
      ),
      (
        "load_assignment { endpoints {} }",
        "\(path)[0].lb_endpoints: must contain exactly one endpoint for LOGICAL_DNS cluster, found 0"
      ),
      (
        "load_assignment { endpoints { lb_endpoints {} lb_endpoints {} } }",
        "\(path)[0].lb_endpoints: must contain exactly one endpoint for LOGICAL_DNS cluster, found 2"
      ),
      (
        "load_assignment { endpoints { lb_endpoints {} } }",
        "\(path)[0].lb_endpoints[0].endpoint: field not present"
      ),
      (
        "load_assignment { endpoints { lb_endpoints { endpoint {} } } }",
        "\(path)[0].lb_endpoints[0].endpoint.address: field not present"
      ),
      (
        "load_assignment { endpoints { lb_endpoints { endpoint { address {} } } } }",
        "\(socket): field not present"
      ),
    ]
    for (text, problem) in cases { try self.check("type: LOGICAL_DNS \(text)", [problem]) }
  }

  func testAggregate() throws {
    let type = "envoy.extensions.clusters.aggregate.v3.ClusterConfig"
    func custom(_ config: String) -> String { "cluster_type { typed_config { \(config) } }" }
    XCTAssertEqual(
      try ResourceText.cluster(custom(ResourceText.any(type, "clusters: 'a' clusters: 'b'")))?.kind,
      .aggregate(["a", "b"])
    )
    let path = "cluster_type.typed_config"
    try self.check("cluster_type {}", ["\(path): field not present"])
    try self.check(custom("type_url: 'a/b.C'"), ["\(path).type_url: unknown cluster_type extension: b.C"])
    try self.check(custom(ResourceText.any(type)), ["\(path).value[\(type)].clusters: must be non-empty"])
    try self.check(
      custom("type_url: 'a/\(type)' value: '\\377'"),
      ["\(path).value[\(type)]: could not parse aggregate cluster config"]
    )
  }

  func testOtherKinds() throws {
    for type in ["", "type: STATIC", "type: STRICT_DNS", "type: ORIGINAL_DST", "type: 17"] {
      try self.check("name: 'c' \(type)", ["type: unknown discovery type"])
    }
  }

  func testAllProblemsAreFound() throws {
    try self.check(
      "name: 'c' lb_policy: MAGLEV lrs_server {} outlier_detection { max_ejection_percent { value: 101 } }",
      [
        "type: unknown discovery type", "lb_policy: LB policy is not supported",
        "lrs_server: ConfigSource is not self",
        "outlier_detection.max_ejection_percent: value must be <= 100",
      ]
    )
  }

  // MARK: - Limits and loads

  func testCircuitBreakers() throws {
    let cases: [(String, UInt32)] = [
      ("", 1024),
      ("thresholds { priority: HIGH max_requests { value: 3 } }", 1024),
      ("thresholds { max_requests { value: 3 } }", 3),
      ("thresholds { max_requests {} }", 0),
      ("thresholds {} thresholds { max_requests { value: 3 } }", 1024),
      ("thresholds { priority: HIGH } thresholds { max_requests { value: 3 } }", 3),
    ]
    for (text, maximum) in cases {
      XCTAssertEqual(try self.cluster("circuit_breakers { \(text) }")?.maximumCalls, maximum, text)
    }
  }

  func testLoads() throws {
    XCTAssertEqual(try self.cluster("lrs_server { self {} }")?.reportsLoads, true)
    XCTAssertEqual(try self.cluster("")?.reportsLoads, false)
    try self.check(
      "name: 'c' \(self.eds) lrs_server { ads {} }",
      ["lrs_server: ConfigSource is not self"]
    )
  }

  // MARK: - Outliers

  private func outliers(_ text: String) throws -> OutlierDetection? {
    try self.cluster("outlier_detection { \(text) }")?.outlierDetection
  }

  func testOutlierDetection() throws {
    XCTAssertNil(try self.cluster("")?.outlierDetection)
    XCTAssertEqual(try self.outliers(""), OutlierDetection(successRate: nil, failurePercentage: nil))
    XCTAssertEqual(
      try self.outliers("enforcing_success_rate {} enforcing_failure_percentage {}"),
      OutlierDetection(successRate: nil, failurePercentage: nil)
    )
    XCTAssertEqual(
      try self.outliers(
        """
        interval { seconds: 1 } base_ejection_time { seconds: 2 } max_ejection_time { seconds: 3 }
        max_ejection_percent { value: 4 }
        enforcing_success_rate { value: 5 } success_rate_stdev_factor { value: 1500 }
        enforcing_failure_percentage { value: 6 }
        """
      ),
      OutlierDetection(
        interval: .seconds(1),
        baseEjectionTime: .seconds(2),
        maximumEjectionTime: .seconds(3),
        maximumEjectionPercent: 4,
        successRate: .init(deviations: 1.5, enforcement: 5),
        failurePercentage: .init(enforcement: 6)
      )
    )
    XCTAssertEqual(
      try self.outliers(
        """
        enforcing_success_rate { value: 100 } success_rate_minimum_hosts { value: 1 }
        success_rate_request_volume { value: 2 }
        enforcing_failure_percentage { value: 100 } failure_percentage_minimum_hosts { value: 3 }
        failure_percentage_request_volume { value: 4 } failure_percentage_threshold { value: 5 }
        """
      ),
      OutlierDetection(
        successRate: .init(minimumHosts: 1, minimumCalls: 2),
        failurePercentage: .init(threshold: 5, minimumHosts: 3, minimumCalls: 4)
      )
    )
  }

  func testOutlierDetectionThatIsRefused() throws {
    for name in ["max_ejection_percent", "enforcing_success_rate", "enforcing_failure_percentage"] {
      try self.check(
        "name: 'c' \(self.eds) outlier_detection { \(name) { value: 101 } }",
        ["outlier_detection.\(name): value must be <= 100"]
      )
    }
    XCTAssertEqual(
      try self.outliers(
        "enforcing_failure_percentage { value: 1 } failure_percentage_threshold { value: 101 }"
      ),
      OutlierDetection(successRate: nil, failurePercentage: .init(threshold: 101, enforcement: 1))
    )
    for name in ["interval", "base_ejection_time", "max_ejection_time"] {
      try self.check(
        "name: 'c' \(self.eds) outlier_detection { \(name) { seconds: -1 } }",
        ["outlier_detection.\(name).seconds: value must be in the range [0, 315576000000]"]
      )
    }
  }
}
