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

  /// How many points are kept; with more, each two become one.
  private static let maximumCount = 600

  /// A rate over less time says little.
  private static let shortestPeriod = Duration.milliseconds(500)

  private(set) var points: [Point] = []
  /// What the last point is made of.
  private var last = (results: LoadResults(), period: Duration.zero)
  private(set) var total = LoadResults()

  mutating func add(_ results: LoadResults, at time: Duration, over period: Duration) {
    self.total.add(results)
    self.append(results, at: time, over: period)
    if self.points.count > Self.maximumCount { self.halve() }
  }

  private mutating func append(_ results: LoadResults, at time: Duration, over period: Duration) {
    self.last = (results, period)
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
  }

  /// Adds the results after the last point. If they took little time, they are merged into the last point.
  mutating func addRest(_ results: LoadResults, at time: Duration) {
    let period = time - (self.points.last?.time ?? .zero)
    guard period < Self.shortestPeriod, !self.points.isEmpty else {
      self.add(results, at: time, over: period)
      return
    }
    self.total.add(results)
    self.points.removeLast()
    var merged = self.last.results
    merged.add(results)
    self.append(merged, at: time, over: self.last.period + period)
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
