internal import ConnectChannels
internal import ConnectSimulation

/// Troubles of the client's zone, and when calls have to be back.
extension Scenario {
  /// Chooses a subject for some of the trees that prefer zone a.
  mutating func narrowTree(_ random: inout SeededRandom) {
    let subjects: [ZoneSubject?]
    switch self.tree {
    case .zoneAware: subjects = [nil, .comeback, .repetition, .spill]
    case .priority: subjects = [nil, .comeback, .repetition]
    default: return
    }
    guard let tree = self.tree, let subject = random.element(subjects) else { return }
    self.zoneSubject = subject
    self.makeQuiet()
    (self.requestsPerConnection, self.serverConnectionAge, self.hasBreaker) = (nil, nil, false)
    // One zone has to carry all calls: without a limit, none of them waits for servers that are busy.
    self.concurrency = nil
    (self.leafIsPickFirst, self.leavesMayEject) = (false, false)
    self.leaf = random.element([.roundRobin, .leastRequest()])
    self.growTree(tree)
    let time = random.duration(.zero ... .milliseconds(100))
    self.roundTripTime = time
    self.roundTrip = .constant(time)
    self.load = .open(perSecond: random.number(8...20))
    switch subject {
    case .comeback:
      self.crashOwnZone(for: .seconds(60) ... .seconds(130), &random)
    case .repetition:
      self.kind = random.element([.unary, .get])
      self.attempts = 2 + random.index(below: 3)
      self.hasBudget = false
      self.crashOwnZone(for: .seconds(1) ... .seconds(30), &random)
    case .spill:
      self.duration = .seconds(60)
      self.servers = 3 * (2 + random.index(below: 4))
      for number in 0..<(1 + random.index(below: self.servers / 3 - 1)) {
        self.troubles.append(Trouble(time: .zero, kind: .crash(3 * number, for: .seconds(120))))
      }
    }
  }

  private mutating func crashOwnZone(for range: ClosedRange<Duration>, _ random: inout SeededRandom) {
    var time = Duration.seconds(8)
    for _ in 0..<(1 + random.index(below: 2)) {
      let length = random.duration(range)
      self.troubles.append(Trouble(time: time, kind: .crashZone("a", for: length)))
      time += length + random.duration(.seconds(2) ... .seconds(20))
    }
    self.duration = time
  }

  /// The part of the calls that has to stay in zone a by Envoy's rule, while some of its servers are down.
  var spillShare: Double? {
    guard self.zoneSubject == .spill else { return nil }
    let all = self.homeServers.count
    return min(1, 1.4 * Double(all - self.troubles.count) / Double(all))
  }

  /// The parts that a server belongs to: its zone, and x or y in it.
  func path(of server: Int) -> [String] {
    guard self.tree == .nested else { return [] }
    return [self.zones[server % self.zones.count], server / self.zones.count % 2 == 0 ? "x" : "y"]
  }

  /// Since when all calls have to stay in the client's zone; nil if the model does not know.
  var homeTime: Duration? {
    switch self.tree {
    case .zoneAware, .priority, .nested: break
    default: return nil
    }
    guard !self.leafIsPickFirst, !self.leavesMayEject, self.loss == 0, self.requestsPerConnection == nil,
      self.serverConnectionAge == nil, self.maximumConnectionAge == nil,
      self.channelIdleTimeout > .seconds(60), self.troubles.allSatisfy(\.leavesTheZoneHealthy)
    else { return nil }
    let own = self.troubles.filter { $0.concerns(self.homeServers) }
    if !own.isEmpty, own.allSatisfy(\.isCrashOfZone), let time = self.roundTripTime {
      // The zone is tried twice a second, whatever the backoff. A connection takes some round trips.
      return (own.map(\.end).max() ?? .zero) + .seconds(1) + self.nameDelay + time * 6
    }
    return (self.troubles.map(\.end).max() ?? .zero) + .seconds(10)
  }

  /// The servers of the client's zone.
  var homeServers: Set<Int> { Set((0..<self.servers).filter { $0 % self.zones.count == 0 }) }

  /// Whether clusters prefer the client's zone, and nothing keeps them from it.
  var routesStayHome: Bool {
    self.tree == .routes && self.balancing.name == "zone_aware" && self.countsAreExact
  }

  /// Whether each call is one request, and nothing happens to servers.
  var countsAreExact: Bool {
    self.needsQuiet && self.troubles.isEmpty && self.requestsPerConnection == nil
      && self.serverConnectionAge == nil
  }
}

extension Scenario.RoutingStep {
  /// Whether a server is as near to the client as possible. Nil if a cluster of the call has no server in the client's zone.
  func isHome(_ server: Int, for text: String, _ home: Set<Int>) -> Bool? {
    let names: [String]
    if case .header(let suffix) = self.division {
      names = [text.hasSuffix(suffix) ? self.names.other : self.names.main]
    } else {
      names = [self.names.main, self.names.other]
    }
    let clusters = names.compactMap { self.clusters[$0] }.filter { $0.contains(server) }
    guard !clusters.isEmpty, clusters.allSatisfy({ !home.isDisjoint(with: $0) }) else { return nil }
    return home.contains(server)
  }
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
  var leavesTheZoneHealthy: Bool {
    if case .resolve = self.kind { false } else { self.isClear }
  }

  fileprivate var isCrashOfZone: Bool {
    if case .crashZone = self.kind { true } else { false }
  }

  /// Whether the trouble may concern some of these servers of zone a.
  fileprivate func concerns(_ servers: Set<Int>) -> Bool {
    switch self.kind {
    case .crash(let server, _), .freeze(let server, _), .refuse(let server, _), .goAway(let server),
      .restart(let server, _, _), .slow(let server, _, _), .fail(let server, _, _, _),
      .unhealthy(let server, _):
      servers.contains(server)
    case .crashZone(let zone, _), .restartZone(let zone, _, _): zone == "a"
    case .partition, .resolve, .failResolution, .pause, .revokeTokens, .configure: true
    }
  }
}
