internal import Connect

/// Compares what was recorded with what the fitted service does under the recorded load.
enum FitQuality {
  static func make(_ service: FittedService, _ runs: [TrialRun]) -> [WhatIfResult.Quality] {
    func predicted(_ isPart: (String) -> Bool) -> WhatIfResult.Quality.Values {
      var (histogram, failed) = (Histogram(), 0)
      for run in runs {
        for (path, method) in run.methods where isPart(path) {
          histogram.add(method.succeeded)
          failed += method.failures.values.reduce(0, +)
        }
      }
      return self.values(histogram, failed: failed)
    }
    func row(_ name: String, _ tally: TrafficTrace.Tally, _ isPart: (String) -> Bool) -> WhatIfResult.Quality
    {
      let failed = tally.failures.values.reduce(0, +)
      return .init(
        method: name,
        calls: tally.calls,
        recorded: self.values(tally.succeeded, failed: failed),
        predicted: predicted(isPart)
      )
    }
    let trace = service.trace
    var rows = [row("all", trace.total) { _ in true }]
    for method in service.methods.prefix(5) {
      guard let tally = trace.methods[method.path] else { continue }
      rows.append(row(method.path, tally) { $0 == method.simulatedPath })
    }
    return rows
  }

  /// With fewer calls, chance is as large as what is looked for.
  private static let fewest = 200
  private static let fewestForTail = 2_000
  private static let ratio = 1.3

  /// Where the simulation does not do what was recorded, and trials of few calls, in words.
  static func doubts(_ rows: [WhatIfResult.Quality], trialCalls: Int) -> [String] {
    var doubts: [String] = []
    if trialCalls < self.fewest {
      doubts.append(
        "WARNING: a trial has only \(Plot.count(trialCalls)) calls, which says little: give a longer time, more seeds, or more load"
      )
    }
    for row in rows where row.calls >= self.fewest {
      let part = row.calls * trialCalls / max(rows[0].calls, 1)
      guard part >= self.fewest else { continue }
      let (recorded, predicted) = (row.recorded, row.predicted)
      var pairs = [("p50", recorded.p50, predicted.p50), ("p90", recorded.p90, predicted.p90)]
      if min(row.calls, part) >= self.fewestForTail { pairs.append(("p99", recorded.p99, predicted.p99)) }
      let wrong = pairs.compactMap { name, one, two -> String? in
        guard let one, let two, one > 0, two > 0, max(one / two, two / one) > self.ratio else { return nil }
        return "\(name) was \(Plot.number(one)) ms and is \(Plot.number(two)) ms"
      }
      guard !wrong.isEmpty else { continue }
      doubts.append(
        "WARNING: the fit of \(row.method) is bad: \(wrong.joined(separator: ", ")); trust what differs between columns, at most"
      )
    }
    return doubts
  }

  private static func values(_ histogram: Histogram, failed: Int) -> WhatIfResult.Quality.Values {
    func milliseconds(_ part: Double) -> Double? {
      histogram.percentile(part).map { ($0.seconds * 1e6).rounded() / 1e3 }
    }
    let calls = histogram.count + failed
    return .init(
      p50: milliseconds(0.5),
      p90: milliseconds(0.9),
      p99: milliseconds(0.99),
      failureRate: calls > 0 ? Double(failed) / Double(calls) : 0
    )
  }
}
