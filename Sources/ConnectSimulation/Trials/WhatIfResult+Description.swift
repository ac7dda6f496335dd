extension WhatIfResult: CustomStringConvertible {
  public var description: String {
    var lines = self.table
    lines.append("")
    lines += self.plots
    lines.append("")
    lines += self.spread
    lines += self.qualityTable
    lines.append("")
    if !self.notes.isEmpty {
      lines.append("assumed")
      lines += self.notes.map { "  \($0)" }
    }
    lines.append("not modelled")
    lines += Self.notModelled.map { "  \($0)" }
    let seeds = self.trials.first?.runs.count ?? 1
    lines += [
      "",
      "\(Plot.number(self.seconds)) s of virtual time, \(Plot.number(self.callsPerSecond)) calls/s recorded, seeds \(self.seed) to "
        + "\(self.seed &+ UInt64(max(seeds, 1) - 1))",
    ]
    for trial in self.trials {
      for run in trial.runs {
        lines += run.violations.prefix(3).map { "VIOLATION  \(trial.name), seed \(run.seed): \($0)" }
      }
    }
    return lines.joined(separator: "\n")
  }

  // MARK: The table

  private var table: [String] {
    var rows = [[""] + self.trials.map(\.name)]
    rows.append(
      ["success"] + self.trials.map { $0.runs.contains { $0.calls > 0 } ? Plot.percent($0.successRate) : "-" }
    )
    rows.append(
      ["p50 / p99 of successes"] + self.trials.map { "\(Self.number($0.p50)) / \(Self.number($0.p99)) ms" }
    )
    rows.append(["attempts per call"] + self.trials.map { Self.ratio($0.attemptsPerCall) })
    rows.append(["load, worst second"] + self.trials.map { "\(Plot.number($0.requestsInWorstSecond))/s" })
    let codes = Set(self.trials.flatMap { $0.runs.flatMap(\.failures.keys) })
    rows.append(["failed"] + self.trials.map { Self.share(of: codes, $0) })
    for code in codes.sorted() { rows.append(["  \(code)"] + self.trials.map { Self.share(of: [code], $0) }) }
    return Self.aligned(rows)
  }

  /// The part of a trial's calls that failed with one of these codes.
  private static func share(of codes: Set<String>, _ trial: Trial) -> String {
    let calls = trial.runs.reduce(0) { $0 + $1.calls }
    let failures = trial.runs.reduce(0) { sum, run in
      sum + run.failures.reduce(0) { codes.contains($1.key) ? $0 + $1.value : $0 }
    }
    return failures == 0 ? "-" : Plot.percent(Double(failures) / Double(max(calls, 1)))
  }

  /// How far the seeds are apart.
  private var spread: [String] {
    let seeds = self.trials.first?.runs.count ?? 0
    guard seeds > 1 else { return [] }
    var rows = [["\(seeds) seeds, least - most", "success", "p99 of successes, ms", "attempts per call"]]
    for trial in self.trials {
      rows.append([
        "  \(trial.name)", Self.spread(trial.runs.map(\.successRate), Plot.percent),
        Self.spread(trial.runs.compactMap(\.p99), Plot.number),
        Self.spread(trial.runs.map(\.attemptsPerCall), Self.ratio),
      ])
    }
    return Self.aligned(rows) + [""]
  }

  /// The first column to the left, all others to the right.
  private static func aligned(_ rows: [[String]]) -> [String] {
    var widths: [Int] = []
    for row in rows {
      for (index, cell) in row.enumerated() {
        if index == widths.count { widths.append(0) }
        widths[index] = max(widths[index], cell.count)
      }
    }
    return rows.map { row -> String in
      var cells: [String] = []
      for (index, cell) in row.enumerated() {
        let space = String(repeating: " ", count: widths[index] - cell.count)
        cells.append(index == 0 ? cell + space : space + cell)
      }
      return cells.joined(separator: "   ")
    }
  }

  private static func number(_ value: Double?) -> String { value.map(Plot.number) ?? "-" }

  private static func ratio(_ value: Double) -> String {
    let hundredths = Int((value * 100).rounded())
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
  }

  private static func spread(_ values: [Double], _ text: (Double) -> String) -> String {
    guard let least = values.min(), let most = values.max() else { return "-" }
    let (one, two) = (text(least), text(most))
    return one == two ? one : "\(one) - \(two)"
  }

  // MARK: Plots

  private var plots: [String] {
    let width = self.trials.map(\.name.count).max() ?? 0
    let top = self.trials.flatMap { $0.runs.first?.p99OverTime ?? [] }.compactMap { $0 }.max()
    func lines(_ title: String, _ line: (Figures) -> String) -> [String] {
      [title]
        + self.trials.compactMap { trial in
          trial.runs.first.map { "  \(trial.name.padded(to: width + 2))\(line($0))" }
        }
    }
    return lines("success over time") { Plot.line($0.successOverTime, to: 1) }
      + lines("p99 of successes over time, to \(Self.number(top)) ms") { Plot.line($0.p99OverTime, to: top) }
  }

  // MARK: The fit

  private var qualityTable: [String] {
    guard !self.quality.isEmpty else { return [] }
    func pair(_ one: Double?, _ two: Double?) -> String { "\(Self.number(one)) / \(Self.number(two))" }
    var rows = [["fit: recorded / predicted", "calls", "p50, ms", "p90, ms", "p99, ms", "failed"]]
    for row in self.quality {
      rows.append([
        row.method, Plot.count(row.calls), pair(row.recorded.p50, row.predicted.p50),
        pair(row.recorded.p90, row.predicted.p90), pair(row.recorded.p99, row.predicted.p99),
        "\(Plot.percent(row.recorded.failureRate)) / \(Plot.percent(row.predicted.failureRate))",
      ])
    }
    var lines = Self.aligned(rows)
    if self.mistakes > 0 {
      lines.append("\(Plot.count(self.mistakes)) of the trace's lines could not be used")
    }
    return lines
  }
}
