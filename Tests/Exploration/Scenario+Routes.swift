internal import Connect
internal import ConnectChannels
internal import ConnectSimulation
internal import ConnectTesting

/// Clusters, and routes that change in an order that loses no call: what is new comes before calls go there, and what is old
/// goes when no call goes there any more.
extension Scenario {
  /// A state of routes and clusters, and its time.
  struct RoutingStep: Sendable, CustomStringConvertible {
    var time: Duration
    /// The servers of each cluster.
    var clusters: [String: [Int]]
    /// The cluster of most calls, and the one of calls that match, or of a part of the calls.
    var names: (main: String, other: String)
    /// How calls are divided.
    var division: Division

    var description: String {
      let clusters = self.clusters.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
      return "\(self.time): routes to \(self.names.main), and by \(self.division) to \(self.names.other) of "
        + clusters.joined(separator: ", ")
    }

    /// The servers that calls may go to.
    var routed: Set<Int> {
      Set((self.clusters[self.names.main] ?? []) + (self.clusters[self.names.other] ?? []))
    }

    /// The servers that a call with this text may go to.
    func servers(for text: String) -> Set<Int> {
      guard case .header(let suffix) = self.division else { return self.routed }
      return Set(self.clusters[text.hasSuffix(suffix) ? self.names.other : self.names.main] ?? [])
    }
  }

  enum Division: Sendable {
    /// Calls whose text ends so go to the other cluster.
    case header(suffix: String)
    /// Weights of the two clusters.
    case weights(UInt32, UInt32)
    /// A part of the calls goes to the other cluster.
    case fraction(Double)

    /// The part of calls that the other cluster gets; nil if it is no matter of chance.
    var share: Double? {
      switch self {
      case .header: nil
      case .weights(let main, let other): Double(other) / Double(main + other)
      case .fraction(let part): part
      }
    }
  }

  mutating func chooseRoutes(_ random: inout SeededRandom) {
    if random.chance(0.5) { self.makeQuiet() }
    // The servers are those of the clusters.
    self.troubles.removeAll { if case .resolve = $0.kind { true } else { false } }
    self.isRoundRobin = false
    self.balancing = random.element([.roundRobin, .leastRequest(), .zoneAware(of: .roundRobin), .pickFirst])
    self.isPickFirst = self.balancing == .pickFirst
    // Not the same servers, so that it can be seen which cluster a call went to.
    let half = max(self.servers / 2, 1)
    var step = RoutingStep(
      time: .zero,
      clusters: ["v0": Array(0..<half), "v1": Array(half..<self.servers)],
      names: ("v0", "v1"),
      division: random.division(isUnique: self.cacheLifetime == nil)
    )
    self.routing = [step]
    guard random.chance(0.7) else { return }
    var time = Duration.seconds(6)
    for number in 2..<(3 + random.index(below: 4)) {
      let name = "v\(number)"
      func advance() {
        time += random.duration(.zero ... .seconds(3))
        step.time = time
      }
      advance()
      let servers = (0..<self.servers).filter { _ in random.chance(0.4) }
      step.clusters[name] = servers.isEmpty ? [random.index(below: self.servers)] : servers
      self.routing.append(step)
      advance()
      let old = step.names.main
      step.names = random.chance(0.5) ? (step.names.other, name) : (name, step.names.other)
      if random.chance(0.5) { step.division = random.division(isUnique: self.cacheLifetime == nil) }
      self.routing.append(step)
      advance()
      step.clusters[old] = nil
      self.routing.append(step)
    }
    self.routing.removeAll { $0.time > self.duration }
  }

  func scheduleRouting(in cluster: SimulatedCluster, _ service: SimulatedService, _ ledger: Ledger) {
    for step in self.routing {
      let value = step.value(service)
      cluster.at(step.time) {
        // Recorded first, since clients may learn of it at once.
        cluster.at(cluster.clock.now.offset + service.nameDelay) { ledger.routed(step) }
        service.routing = value
      }
    }
  }
}

extension Scenario.RoutingStep {
  fileprivate func value(_ service: SimulatedService) -> Routing {
    let main = Route(to: self.names.main)
    let routes: [Route]
    switch self.division {
    case .header(let suffix):
      routes = [Route(.init(headers: [.init(Caller.header, .suffix(suffix))]), to: self.names.other), main]
    case .weights(let first, let second):
      routes = [
        Route(to: [
          WeightedCluster(name: self.names.main, weight: first),
          WeightedCluster(name: self.names.other, weight: second),
        ])
      ]
    case .fraction(let part): routes = [Route(.init(fraction: part), to: self.names.other), main]
    }
    return Routing(
      routes: routes,
      clusters: self.clusters.mapValues { servers in Cluster(servers.map { service[$0] }) }
    )
  }
}

extension SeededRandom {
  /// - Parameter isUnique: Whether calls have their text in a header.
  fileprivate mutating func division(isUnique: Bool) -> Scenario.Division {
    switch self.index(below: isUnique ? 3 : 2) {
    case 0: .weights(UInt32(self.index(below: 10)), UInt32(1 + self.index(below: 9)))
    case 1: .fraction(self.fraction())
    default: .header(suffix: "\(self.index(below: 10))")
    }
  }
}
