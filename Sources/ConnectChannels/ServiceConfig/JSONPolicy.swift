internal import Connect

/// The policies of a service config, by their names there.
package enum JSONPolicy {
  package static let names = [
    "pick_first", "round_robin", "least_request_experimental", "weighted_round_robin",
    "ring_hash_experimental", "outlier_detection_experimental", "random_subsetting_experimental",
    "priority_experimental", "weighted_target_experimental", "zone_aware_experimental",
  ]

  static func policy(
    _ name: String,
    _ node: JSONNode
  ) throws(ServiceConfigError) -> BalancingPolicy {
    _ = try node.members()
    switch name {
    case "pick_first": return .pickFirst(shuffles: try node.member("shuffleAddressList")?.bool() ?? false)
    case "least_request_experimental":
      return .leastRequest(choices: try node.member("choiceCount")?.integer(in: 2...Int(UInt32.max)) ?? 2)
    case "weighted_round_robin": return .weightedRoundRobin(try BalancingPolicy.WeightedRoundRobin(node))
    case "ring_hash_experimental": return .ringHash(try BalancingPolicy.RingHash(node))
    case "outlier_detection_experimental":
      return .outlierDetection(try OutlierDetection(node), of: try self.child(node))
    case "random_subsetting_experimental":
      let size = try node.required("subsetSize").integer(in: 1...Int(UInt32.max))
      return .randomSubset(of: try self.child(node), size: size)
    case "priority_experimental": return .priority(try self.priorities(node))
    case "weighted_target_experimental": return .weightedTarget(try self.targets(node))
    case "zone_aware_experimental":
      return .zoneAware(try BalancingPolicy.ZoneAware(node), of: try self.child(node))
    default: return .roundRobin
    }
  }

  static func child(_ node: JSONNode) throws(ServiceConfigError) -> BalancingPolicy {
    try BalancingPolicy(list: node.required("childPolicy"))
  }

  private static func priorities(_ node: JSONNode) throws(ServiceConfigError) -> [BalancingPolicy.Child] {
    let children = try node.required("children")
    let list = try node.required("priorities")
    var priorities: [BalancingPolicy.Child] = []
    for element in try list.elements() {
      let name = try element.string()
      guard let child = try children.member(name) else {
        throw element.error("names \"\(name)\", which is not in \(children.path); add it there")
      }
      guard !priorities.contains(where: { $0.name == name }) else {
        throw element.error("names \"\(name)\" for the second time; name each child once")
      }
      // There is no server that could be asked too often, since resolvers have a minimum interval.
      _ = try child.member("ignoreReresolutionRequests")?.bool()
      priorities.append(.init(name, try BalancingPolicy(list: child.required("config"))))
    }
    guard !priorities.isEmpty else { throw list.error("is empty; add the name of a child") }
    return priorities
  }

  private static func targets(_ node: JSONNode) throws(ServiceConfigError) -> [BalancingPolicy.WeightedChild]
  {
    let targets = try node.required("targets")
    var list: [BalancingPolicy.WeightedChild] = []
    // In the order of the names: the order of an object's members says nothing.
    for name in try targets.members().map(\.name).sorted() {
      guard let target = try targets.member(name) else { continue }
      let weight = try target.required("weight").integer(in: 1...Int(UInt32.max))
      list.append(.init(name, weight: UInt32(clamping: weight), try self.child(target)))
    }
    guard !list.isEmpty else { throw targets.error("is empty; add a target") }
    return list
  }
}

extension BalancingPolicy.ZoneAware {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    let percent = try node.member("overprovisioningFactor")?.integer(in: 100...Int(UInt32.max))
    let zones = try node.member("zoneWeights")
    var weights: [String: UInt32] = [:]
    for member in try zones?.members() ?? [] {
      guard let weight = try zones?.member(member.name)?.integer(in: 0...Int(UInt32.max)) else { continue }
      weights[member.name] = UInt32(clamping: weight)
    }
    self.init(
      overprovisioning: percent.map { Double($0) / 100 } ?? Self.defaults.overprovisioning,
      zoneWeights: weights,
      probePeriod: try node.member("probePeriod")?.duration() ?? Self.defaults.probePeriod
    )
  }
}
