extension SimulationReport: CustomStringConvertible {
  public var description: String {
    var lines = [
      "\(Plot.number(self.duration)) s of virtual time, seed \(self.seed), trace \(self.trace)",
      "\(Plot.count(self.calls)) calls, \(Plot.count(self.requests)) requests, \(self.servers.count) servers",
      "",
    ]
    lines += self.plots
    lines.append("")
    lines += self.loads
    lines += self.zones
    if !self.failures.isEmpty { lines.append("failures   \(self.failureList)") }
    for violation in self.violations { lines.append("VIOLATION  \(violation)") }
    return lines.joined(separator: "\n")
  }

  private var plots: [String] {
    func row(_ name: String, _ figure: String, _ plot: String) -> String {
      "\(name.padded(to: 11))\(figure.padded(to: 12))\(plot)"
    }
    let requests = self.intervals.map { interval -> Double? in
      let calls = interval.succeeded + interval.failed
      return calls > 0 ? Double(interval.requests) / Double(calls) : nil
    }
    return [
      row(
        "success",
        Plot.percent(self.successRate),
        Plot.line(self.intervals.map(\.successRate), to: 1)
      ),
      row("p50, ms", Self.figure(self.latencies.p50), Plot.line(self.intervals.map(\.p50))),
      row("p99, ms", Self.figure(self.latencies.p99), Plot.line(self.intervals.map(\.p99))),
      row("per call", Plot.number(self.requestsPerCall), Plot.line(requests) + "  requests"),
    ]
  }

  private static func figure(_ value: Double?) -> String { value.map(Plot.number) ?? "-" }

  private var loads: [String] {
    let requests = self.servers.map(\.requests).sorted()
    guard let least = requests.first, let most = requests.last else { return [] }
    let middle = requests[requests.count / 2]
    let queue = self.servers.map(\.longestQueue).max() ?? 0
    return [
      "servers    \(Plot.count(least)) / \(Plot.count(middle)) / \(Plot.count(most)) requests "
        + "(least, median, most), longest queue \(Plot.count(queue))",
      "           \(Plot.line(self.servers.map { Double($0.requests) }))",
    ]
  }

  /// Nothing if all clients and servers are in one zone.
  private var zones: [String] {
    guard self.hasSeveralZones else { return [] }
    let ways = self.traffic.map { way in "\(way.from) to \(way.to) \(Plot.count(way.requests))" }
    var line =
      "zones      \(Plot.percent(self.crossingShare)) of requests crossed: \(ways.joined(separator: ", "))"
    if self.costOfCrossing != 0 { line += "; cost \(Plot.number(self.crossingCost))" }
    return [line]
  }

  var hasSeveralZones: Bool {
    Set(self.traffic.flatMap { [$0.from, $0.to] } + self.servers.map(\.zone)).count > 1
  }

  private var failureList: String {
    let sorted = self.failures.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    return sorted.map { "\($0.key) \(Plot.count($0.value))" }.joined(separator: ", ")
  }
}

extension String {
  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(width - self.count, 1))
  }
}
