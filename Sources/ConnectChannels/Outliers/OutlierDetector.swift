internal import Connect

/// Finds endpoints that fail more than others and keeps calls away from them for a while (gRFC A50). Outcomes and
/// times go in, ejections come out; it knows no clock.
///
/// An ejection is a signal beside the state of the connection, which stays. A channel on several event loops has one
/// detector, to which all of them report their counts.
package struct OutlierDetector: Sendable {
  package enum Change: Sendable, Hashable {
    case ejected(EndpointID)
    case returned(EndpointID)
  }

  private struct Host {
    let id: EndpointID
    var successes = 0
    var failures = 0
    var ejectedAt: Duration?
    /// How many recent ejections count for the length of the next one.
    var multiplier = 0

    var calls: Int { self.successes + self.failures }
  }

  /// What a sweep looks at: the counts of the interval that has ended.
  private struct Candidate {
    let index: Int
    let successRate: Double
  }

  package private(set) var configuration: OutlierDetection
  private var hosts: [Host] = []
  /// The index of the host with each slot, or -1.
  private var indices: [Int32] = []
  package private(set) var ejectedCount = 0
  private var intervalStart: Duration?

  package init(_ configuration: OutlierDetection = .defaults) {
    self.configuration = configuration
  }

  /// How many endpoints may be ejected at the same time.
  package var ejectionLimit: Int {
    max(1, self.hosts.count * min(max(self.configuration.maximumEjectionPercent, 0), 100) / 100)
  }

  /// When to call ``tick(now:random:)``; nil while there is nothing to look at.
  package var nextTick: Duration? {
    guard self.configuration.isActive else { return nil }
    return self.intervalStart.map { $0 + max(self.configuration.interval.clamped, .milliseconds(1)) }
  }

  package func isEjected(_ id: EndpointID) -> Bool {
    self.index(of: id).map { self.hosts[$0].ejectedAt != nil } ?? false
  }

  private func index(of id: EndpointID) -> Int? {
    guard id.slot < self.indices.count else { return nil }
    let index = Int(self.indices[id.slot])
    return index >= 0 && self.hosts[index].id == id ? index : nil
  }

  // MARK: - Events

  /// Sets the endpoints. Those that stay keep their counts. If there are fewer endpoints than before, ejected ones
  /// return, the earliest ejected first, until not too many are ejected.
  ///
  /// - Parameter ids: Each one once.
  package mutating func update(_ ids: [EndpointID], now: Duration) -> [Change] {
    self.hosts = ids.map { id in self.index(of: id).map { self.hosts[$0] } ?? Host(id: id) }
    self.indices = Array(repeating: -1, count: (ids.lazy.map(\.slot).max() ?? -1) + 1)
    for (index, id) in ids.enumerated() { self.indices[id.slot] = Int32(index) }
    self.ejectedCount = self.hosts.reduce(into: 0) { count, host in count += host.ejectedAt == nil ? 0 : 1 }
    if self.intervalStart == nil, self.configuration.isActive { self.intervalStart = now }
    return self.returnSurplus()
  }

  /// Other settings. Without an algorithm all endpoints return.
  package mutating func configure(_ configuration: OutlierDetection, now: Duration) -> [Change] {
    let wasActive = self.configuration.isActive
    self.configuration = configuration
    if configuration.isActive {
      guard !wasActive else { return self.returnSurplus() }
      self.intervalStart = now
      for index in self.hosts.indices { (self.hosts[index].successes, self.hosts[index].failures) = (0, 0) }
      return []
    }
    self.intervalStart = nil
    var changes: [Change] = []
    for index in self.hosts.indices {
      self.hosts[index].multiplier = 0
      if self.hosts[index].ejectedAt != nil { self.letReturn(index, &changes) }
    }
    return changes
  }

  /// Calls of the endpoint have ended.
  package mutating func record(_ id: EndpointID, successes: Int = 0, failures: Int = 0) {
    guard self.configuration.isActive, let index = self.index(of: id) else { return }
    self.hosts[index].successes += successes
    self.hosts[index].failures += failures
  }

  /// The interval is over: ejects outliers, and lets endpoints return whose time is over.
  package mutating func tick(now: Duration, random: inout SeededRandom) -> [Change] {
    guard self.configuration.isActive else { return [] }
    self.intervalStart = now
    var changes: [Change] = []
    if let rule = self.configuration.successRate { self.apply(rule, now: now, &random, &changes) }
    if let rule = self.configuration.failurePercentage { self.apply(rule, now: now, &random, &changes) }
    for index in self.hosts.indices {
      (self.hosts[index].successes, self.hosts[index].failures) = (0, 0)
      if let ejectedAt = self.hosts[index].ejectedAt {
        if now >= ejectedAt + self.ejectionTime(of: index) { self.letReturn(index, &changes) }
      } else if self.hosts[index].multiplier > 0 {
        self.hosts[index].multiplier -= 1
      }
    }
    return changes
  }
}

// MARK: - Rules

extension OutlierDetector {
  private mutating func apply(
    _ rule: OutlierDetection.SuccessRate,
    now: Duration,
    _ random: inout SeededRandom,
    _ changes: inout [Change]
  ) {
    let candidates = self.candidates(minimumCalls: rule.minimumCalls)
    guard !candidates.isEmpty, candidates.count >= rule.minimumHosts else { return }
    let count = Double(candidates.count)
    let mean = candidates.reduce(0) { $0 + $1.successRate } / count
    let variance =
      candidates.reduce(0) { sum, candidate in
        sum + (candidate.successRate - mean) * (candidate.successRate - mean)
      } / count
    // Squares are compared, so that the module needs no C library for a root.
    let limit = rule.deviations * rule.deviations * variance
    for candidate in candidates {
      let shortfall = mean - candidate.successRate
      // Even equal rates may differ from their mean by a rounding error.
      guard shortfall > 1e-9, shortfall * shortfall > limit else { continue }
      self.eject(candidate.index, enforcement: rule.enforcement, now: now, &random, &changes)
    }
  }

  private mutating func apply(
    _ rule: OutlierDetection.FailurePercentage,
    now: Duration,
    _ random: inout SeededRandom,
    _ changes: inout [Change]
  ) {
    let candidates = self.candidates(minimumCalls: rule.minimumCalls)
    guard candidates.count >= rule.minimumHosts else { return }
    for candidate in candidates {
      let host = self.hosts[candidate.index]
      guard host.failures * 100 >= min(max(rule.threshold, 0), 100) * host.calls else { continue }
      self.eject(candidate.index, enforcement: rule.enforcement, now: now, &random, &changes)
    }
  }

  /// The endpoints with enough calls. At an ejected endpoint, only calls that began before the ejection end.
  private func candidates(minimumCalls: Int) -> [Candidate] {
    self.hosts.indices.compactMap { index in
      let host = self.hosts[index]
      guard host.ejectedAt == nil, host.calls >= max(1, minimumCalls) else { return nil }
      return Candidate(index: index, successRate: Double(host.successes) / Double(host.calls))
    }
  }

  private mutating func eject(
    _ index: Int,
    enforcement: Int,
    now: Duration,
    _ random: inout SeededRandom,
    _ changes: inout [Change]
  ) {
    guard self.ejectedCount < self.ejectionLimit, self.hosts[index].ejectedAt == nil,
      random.index(below: 100) < enforcement
    else { return }
    self.hosts[index].ejectedAt = now
    self.hosts[index].multiplier += 1
    self.ejectedCount += 1
    changes.append(.ejected(self.hosts[index].id))
  }

  private func ejectionTime(of index: Int) -> Duration {
    let base = max(self.configuration.baseEjectionTime.clamped, .zero)
    let time = base.scaled(by: Double(self.hosts[index].multiplier))
    return min(time, max(base, self.configuration.maximumEjectionTime.clamped))
  }

  private mutating func letReturn(_ index: Int, _ changes: inout [Change]) {
    self.hosts[index].ejectedAt = nil
    self.ejectedCount -= 1
    changes.append(.returned(self.hosts[index].id))
  }

  private mutating func returnSurplus() -> [Change] {
    guard self.ejectedCount > self.ejectionLimit else { return [] }
    let ejected = self.hosts.indices.filter { self.hosts[$0].ejectedAt != nil }
    let oldest = ejected.sorted { (self.hosts[$0].ejectedAt ?? .zero) < (self.hosts[$1].ejectedAt ?? .zero) }
    var changes: [Change] = []
    for index in oldest.prefix(self.ejectedCount - self.ejectionLimit) { self.letReturn(index, &changes) }
    return changes
  }
}
