extension OutlierDetection {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    let defaults = Self.defaults
    let percent = try node.member("maxEjectionPercent")?.percentage()
    self.init(
      interval: try node.member("interval")?.duration() ?? defaults.interval,
      baseEjectionTime: try node.member("baseEjectionTime")?.duration() ?? defaults.baseEjectionTime,
      maximumEjectionTime: try node.member("maxEjectionTime")?.duration() ?? defaults.maximumEjectionTime,
      maximumEjectionPercent: percent ?? defaults.maximumEjectionPercent,
      successRate: nil,
      failurePercentage: nil
    )
    if let rule = try node.member("successRateEjection") { self.successRate = try SuccessRate(rule) }
    if let rule = try node.member("failurePercentageEjection") {
      self.failurePercentage = try FailurePercentage(rule)
    }
  }
}

extension OutlierDetection.SuccessRate {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    self.init()
    // In thousandths.
    if let value = try node.member("stdevFactor")?.count() { self.deviations = Double(value) / 1_000 }
    if let value = try node.member("enforcementPercentage")?.percentage() { self.enforcement = value }
    if let value = try node.member("minimumHosts")?.count() { self.minimumHosts = value }
    if let value = try node.member("requestVolume")?.count() { self.minimumCalls = value }
  }
}

extension OutlierDetection.FailurePercentage {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    self.init()
    if let value = try node.member("threshold")?.percentage() { self.threshold = value }
    if let value = try node.member("enforcementPercentage")?.percentage() { self.enforcement = value }
    if let value = try node.member("minimumHosts")?.count() { self.minimumHosts = value }
    if let value = try node.member("requestVolume")?.count() { self.minimumCalls = value }
  }
}

extension JSONNode {
  /// uint32 of protobuf.
  fileprivate func count() throws(ServiceConfigError) -> Int {
    try self.integer(in: 0...Int(UInt32.max))
  }

  fileprivate func percentage() throws(ServiceConfigError) -> Int {
    try self.integer(in: 0...100)
  }
}
