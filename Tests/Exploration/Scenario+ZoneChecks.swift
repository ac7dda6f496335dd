internal import ConnectSimulation

/// Where calls have to go in a tree of policies, or by routes.
extension Scenario {
  func zoneProblems(_ report: SimulationReport, _ ledger: Ledger) -> [String] {
    var problems: [String] = []
    let (home, strayed) = (ledger.homeRequests, ledger.strayedRequests)
    if strayed * 100 > home + strayed {
      problems.append("\(strayed) of \(home + strayed) requests left zone a, though its servers were well")
    }
    return problems + self.targetProblems(report, ledger) + self.chanceProblems(report, ledger)
  }

  /// Shares by weight are exact where all servers are there.
  private func targetProblems(_ report: SimulationReport, _ ledger: Ledger) -> [String] {
    guard self.tree == .weighted, self.countsAreExact else { return [] }
    let sum = self.treeWeights.reduce(0, +)
    return zip(self.zones, self.treeWeights).compactMap { zone, weight in
      let share = Double(report.requests) * Double(weight) / Double(sum)
      let count = report.servers.filter { $0.zone == zone }.map(\.requests).reduce(0, +)
      guard abs(Double(count) - share) > Double(ledger.earlyCalls + 3) else { return nil }
      return "zone \(zone) got \(count) of \(report.requests) requests, its weight is \(weight) of \(sum)"
    }
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

  /// Whether each call is one request, and nothing happens to servers.
  private var countsAreExact: Bool {
    self.needsQuiet && self.troubles.isEmpty && self.requestsPerConnection == nil
      && self.serverConnectionAge == nil
  }
}
