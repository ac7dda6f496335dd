import XCTest

@testable import ConnectChannels

final class TreePolicyJSONTests: XCTestCase {
  private func policy(_ text: String) throws -> BalancingPolicy? {
    try ServiceConfig(json: "{\"loadBalancingConfig\":[\(text)]}").loadBalancing
  }

  func testPriority() throws {
    let policy = try self.policy(
      """
      {"priority_experimental": {
        "children": {
          "b": {"config": [{"round_robin": {}}], "ignoreReresolutionRequests": true},
          "a": {"config": [{"unknown": {}}, {"least_request_experimental": {"choiceCount": 3}}]},
          "unused": {"config": [{"round_robin": {}}]}
        },
        "priorities": ["a", "b"]
      }}
      """
    )
    XCTAssertEqual(policy, .priority([.init("a", .leastRequest(choices: 3)), .init("b", .roundRobin)]))
  }

  func testWeightedTarget() throws {
    let policy = try self.policy(
      """
      {"weighted_target_experimental": {"targets": {
        "y": {"weight": "99", "childPolicy": [{"pick_first": {}}]},
        "x": {"weight": 1, "childPolicy": [{"ring_hash_experimental": {}}]}
      }}}
      """
    )
    XCTAssertEqual(
      policy,
      .weightedTarget([.init("x", weight: 1, .ringHash()), .init("y", weight: 99, .pickFirst)])
    )
  }

  func testZoneAware() throws {
    XCTAssertEqual(
      try self.policy(
        """
        {"zone_aware_experimental": {
          "childPolicy": [{"round_robin": {}}], "overprovisioningFactor": 200,
          "zoneWeights": {"a": 3, "b": 0, "c": null}, "probePeriod": "2s"
        }}
        """
      ),
      .zoneAware(
        .init(overprovisioning: 2, zoneWeights: ["a": 3, "b": 0], probePeriod: .seconds(2)),
        of: .roundRobin
      )
    )
    XCTAssertEqual(
      try self.policy(#"{"zone_aware_experimental": {"childPolicy": [{"round_robin": {}}]}}"#),
      .zoneAware(of: .roundRobin)
    )
  }

  func testMistakes() {
    let child = #"{"config":[{"round_robin":{}}]}"#
    let target = #""childPolicy":[{"round_robin":{}}]"#
    let table: [(json: String, message: String)] = [
      (
        #"{"priority_experimental":{"children":{},"priorities":["a"]}}"#,
        "loadBalancingConfig[0].priority_experimental.priorities[0]: names \"a\", which is not in "
          + "loadBalancingConfig[0].priority_experimental.children; add it there"
      ),
      (
        #"{"priority_experimental":{"children":{"a":\#(child)},"priorities":["a","a"]}}"#,
        "loadBalancingConfig[0].priority_experimental.priorities[1]: names \"a\" for the second time; "
          + "name each child once"
      ),
      (
        #"{"priority_experimental":{"children":{"a":\#(child)},"priorities":[]}}"#,
        "loadBalancingConfig[0].priority_experimental.priorities: is empty; add the name of a child"
      ),
      (
        #"{"priority_experimental":{"children":{"a":{}},"priorities":["a"]}}"#,
        "loadBalancingConfig[0].priority_experimental.children.a: \"config\" is missing"
      ),
      (
        #"{"weighted_target_experimental":{"targets":{}}}"#,
        "loadBalancingConfig[0].weighted_target_experimental.targets: is empty; add a target"
      ),
      (
        #"{"weighted_target_experimental":{"targets":{"a":{"weight":0,\#(target)}}}}"#,
        "loadBalancingConfig[0].weighted_target_experimental.targets.a.weight: has to be at least 1, and is 0"
      ),
      (
        #"{"weighted_target_experimental":{"targets":{"a":{\#(target)}}}}"#,
        "loadBalancingConfig[0].weighted_target_experimental.targets.a: \"weight\" is missing"
      ),
      (
        #"{"zone_aware_experimental":{}}"#,
        "loadBalancingConfig[0].zone_aware_experimental: \"childPolicy\" is missing"
      ),
      (
        #"{"zone_aware_experimental":{\#(target),"overprovisioningFactor":99}}"#,
        "loadBalancingConfig[0].zone_aware_experimental.overprovisioningFactor: has to be at least 100, and is 99"
      ),
      (
        #"{"zone_aware_experimental":{\#(target),"zoneWeights":{"a":-1}}}"#,
        "loadBalancingConfig[0].zone_aware_experimental.zoneWeights.a: has to be at least 0, and is -1"
      ),
    ]
    for (json, message) in table {
      XCTAssertThrowsError(try self.policy(json), json) { error in
        XCTAssertTrue("\(error)".contains(message), "\(error)")
      }
    }
  }
}
