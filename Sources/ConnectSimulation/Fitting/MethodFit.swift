internal import Connect

/// The distributions of methods, from what was recorded of them.
struct MethodFit {
  /// With fewer calls, a server's method counts as all servers' method.
  private static let fewest = 50

  private let trace: TrafficTrace
  private let queue: QueueFit
  private let network: Duration

  init(_ trace: TrafficTrace, withoutQueue queue: QueueFit, network: Duration) {
    self.trace = trace
    self.queue = queue
    self.network = network
  }

  /// The methods on all servers but those that differ, the most frequent one first.
  func methods(without servers: Set<String>) -> [FittedService.Method] {
    let total = Double(max(self.trace.total.calls, 1))
    return self.trace.methods.sorted { ($1.value.calls, $0.key) < ($0.value.calls, $1.key) }.map {
      path,
      all in
      self.method(path, self.usual(path, without: servers) ?? all, share: Double(all.calls) / total)
    }
  }

  /// A method on all servers but those that differ; nil if it has few calls there.
  private func usual(_ path: String, without servers: Set<String>) -> TrafficTrace.Tally? {
    guard !servers.isEmpty else { return nil }
    var tally = TrafficTrace.Tally()
    for (place, part) in self.places(of: path) where !servers.contains(place.server) { tally.add(part) }
    return tally.calls >= Self.fewest ? tally : nil
  }

  private func places(of path: String) -> [(TrafficTrace.Place, TrafficTrace.Tally)] {
    self.trace.places.filter { $0.key.method == path }.sorted { $0.key.server < $1.key.server }.map {
      ($0.key, $0.value)
    }
  }

  /// The methods on a server that differs. Where it has few calls of a method, they take as much longer than on all servers as its
  /// other calls.
  func methods(of server: String, in differences: ServerDifferences) -> [FittedService.Method] {
    let factor = differences.factors[server] ?? 1
    let total = Double(max(self.trace.total.calls, 1))
    return self.trace.methods.keys.sorted().compactMap { path in
      let tally = self.trace.places[.init(method: path, server: server)] ?? .init()
      if tally.calls >= Self.fewest {
        return self.method(path, tally, share: Double(tally.calls) / total)
      }
      guard factor != 1, let usual = self.usual(path, without: differences.names) else { return nil }
      return self.method(path, usual, share: Double(tally.calls) / total, times: factor)
    }
  }

  private func method(
    _ path: String,
    _ tally: TrafficTrace.Tally,
    share: Double,
    times factor: Double = 1
  ) -> FittedService.Method {
    // Attempts, not calls, are what servers see.
    let hasAttempts = tally.succeededAttempts.count + tally.failedAttempts.count >= tally.calls
    let succeeded = hasAttempts ? tally.succeededAttempts : tally.succeeded
    let failed = hasAttempts ? tally.failedAttempts : tally.failed
    let failures = hasAttempts ? tally.failedAttemptCodes : tally.failures
    let count = Double(max(succeeded.count + failed.count, 1))
    let failureLatency = self.latency(failed, isQueued: false)
    return FittedService.Method(
      path: path,
      share: share,
      latency: self.latency(succeeded, isQueued: true, times: factor),
      failures: failures.sorted { $0.key.rawValue < $1.key.rawValue }.map { code, number in
        .init(code: code, rate: Double(number) / count, latency: failureLatency)
      }
    )
  }

  private func latency(_ histogram: Histogram, isQueued: Bool, times factor: Double = 1) -> Latency {
    let last = Latency.maximumQuantiles - 1
    let quantiles = histogram.quantiles(last)
    return .empirical(
      quantiles.enumerated().map { index, time in
        let part = Double(index) / Double(last)
        let work = max((isQueued ? self.queue.serviceTime(time, at: part) : time) - self.network, .zero)
        return work.scaled(by: factor)
      }
    )
  }
}

/// The servers that are slower, faster or worse than the others.
struct ServerDifferences {
  /// Fewer calls of a server say little.
  private static let fewest = 100
  private static let ratio = 1.3

  /// By how much the servers that differ take longer than the others.
  private(set) var factors: [String: Double] = [:]
  private(set) var notes: [String] = []

  var names: Set<String> { Set(self.factors.keys) }

  init(_ trace: TrafficTrace, _ servers: [String]) {
    guard servers.count > 1, !trace.hasTooManyPlaces else { return }
    let parts = Dictionary(grouping: trace.places) { $0.key.server }
    let usual = Self.usualTimes(trace)
    let rates = Self.middle(servers.compactMap { trace.servers[$0]?.failureRate }) ?? 0
    for name in servers {
      guard let tally = trace.servers[name], tally.calls >= Self.fewest else { continue }
      var what: [String] = []
      let factor = Self.factor(parts[name] ?? [], usual)
      let differs = factor > Self.ratio || factor < 1 / Self.ratio
      if differs { what.append("takes \(Plot.number(factor)) times as long") }
      if tally.failureRate > 2 * rates + 0.01 {
        what.append("fails \(Plot.percent(tally.failureRate)) of calls (others \(Plot.percent(rates)))")
      }
      guard !what.isEmpty else { continue }
      self.factors[name] = differs ? factor : 1
      if self.notes.count < 10 { self.notes.append("\(name) \(what.joined(separator: ", and "))") }
    }
    // Where most of them differ, none is the exception: each has its own distribution all the same.
  }

  private typealias Place = (key: TrafficTrace.Place, value: TrafficTrace.Tally)

  /// By how much longer a server takes. Method by method: servers may have more calls of one than of another. Several percentiles count,
  /// since a single one jumps where times are of two kinds.
  private static func factor(_ places: [Place], _ usual: [String: Double]) -> Double {
    var (sum, usualSum) = (0.0, 0.0)
    // In order, so that the sums are the same each time.
    for place in places.sorted(by: { $0.key.method < $1.key.method }) {
      guard let time = self.time(place.value), let usualTime = usual[place.key.method] else { continue }
      sum += Double(place.value.calls) * time
      usualSum += Double(place.value.calls) * usualTime
    }
    return usualSum > 0 ? sum / usualSum : 1
  }

  /// The mean of some percentiles in seconds; nil if no call succeeded.
  private static func time(_ tally: TrafficTrace.Tally) -> Double? {
    let times = (1...19).compactMap { tally.percentile(Double($0) / 20)?.seconds }
    return times.isEmpty ? nil : times.reduce(0, +) / Double(times.count)
  }

  /// For each method, the middle one of its servers' times.
  private static func usualTimes(_ trace: TrafficTrace) -> [String: Double] {
    Dictionary(grouping: trace.places) { $0.key.method }.compactMapValues { places in
      self.middle(places.compactMap { self.time($0.value) })
    }
  }

  private static func middle(_ values: [Double]) -> Double? {
    values.isEmpty ? nil : values.sorted()[(values.count - 1) / 2]
  }
}
