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
      rows.append(row(method.path, tally) { $0 == method.path })
    }
    return rows
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
