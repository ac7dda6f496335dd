/// Two reports side by side, such as those of two policies on one seed.
///
/// ```swift
/// print(SimulationComparison(first, second, named: ("no budget", "a budget")))
/// ```
public struct SimulationComparison: Sendable, CustomStringConvertible {
  /// What the two runs are called in the description.
  public let names: (String, String)
  /// The reports of the two runs.
  public let reports: (SimulationReport, SimulationReport)

  /// A comparison of two reports, `A` and `B` unless they are named.
  public init(
    _ first: SimulationReport,
    _ second: SimulationReport,
    named names: (String, String) = ("A", "B")
  ) {
    self.reports = (first, second)
    self.names = names
  }

  public var description: String {
    let (a, b) = self.reports
    var lines: [String] = []
    if a.seed != b.seed { lines.append("The seeds differ (\(a.seed), \(b.seed)): so does chance.") }
    lines.append(self.row("", self.names.0, self.names.1, ""))
    lines.append(
      self.row(
        "success",
        Plot.percent(a.successRate),
        Plot.percent(b.successRate),
        String(signed: (b.successRate - a.successRate) * 100) + " points"
      )
    )
    lines.append(self.row("p50, ms", a.latencies.p50, b.latencies.p50))
    lines.append(self.row("p99, ms", a.latencies.p99, b.latencies.p99))
    lines.append(self.row("maximum, ms", a.latencies.maximum, b.latencies.maximum))
    lines.append(self.row("calls", Double(a.calls), Double(b.calls)))
    lines.append(self.row("requests", Double(a.requests), Double(b.requests)))
    lines.append(self.row("per call", a.requestsPerCall, b.requestsPerCall))
    if a.hasSeveralZones || b.hasSeveralZones {
      lines.append(
        self.row(
          "to other zones",
          Plot.percent(a.crossingShare),
          Plot.percent(b.crossingShare),
          String(signed: (b.crossingShare - a.crossingShare) * 100) + " points"
        )
      )
      if a.costOfCrossing != 0 || b.costOfCrossing != 0 {
        lines.append(self.row("cost of crossing", a.crossingCost, b.crossingCost))
      }
    }
    for code in Set(a.failures.keys).union(b.failures.keys).sorted() {
      lines.append(self.row(code, Double(a.failures[code] ?? 0), Double(b.failures[code] ?? 0)))
    }
    lines.append("")
    let plots = [a, b].map { Plot.line($0.intervals.map(\.successRate), to: 1) }
    if plots[0] == plots[1] {
      lines += ["success, both", "  " + plots[0]]
    } else {
      for (name, plot) in zip([self.names.0, self.names.1], plots) {
        lines += ["success, \(name)", "  " + plot]
      }
    }
    return lines.joined(separator: "\n")
  }

  private func row(_ name: String, _ first: Double?, _ second: Double?) -> String {
    var change = ""
    if let first, let second {
      change = first == second ? "same" : first > 0 ? "x \(Plot.number(second / first))" : ""
    }
    return self.row(name, first.map(Plot.number) ?? "-", second.map(Plot.number) ?? "-", change)
  }

  private func row(_ name: String, _ first: String, _ second: String, _ change: String) -> String {
    let width = max(self.names.0.count, self.names.1.count, 12) + 2
    let line = name.padded(to: 22) + first.padded(to: width) + second.padded(to: width) + change
    return String(line.reversed().drop { $0 == " " }.reversed())
  }
}

extension String {
  fileprivate init(signed value: Double) {
    self = (value < 0 ? "-" : "+") + Plot.number((value.magnitude * 100).rounded() / 100)
  }
}
