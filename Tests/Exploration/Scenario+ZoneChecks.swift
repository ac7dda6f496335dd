internal import ConnectSimulation

/// Where calls have to go in a tree of policies, or by routes.
extension Scenario {
  func zoneProblems(_ report: SimulationReport, _ ledger: Ledger) -> [String] {
    var problems: [String] = []
    let (home, strayed) = (ledger.homeRequests, ledger.strayedRequests)
    if strayed * 100 > home + strayed {
      problems.append(
        "\(strayed) of \(home + strayed) requests left the client's zone, whose servers were well"
      )
    }
    problems += self.repetitionProblems(report) + self.spillProblems(ledger)
    return problems + self.targetProblems(ledger) + self.chanceProblems(report, ledger)
  }

  /// Checks that have compared enough to fail.
  func zoneChecks(_ ledger: Ledger) -> [String] {
    var checks: [String] = []
    let settled = ledger.settledRequests.values.reduce(0, +)
    let placed = ledger.homeRequests + ledger.strayedRequests >= 20
    if placed, let tree = self.tree { checks.append("home, \(tree)") }
    switch self.zoneSubject {
    case .comeback: if placed { checks.append("comeback") }
    case .repetition: checks.append("repetition")
    case .spill: if settled >= 100 { checks.append("spill") }
    case nil:
      if let tree = self.tree, self.targets(ledger) != nil, settled >= 50 {
        checks.append("targets, \(tree)")
      }
    }
    return checks
  }

  /// No call that may be repeated fails when a zone crashes.
  private func repetitionProblems(_ report: SimulationReport) -> [String] {
    guard self.zoneSubject == .repetition, report.succeeded != report.calls else { return [] }
    let failed = report.calls - report.succeeded
    return ["zone a crashed, and \(failed) of \(report.calls) calls that may be repeated failed"]
  }

  /// While some servers of zone a are down, so many calls leave it as Envoy's rule says.
  private func spillProblems(_ ledger: Ledger) -> [String] {
    guard let own = self.spillShare else { return [] }
    let sum = ledger.settledRequests.values.reduce(0, +)
    guard sum >= 100 else { return [] }
    return self.zones.compactMap { zone in
      let expected = zone == "a" ? own : (1 - own) / 2
      let share = Double(ledger.settledRequests(of: self.servers(in: zone))) / Double(sum)
      guard abs(share - expected) > 0.05 else { return nil }
      return "zone \(zone) got \(share) of \(sum) requests, it is to get \(expected)"
    }
  }

  /// Shares by weight are exact where all servers are there.
  private func targetProblems(_ ledger: Ledger) -> [String] {
    guard let targets = self.targets(ledger) else { return [] }
    let sum = targets.map(\.weight).reduce(0, +)
    let all = targets.map(\.requests).reduce(0, +)
    return targets.compactMap { name, weight, requests in
      let share = Double(all) * Double(weight) / Double(sum)
      guard abs(Double(requests) - share) > max(3, 0.02 * Double(all)) else { return nil }
      return "target \(name) got \(requests) of \(all) requests, its weight is \(weight) of \(sum)"
    }
  }

  /// The parts that share calls by weight, and the requests that these have got since all servers are connected; nil if there
  /// are none, or if other things happen.
  private func targets(_ ledger: Ledger) -> [(name: String, weight: UInt32, requests: Int)]? {
    guard self.countsAreExact else { return nil }
    switch self.tree {
    case .weighted:
      return zip(self.zones, self.treeWeights).map { zone, weight in
        (zone, weight, ledger.settledRequests(of: self.servers(in: zone)))
      }
    case .nested:
      let parts = Dictionary(grouping: self.homeServers) { self.path(of: $0).last ?? "" }
      guard let x = parts["x"], let y = parts["y"] else { return nil }
      return [("x", 1, ledger.settledRequests(of: Set(x))), ("y", 3, ledger.settledRequests(of: Set(y)))]
    default: return nil
    }
  }

  private func servers(in zone: String) -> Set<Int> {
    Set((0..<self.servers).filter { self.zones[$0 % self.zones.count] == zone })
  }

  /// Shares by chance are within six standard deviations.
  private func chanceProblems(_ report: SimulationReport, _ ledger: Ledger) -> [String] {
    guard self.routing.count == 1, let step = self.routing.first, let share = step.division.share,
      self.countsAreExact, self.nameDelay == .zero
    else { return [] }
    let others = Set(step.clusters[step.names.other] ?? [])
    let count = report.servers.indices.filter { others.contains($0) }.map { report.servers[$0].requests }
      .reduce(0, +)
    let requests = Double(report.requests)
    let deviation = (requests * share * (1 - share)).squareRoot()
    guard abs(Double(count) - requests * share) > 6 * deviation + 3 else { return [] }
    return ["cluster \(step.names.other) got \(count) of \(report.requests) requests, its share is \(share)"]
  }
}
