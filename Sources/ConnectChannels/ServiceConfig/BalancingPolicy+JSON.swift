internal import Connect

extension BalancingPolicy {
  /// The first policy of a list that is known here. The ones behind it are not looked at.
  init(list: JSONNode) throws(ServiceConfigError) {
    var unknown: [String] = []
    for element in try list.elements() {
      let members = try element.members()
      guard members.count == 1, let name = members.first?.name else {
        throw element.error("has to have exactly one policy, and has \(members.count)")
      }
      guard JSONPolicy.names.contains(name) else {
        unknown.append(name)
        continue
      }
      self = try JSONPolicy.policy(name, JSONNode(members[0].value, path: "\(element.path).\(name)"))
      return
    }
    let found = unknown.isEmpty ? "is empty" : "has only \(unknown.joined(separator: ", "))"
    throw list.error(
      "no policy is known here: the list \(found); add one of \(JSONPolicy.names.joined(separator: ", "))"
    )
  }

  /// The deprecated field `loadBalancingPolicy`.
  init(deprecatedName node: JSONNode) throws(ServiceConfigError) {
    switch try node.string().lowercased() {
    case "pick_first", "", "unspecified": self = .pickFirst
    case "round_robin": self = .roundRobin
    default:
      throw node.error("has to be \"pick_first\" or \"round_robin\"; for others use \"loadBalancingConfig\"")
    }
  }
}

extension BalancingPolicy.WeightedRoundRobin {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    let defaults = Self.defaults
    let period = try node.member("oobReportingPeriod")?.duration() ?? .seconds(10)
    let usesOutOfBandReports = try node.member("enableOobLoadReport")?.bool() ?? false
    let penalty = try node.member("errorUtilizationPenalty")
    self.init(
      outOfBandPeriod: usesOutOfBandReports ? period : nil,
      blackoutPeriod: try node.member("blackoutPeriod")?.duration() ?? defaults.blackoutPeriod,
      expirationPeriod: try node.member("weightExpirationPeriod")?.duration() ?? defaults.expirationPeriod,
      updatePeriod: try node.member("weightUpdatePeriod")?.duration() ?? defaults.updatePeriod,
      errorPenalty: try penalty?.nonNegativeNumber() ?? defaults.errorPenalty
    )
  }
}

extension BalancingPolicy.RingHash {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    let sizes = 1...Self.largestRing
    let minimum = try node.member("minRingSize")?.integer(in: sizes) ?? Self.defaults.minimumRingSize
    let maximum = try node.member("maxRingSize")?.integer(in: sizes) ?? Self.defaults.maximumRingSize
    guard minimum <= maximum else {
      throw node.error(
        "\"minRingSize\" (\(minimum)) is greater than \"maxRingSize\" (\(maximum)); set both"
      )
    }
    self.init(minimumRingSize: minimum, maximumRingSize: maximum)
    guard let header = try node.member("requestHashHeader") else { return }
    let name = try header.string().lowercased()
    if name.isEmpty { return }
    guard name.utf8.allSatisfy(Self.isNameCharacter), !name.hasSuffix("-bin") else {
      throw header.error(
        "has to be the name of a header with text, and is \"\(name)\"; names with -bin are binary"
      )
    }
    self.key = .header(name)
  }

  /// Whether the byte may be in a header's name in gRPC's metadata.
  private static func isNameCharacter(_ byte: UInt8) -> Bool {
    PercentEncoding.isUnreserved(byte) && byte != UInt8(ascii: "~")
  }
}
