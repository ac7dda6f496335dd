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
  }

  private mutating func chooseTree(_ tree: Tree, _ random: inout SeededRandom) {
    let leaves: [BalancingPolicy] = [
      .roundRobin, .roundRobin, .leastRequest(), .weightedRoundRobin(.init(source: .resolver)), .ringHash(),
      .randomSubset(of: .roundRobin, size: 2),
      .outlierDetection(.init(interval: .seconds(2), baseEjectionTime: .seconds(3)), of: .roundRobin),
      .pickFirst,
    ]
    let number = random.index(below: leaves.count)
    let leaf = leaves[number]
    self.isPickFirst = number == 7
    self.isRoundRobin = false
    self.leavesMayEject = number == 6
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
    if random.chance(0.25) {
      self.makeQuiet()
    } else if random.chance(0.5) {
      self.makeClear()
    }
  }

  /// Removes whatever keeps the model from knowing when the client's zone is well again after a trouble.
  private mutating func makeClear() {
    if self.isPickFirst || self.leavesMayEject {
      (self.isPickFirst, self.leavesMayEject) = (false, false)
      if self.tree == .zoneAware { self.balancing = .zoneAware(of: .roundRobin) }
      if self.tree == .priority {
        self.balancing = .priority([
          .init("a", .leastRequest()), .init("b", .pickFirst), .init("c", .roundRobin),
        ])
        // As zone b's policy knows no health checks.
        self.checksHealth = false
      }
    }
    self.isPickFirst = self.isPickFirst || self.tree == .nested
    (self.requestsPerConnection, self.serverConnectionAge, self.maximumConnectionAge) = (nil, nil, nil)
    self.loss = 0
    self.channelIdleTimeout = .seconds(1_800)
    self.duration = .seconds(45)
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
  }

  /// The number of a server tells its parts: its zone, and x or y below zone a.
  func path(of server: Int) -> [String] {
    guard self.tree == .nested else { return [] }
    return [self.zones[server % self.zones.count], server / self.zones.count % 2 == 0 ? "x" : "y"]
  }

  /// Since when all calls have to stay in the client's zone; nil if the model does not know.
  var homeTime: Duration? {
    switch self.tree {
    case .zoneAware, .priority: break
    default: return nil
    }
    guard !self.isPickFirst, !self.leavesMayEject, self.loss == 0, self.requestsPerConnection == nil,
      self.serverConnectionAge == nil, self.maximumConnectionAge == nil,
      self.channelIdleTimeout > .seconds(60), self.troubles.allSatisfy(\.leavesTheZoneHealthy)
    else { return nil }
    let end = self.troubles.map(\.end).max() ?? .zero
    return end + .seconds(10)
  }

  /// The servers of the client's zone.
  var homeServers: Set<Int> { Set((0..<self.servers).filter { $0 % self.zones.count == 0 }) }
}

extension Scenario.Trouble {
  /// When everything is as it was before.
  fileprivate var end: Duration {
    switch self.kind {
    case .crash(_, let length), .freeze(_, let length), .refuse(_, let length), .slow(_, _, let length),
      .fail(_, _, _, let length), .partition(_, let length), .unhealthy(_, let length),
      .crashZone(_, let length), .pause(let length):
      self.time + length
    case .restart(_, let drain, let downtime), .restartZone(_, let drain, let downtime):
      self.time + drain + downtime
    case .goAway, .resolve, .failResolution, .revokeTokens, .configure: self.time
    }
  }

  /// Whether the servers of the client's zone are as good as before some seconds after the trouble's end.
  fileprivate var leavesTheZoneHealthy: Bool {
    if case .resolve = self.kind { false } else { self.isClear }
  }
}
