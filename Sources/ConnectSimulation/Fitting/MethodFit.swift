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
      var tally = TrafficTrace.Tally()
      if !servers.isEmpty {
        for (place, part) in self.places(of: path) where !servers.contains(place.server) { tally.add(part) }
      }
      let isEnough = tally.calls >= Self.fewest
      return self.method(path, isEnough ? tally : all, share: Double(all.calls) / total)
    }
  }

  private func places(of path: String) -> [(TrafficTrace.Place, TrafficTrace.Tally)] {
    self.trace.places.filter { $0.key.method == path }.sorted { $0.key.server < $1.key.server }.map {
      ($0.key, $0.value)
    }
  }

  /// The methods on a server that differs, as far as there are enough calls.
  func methods(of server: String) -> [FittedService.Method] {
    let total = Double(max(self.trace.total.calls, 1))
    return self.trace.methods.keys.sorted().compactMap { path in
      guard let tally = self.trace.places[.init(method: path, server: server)], tally.calls >= Self.fewest
      else {
        return nil
      }
      return self.method(path, tally, share: Double(tally.calls) / total)
    }
  }

  private func method(_ path: String, _ tally: TrafficTrace.Tally, share: Double) -> FittedService.Method {
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
      latency: self.latency(succeeded, isQueued: true),
      failures: failures.sorted { $0.key.rawValue < $1.key.rawValue }.map { code, number in
        .init(code: code, rate: Double(number) / count, latency: failureLatency)
      }
    )
  }

  private func latency(_ histogram: Histogram, isQueued: Bool) -> Latency {
    let last = Latency.maximumQuantiles - 1
    let quantiles = histogram.quantiles(last)
    return .empirical(
      quantiles.enumerated().map { index, time in
        let part = Double(index) / Double(last)
        return max((isQueued ? self.queue.serviceTime(time, at: part) : time) - self.network, .zero)
      }
    )
  }
}

/// The servers that are slower, faster or worse than the others.
struct ServerDifferences {
  /// Fewer calls of a server say little.
  private static let fewest = 100
  private static let ratio = 1.3

  private(set) var names: Set<String> = []
  private(set) var notes: [String] = []

  init(_ trace: TrafficTrace, _ servers: [String]) {
    guard servers.count > 1, !trace.hasTooManyPlaces else { return }
    let medians = Self.middle(servers.compactMap { trace.servers[$0]?.percentile(0.5)?.seconds })
    let tails = Self.middle(servers.compactMap { trace.servers[$0]?.percentile(0.9)?.seconds })
    let rates = Self.middle(servers.compactMap { trace.servers[$0]?.failureRate }) ?? 0
    for name in servers {
      guard let tally = trace.servers[name], tally.calls >= Self.fewest else { continue }
      var what: [String] = []
      if let medians, let tails, let median = tally.percentile(0.5)?.seconds,
        let tail = tally.percentile(0.9)?.seconds
      {
        let factors = [median / max(medians, 1e-6), tail / max(tails, 1e-6)]
        if let factor = factors.first(where: { $0 > Self.ratio || $0 < 1 / Self.ratio }) {
          what.append("takes \(Plot.number(factor)) times as long")
        }
      }
      if tally.failureRate > 2 * rates + 0.01 {
        what.append("fails \(Plot.percent(tally.failureRate)) of calls (others \(Plot.percent(rates)))")
      }
      guard !what.isEmpty else { continue }
      self.names.insert(name)
      if self.notes.count < 10 { self.notes.append("\(name) \(what.joined(separator: ", and "))") }
    }
    // Where most of them differ, none is the exception: each has its own distribution all the same.
  }

  private static func middle(_ values: [Double]) -> Double? {
    values.isEmpty ? nil : values.sorted()[(values.count - 1) / 2]
  }
}
