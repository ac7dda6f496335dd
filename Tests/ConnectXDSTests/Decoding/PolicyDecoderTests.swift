internal import ConnectChannels
internal import SwiftProtobuf
internal import XCTest

@testable internal import ConnectXDS

final class PolicyDecoderTests: XCTestCase {
  private let prefix = "envoy.extensions.load_balancing_policies"

  private func text(_ more: String) -> String {
    "name: 'c' type: EDS eds_cluster_config { eds_config { ads {} } } \(more)"
  }

  private func policy(_ more: String) throws -> ClusterResource.Policy? {
    try ResourceText.cluster(self.text(more))?.policy
  }

  private func check(_ more: String, _ problems: [String], line: UInt = #line) throws {
    XCTAssertEqual(try ResourceText.problems(self.text(more), as: .cluster), problems, line: line)
  }

  private func list(_ configs: String...) -> String {
    configs.map { "policies { typed_extension_config { typed_config { \($0) } } }" }.joined(separator: " ")
  }

  private func known(_ name: String, _ fields: String = "") -> String {
    ResourceText.any("\(self.prefix).\(name)", fields)
  }

  private func byLocality(_ list: String) -> String {
    self.known("wrr_locality.v3.WrrLocality", "endpoint_picking_policy { \(list) }")
  }

  private var roundRobin: String { self.known("round_robin.v3.RoundRobin") }
  private let unknown = "type_url: 'a/b.C'"

  private func policy(list: String) throws -> ClusterResource.Policy? {
    try self.policy("load_balancing_policy { \(list) }")
  }

  /// - Parameter problems: Behind the path of the list.
  private func check(list: String, _ problems: [String], line: UInt = #line) throws {
    try self.check(
      "load_balancing_policy { \(list) }",
      problems.map { "load_balancing_policy\($0)" },
      line: line
    )
  }

  /// The path of the fields of a policy in a list.
  private func path(_ name: String, _ index: Int = 0) -> String {
    ".policies[\(index)].typed_extension_config.typed_config.value[\(self.prefix).\(name)]"
  }

  // MARK: - The field of old

  func testNames() throws {
    let ring = BalancingPolicy.RingHash(minimumRingSize: 1024, maximumRingSize: 4096)
    let cases: [(String, ClusterResource.Policy)] = [
      ("", .byLocality(.roundRobin)),
      ("lb_policy: ROUND_ROBIN", .byLocality(.roundRobin)),
      ("lb_policy: LEAST_REQUEST", .byLocality(.leastRequest())),
      (
        "lb_policy: LEAST_REQUEST least_request_lb_config { choice_count { value: 5 } }",
        .byLocality(.leastRequest(choices: 5))
      ),
      ("lb_policy: RING_HASH", .overall(.ringHash(ring))),
      (
        """
        lb_policy: RING_HASH
        ring_hash_lb_config { minimum_ring_size { value: 7 } maximum_ring_size { value: 8 } }
        """,
        .overall(.ringHash(.init(minimumRingSize: 7, maximumRingSize: 8)))
      ),
      // The default of the minimum is not compared.
      (
        "lb_policy: RING_HASH ring_hash_lb_config { maximum_ring_size { value: 6 } }",
        .overall(.ringHash(.init(minimumRingSize: 6, maximumRingSize: 6)))
      ),
      ("lb_policy: MAGLEV load_balancing_policy { \(self.list(self.roundRobin)) }", .overall(.roundRobin)),
    ]
    for (text, policy) in cases { XCTAssertEqual(try self.policy(text), policy, text) }
    for name in ["RANDOM", "MAGLEV", "CLUSTER_PROVIDED", "LOAD_BALANCING_POLICY_CONFIG", "17"] {
      try self.check("lb_policy: \(name)", ["lb_policy: LB policy is not supported"])
    }
    try self.check(
      "lb_policy: RING_HASH ring_hash_lb_config { hash_function: MURMUR_HASH_2 }",
      ["ring_hash_lb_config.hash_function: invalid hash function"]
    )
    try self.check(
      "lb_policy: LEAST_REQUEST least_request_lb_config { choice_count { value: 1 } }",
      ["least_request_lb_config.choice_count: must be at least 2"]
    )
    try self.check(
      "lb_policy: RING_HASH ring_hash_lb_config { minimum_ring_size { value: 8388609 } }",
      [
        "ring_hash_lb_config.minimum_ring_size: value must be in the range [1, 8388608]",
        "ring_hash_lb_config.minimum_ring_size: cannot be greater than maximum_ring_size",
      ]
    )
  }

  // MARK: - Lists

  func testTheFirstThatIsKnown() throws {
    let pickFirst = self.known("pick_first.v3.PickFirst", "shuffle_address_list: true")
    XCTAssertEqual(
      try self.policy(list: self.list(self.unknown, pickFirst, self.roundRobin)),
      .overall(.pickFirst(shuffles: true))
    )
    XCTAssertEqual(
      try self.policy(list: self.list(self.known("pick_first.v3.PickFirst"))),
      .overall(.pickFirst(shuffles: false))
    )
    XCTAssertEqual(
      try self.policy(list: self.list(self.byLocality(self.list(self.unknown, self.roundRobin)))),
      .byLocality(.roundRobin)
    )
  }

  func testListsThatAreRefused() throws {
    let none = ": no supported load balancing policy config found"
    try self.check(list: "", [none])
    try self.check(list: self.list(self.unknown), [none])
    try self.check(
      list: "policies {} \(self.list(self.roundRobin))",
      [".policies[0].typed_extension_config: field not present"]
    )
    try self.check(
      list: "policies { typed_extension_config {} }",
      [".policies[0].typed_extension_config.typed_config: field not present"]
    )
    let locality = self.path("wrr_locality.v3.WrrLocality") + ".endpoint_picking_policy"
    try self.check(list: self.list(self.byLocality(self.list(self.unknown))), ["\(locality)\(none)"])
    try self.check(
      list: self.list(self.known("wrr_locality.v3.WrrLocality")),
      ["\(locality): field not present"]
    )
  }

  /// `wrr_locality` around itself. It is serialized level by level: the library takes a time that doubles with each level.
  private func nested(_ depth: Int) throws -> Google_Protobuf_Any {
    var config = Google_Protobuf_Any()
    config.typeURL = "type.googleapis.com/\(self.prefix).round_robin.v3.RoundRobin"
    for _ in 0..<depth {
      let locality = Envoy_Extensions_LoadBalancingPolicies_WrrLocality_V3_WrrLocality.with {
        $0.endpointPickingPolicy.policies = [.with { $0.typedExtensionConfig.typedConfig = config }]
      }
      config = try ResourceText.onWire(Google_Protobuf_Any(message: locality))
    }
    let cluster = Envoy_Config_Cluster_V3_Cluster.with {
      $0.type = .eds
      $0.edsClusterConfig.edsConfig.ads = Envoy_Config_Core_V3_AggregatedConfigSource()
      $0.loadBalancingPolicy.policies = [.with { $0.typedExtensionConfig.typedConfig = config }]
    }
    return try ResourceText.onWire(Google_Protobuf_Any(message: cluster))
  }

  func testDepth() throws {
    let deepest = ResourceText.decoder.decode(try self.nested(15), as: .cluster)
    guard case .cluster(let cluster) = try deepest.resource.get() else { return XCTFail("no cluster") }
    XCTAssertEqual(cluster.policy, .byLocality(.roundRobin))
    let path = self.path("wrr_locality.v3.WrrLocality") + ".endpoint_picking_policy"
    for depth in [16, 17, 40] {
      let decoded = ResourceText.decoder.decode(try self.nested(depth), as: .cluster)
      XCTAssertThrowsError(try decoded.resource.get()) { error in
        XCTAssertEqual(
          (error as? ResourceProblem)?.problems,
          [
            "load_balancing_policy" + String(repeating: path, count: 16)
              + ": exceeded max recursion depth of 16"
          ]
        )
      }
    }
  }

  func testBytesThatAreNoMessage() throws {
    for (name, problem) in [
      ("pick_first.v3.PickFirst", "PickFirst"), ("ring_hash.v3.RingHash", "RingHash"),
      ("least_request.v3.LeastRequest", "LeastRequest"), ("wrr_locality.v3.WrrLocality", "WrrLocality"),
      ("client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin", "ClientSideWeightedRoundRobin"),
    ] {
      try self.check(
        list: self.list("type_url: 'a/\(self.prefix).\(name)' value: '\\377'"),
        ["\(self.path(name)): could not parse \(problem) LB policy config"]
      )
    }
  }

  // MARK: - Policies

  func testRingHash() throws {
    func ring(_ fields: String) -> String { self.list(self.known("ring_hash.v3.RingHash", fields)) }
    let sizes: [(String, Int, Int)] = [
      ("", 1024, 4096),
      ("hash_function: XX_HASH minimum_ring_size { value: 5 } maximum_ring_size { value: 6 }", 5, 6),
      ("minimum_ring_size { value: 8388608 }", 4096, 4096),
    ]
    for (text, minimum, maximum) in sizes {
      XCTAssertEqual(
        try self.policy(list: ring(text)),
        .overall(.ringHash(.init(minimumRingSize: minimum, maximumRingSize: maximum))),
        text
      )
    }
    let path = self.path("ring_hash.v3.RingHash")
    let range = "value must be in the range [1, 8388608]"
    let cases = [
      ("hash_function: MURMUR_HASH_2", [".hash_function: unsupported value (must be XX_HASH)"]),
      ("hash_function: 17", [".hash_function: unsupported value (must be XX_HASH)"]),
      (
        "maximum_ring_size {}",
        [".maximum_ring_size: \(range)", ".minimum_ring_size: cannot be greater than maximum_ring_size"]
      ),
      ("maximum_ring_size { value: 18446744073709551615 }", [".maximum_ring_size: \(range)"]),
      ("minimum_ring_size {}", [".minimum_ring_size: \(range)"]),
      (
        "maximum_ring_size { value: 1023 }",
        [".minimum_ring_size: cannot be greater than maximum_ring_size"]
      ),
      (
        "minimum_ring_size { value: 3 } maximum_ring_size { value: 2 }",
        [".minimum_ring_size: cannot be greater than maximum_ring_size"]
      ),
    ]
    for (text, problems) in cases { try self.check(list: ring(text), problems.map { path + $0 }) }
  }

  func testLeastRequest() throws {
    let name = "least_request.v3.LeastRequest"
    XCTAssertEqual(try self.policy(list: self.list(self.known(name))), .overall(.leastRequest(choices: 2)))
    XCTAssertEqual(
      try self.policy(list: self.list(self.known(name, "choice_count { value: 7 }"))),
      .overall(.leastRequest(choices: 7))
    )
    try self.check(
      list: self.list(self.known(name, "choice_count { value: 1 }")),
      ["\(self.path(name)).choice_count: must be at least 2"]
    )
  }

  func testWeightedRoundRobin() throws {
    let name = "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin"
    let cases: [(String, BalancingPolicy.WeightedRoundRobin)] = [
      ("", .defaults),
      ("oob_reporting_period { seconds: 3 }", .defaults),
      ("enable_oob_load_report { value: true }", .init(outOfBandPeriod: .seconds(10))),
      (
        """
        enable_oob_load_report { value: true } oob_reporting_period { seconds: 1 } blackout_period { seconds: 2 }
        weight_expiration_period { seconds: 3 } weight_update_period { seconds: 4 }
        error_utilization_penalty { value: 0.5 }
        """,
        .init(
          outOfBandPeriod: .seconds(1),
          blackoutPeriod: .seconds(2),
          expirationPeriod: .seconds(3),
          updatePeriod: .seconds(4),
          errorPenalty: 0.5
        )
      ),
    ]
    for (text, settings) in cases {
      XCTAssertEqual(
        try self.policy(list: self.list(self.known(name, text))),
        .overall(.weightedRoundRobin(settings)),
        text
      )
    }
    for value in ["-1", "nan", "inf"] {
      try self.check(
        list: self.list(self.known(name, "error_utilization_penalty { value: \(value) }")),
        ["\(self.path(name)).error_utilization_penalty: value must be non-negative"]
      )
    }
    for field in [
      "oob_reporting_period", "blackout_period", "weight_expiration_period", "weight_update_period",
    ] {
      try self.check(
        list: self.list(self.known(name, "\(field) { nanos: -1 }")),
        ["\(self.path(name)).\(field).nanos: value must be in the range [0, 999999999]"]
      )
    }
  }

  // MARK: - Policies of service configs

  func testTypedStructs() throws {
    let choices = "fields { key: 'choiceCount' value { number_value: 3 } }"
    for package in ["xds.type.v3", "udpa.type.v1"] {
      let config = ResourceText.typedStruct("least_request_experimental", choices, of: package)
      XCTAssertEqual(try self.policy(list: self.list(config)), .overall(.leastRequest(choices: 3)))
      XCTAssertEqual(
        try self.policy(list: self.list(self.byLocality(self.list(config)))),
        .byLocality(.leastRequest(choices: 3))
      )
    }
    // Without a value, and with the name of a message.
    let empty = ResourceText.any("xds.type.v3.TypedStruct", "type_url: 'a/round_robin'")
    XCTAssertEqual(try self.policy(list: self.list(empty)), .overall(.roundRobin))
    let message = ResourceText.typedStruct("\(self.prefix).round_robin.v3.RoundRobin")
    XCTAssertEqual(
      try self.policy(list: self.list(message, self.known("pick_first.v3.PickFirst"))),
      .overall(.pickFirst(shuffles: false))
    )
    let child = """
      fields { key: 'childPolicy' value { list_value { values { struct_value {
        fields { key: 'round_robin' value { struct_value {} } } } } } } }
      """
    XCTAssertEqual(
      try self.policy(list: self.list(ResourceText.typedStruct("xds_wrr_locality_experimental", child))),
      .byLocality(.roundRobin)
    )
  }

  func testTypedStructsThatAreRefused() throws {
    let path = ".policies[0].typed_extension_config.typed_config.value[xds.type.v3.TypedStruct]"
    let choices = "fields { key: 'choiceCount' value { number_value: 1 } }"
    let place = "loadBalancingConfig[0].least_request_experimental.choiceCount"
    try self.check(
      list: self.list(ResourceText.typedStruct("least_request_experimental", choices)),
      [
        "\(path).value[least_request_experimental]: invalid LB policy config: "
          + "\(place): has to be at least 2, and is 1"
      ]
    )
    let infinite = "fields { key: 'choiceCount' value { number_value: inf } }"
    try self.check(
      list: self.list(ResourceText.typedStruct("least_request_experimental", infinite)),
      ["\(path).value[least_request_experimental]: invalid LB policy config: not a value of JSON"]
    )
    try self.check(
      list: self.list(ResourceText.typedStruct("xds_wrr_locality_experimental")),
      ["\(path).value[xds_wrr_locality_experimental]: \"childPolicy\" is missing"]
    )
    try self.check(
      list: self.list(ResourceText.any("xds.type.v3.TypedStruct")),
      ["\(path).type_url: field not present"]
    )
    try self.check(
      list: self.list("type_url: 'a/xds.type.v3.TypedStruct' value: '\\377'"),
      ["\(path): could not parse"]
    )
  }
}
