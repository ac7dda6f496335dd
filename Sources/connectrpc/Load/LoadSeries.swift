import Connect

/// The course of a load, second by second.
struct LoadSeries {
  struct Point {
    var time: Duration
    var rate: Double
    var median: Duration
    var p99: Duration
    var failures: Int
  }

  /// So many points are kept; then each two become one.
  private static let maximumCount = 600

  private(set) var points: [Point] = []
  private(set) var total = LoadResults()

  mutating func add(_ results: LoadResults, at time: Duration, over period: Duration) {
    self.total.add(results)
    let seconds = max(period / .seconds(1), 1e-9)
    self.points.append(
      Point(
        time: time,
        rate: Double(results.count) / seconds,
        median: results.latency(at: 50),
        p99: results.latency(at: 99),
        failures: results.count - (results.codes[.ok] ?? 0)
      )
    )
    if self.points.count > Self.maximumCount { self.halve() }
  }

  /// What came after the last whole second. It is no point of its own, unless there is no other: its rate would say nothing.
  mutating func addRest(_ results: LoadResults, at time: Duration) {
    if self.points.isEmpty { self.add(results, at: time, over: time) } else { self.total.add(results) }
  }

  /// Two neighbours become one, with the mean of the rates and the larger latencies.
  private mutating func halve() {
    self.points = stride(from: 0, to: self.points.count, by: 2).map { index in
      guard index + 1 < self.points.count else { return self.points[index] }
      let (first, second) = (self.points[index], self.points[index + 1])
      return Point(
        time: second.time,
        rate: (first.rate + second.rate) / 2,
        median: max(first.median, second.median),
        p99: max(first.p99, second.p99),
        failures: first.failures + second.failures
      )
    }
  }
}
