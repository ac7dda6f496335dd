internal import Connect
internal import ConnectChannels
internal import ConnectSimulation

/// Servers in the zones a, b and c, a client in a, and a tree of policies or routes.
extension Scenario {
  /// What is above the policies that choose servers.
  enum Tree: String, Sendable, CaseIterable {
    /// The client's own zone first.
    case zoneAware
    /// Zone a, then b, then c.
    case priority
    /// The zones by ``treeWeights``.
    case weighted
    /// Priorities, of which the first has two targets, and the second prefers its own zone.
    case nested
    /// No tree, but clusters, and routes that change.
    case routes
  }

  /// What the model can check better where fewer things happen.
  enum ZoneSubject: String, Sendable {
    /// Zone a is away for so long that the backoff grows. Calls are back within a second.
    case comeback
    /// Zone a crashes. Calls that may be repeated do not fail.
    case repetition
    /// Some servers of zone a are down from the beginning.
    case spill
  }

  /// Chosen by its own random numbers, so that the other choices of a seed stay.
  mutating func chooseZones() {
    var random = SeededRandom(seed: self.seed &* 0xd6e8_feb8_6659_fd93 &+ 3)
    guard random.chance(0.3) else { return }
    let tree = random.element(Tree.allCases)
    self.tree = tree
    self.zones = ["a", "b", "c"]
    self.servers = max(self.servers, 3 + random.index(below: 7))
    self.duration = max(self.duration, .seconds(30))
    self.treeWeights = (0..<3).map { _ in UInt32(1 + random.index(below: 9)) }
    if tree == .routes {
      self.chooseRoutes(&random)
    } else {
      self.chooseTree(tree, &random)
    }
    // A whole zone dies and comes back, or goes away in order.
    while random.chance(0.4) {
      let time = self.duration.scaled(by: random.number(0...0.6))
      let length = random.duration(.milliseconds(100) ... .seconds(15))
      let zone = random.element(["a", "a", "b", "c"])
      let kind: Trouble.Kind =
        random.chance(0.6)
        ? .crashZone(zone, for: length)
        : .restartZone(zone, drain: random.duration(.zero ... .seconds(2)), downtime: length)
      if !self.needsQuiet { self.troubles.append(Trouble(time: time, kind: kind)) }
    }
    self.troubles.sort { $0.time < $1.time }
    self.narrowTree(&random)
    // Long enough for calls after the last trouble.
    if self.zoneSubject != .spill, let since = self.homeTime {
      self.duration = max(self.duration, since + .seconds(15))
    }
  }

  private mutating func chooseTree(_ tree: Tree, _ random: inout SeededRandom) {
    let leaves: [BalancingPolicy] = [
      .roundRobin, .roundRobin, .leastRequest(), .weightedRoundRobin(.init(source: .resolver)), .ringHash(),
      .randomSubset(of: .roundRobin, size: 2),
      .outlierDetection(.init(interval: .seconds(2), baseEjectionTime: .seconds(3)), of: .roundRobin),
      .pickFirst,
    ]
    let number = random.index(below: leaves.count)
    self.leaf = leaves[number]
    self.leafIsPickFirst = number == 7
    self.isRoundRobin = false
    self.leavesMayEject = number == 6
    self.growTree(tree)
    if random.chance(0.25) {
      self.makeQuiet()
    } else if random.chance(0.5) {
      self.makeClear()
    }
  }

  /// Puts the tree above the leaves.
  mutating func growTree(_ tree: Tree) {
    let leaf = self.leaf
    self.isPickFirst = self.leafIsPickFirst
    switch tree {
    case .zoneAware, .routes: self.balancing = .zoneAware(of: leaf)
    case .priority:
      self.balancing = .priority([.init("a", leaf), .init("b", .roundRobin), .init("c", leaf)])
    case .weighted:
      let targets = zip(self.zones, self.treeWeights)
      self.balancing = .weightedTarget(targets.map { .init($0, weight: $1, leaf) })
    case .nested:
      // As zone c's policy knows no health checks.
      self.isPickFirst = true
      self.balancing = .priority([
        .init("a", .weightedTarget([.init("x", weight: 1, leaf), .init("y", weight: 3, .leastRequest())])),
        .init("b", .zoneAware(of: leaf)),
        .init("c", .pickFirst),
      ])
    }
  }

  /// The tree, for people.
  var treeText: String {
    switch self.tree {
    case nil: "\(self.balancing)"
    case .routes: "routes to clusters with \(self.balancing)"
    case .zoneAware: "zone_aware(\(self.leaf))"
    case .priority: "priority(a: \(self.leaf), b: round_robin, c: \(self.leaf))"
    case .weighted:
      "weighted_target("
        + zip(self.zones, self.treeWeights).map { "\($0): \($1) x \(self.leaf)" }.joined(separator: ", ")
        + ")"
    case .nested:
      "priority(a: weighted_target(x: 1 x \(self.leaf), y: 3 x least_request), b: zone_aware(\(self.leaf)), "
        + "c: pick_first)"
    }
  }

  /// Removes whatever keeps the model from knowing when the client's zone is well again after a trouble.
  private mutating func makeClear() {
    if self.leafIsPickFirst || self.leavesMayEject {
      (self.leafIsPickFirst, self.leavesMayEject) = (false, false)
      self.leaf = .roundRobin
      if let tree = self.tree { self.growTree(tree) }
    }
    (self.requestsPerConnection, self.serverConnectionAge, self.maximumConnectionAge) = (nil, nil, nil)
    self.loss = 0
    self.channelIdleTimeout = .seconds(1_800)
    self.troubles.removeAll { !$0.leavesTheZoneHealthy }
  }

  /// Removes whatever keeps the model from counting where calls go.
  mutating func makeQuiet() {
    self.needsQuiet = true
    self.troubles = []
    (self.timeout, self.queueLimit, self.timeLimit, self.callBound) = (nil, nil, nil, nil)
    (self.waitForReady, self.cancellations) = (false, 0)
    (self.attempts, self.hedges, self.cacheLifetime, self.tokenLifetime) = (nil, nil, nil, nil)
    (self.maximumConnectionAge, self.serviceConfig) = (nil, nil)
    self.channelIdleTimeout = .seconds(1_800)
    self.loss = 0
    // A call that was refused a hundred times fails. With one request on a connection, that may happen by itself.
    if self.requestsPerConnection == 1 { self.requestsPerConnection = 2 }
  }
}
