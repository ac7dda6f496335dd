internal import Connect
internal import ConnectChannels

/// The counts of all clusters in use, for limits of calls and for reports. Targets share them.
///
/// `@unchecked Sendable`: touched on the executor of the client alone.
final class StatisticsTable: @unchecked Sendable {
  /// What is counted together (gRFC A32).
  struct Key: Sendable, Hashable, Comparable {
    var cluster: String
    /// The name of the endpoints' resource; empty for clusters without one.
    var service: String

    static func < (a: Key, b: Key) -> Bool { (a.cluster, a.service) < (b.cluster, b.service) }
  }

  private struct Entry {
    var statistics: CallStatistics
    var uses = 0
    var isReported = false
    /// By their texts, which are the zones of endpoints.
    var localities: [String: XDSLocality] = [:]
    /// Those of ``localities`` that have servers now. Calls to the others may still run.
    var current: Set<String> = []
    var lastTake: Duration?
  }

  /// What was counted since the last time.
  struct Counted {
    var key: Key
    var counts: CallStatistics.Counts
    var localities: [String: XDSLocality]
    /// The time since the last time.
    var interval: Duration
  }

  private var entries: [Key: Entry] = [:]
  /// Called when a cluster begins or ends to be reported.
  var onChange: (() -> Void)?

  /// The counts of a cluster. Each call needs a ``release(_:)``.
  func acquire(_ key: Key) -> CallStatistics {
    self.entries[key, default: Entry(statistics: CallStatistics(cluster: key.cluster))].uses += 1
    return self.entries[key]?.statistics ?? CallStatistics(cluster: key.cluster)
  }

  /// The cluster is not used any more. Its last counts are kept for the next report.
  func release(_ key: Key) {
    guard var entry = self.entries[key] else { return }
    entry.uses -= 1
    self.entries[key] = entry.uses > 0 || entry.isReported ? entry : nil
    if entry.uses == 0, entry.isReported { self.onChange?() }
  }

  /// A user of a cluster goes over to another table, with what was counted so far.
  ///
  /// - Returns: The counts there.
  func move(_ key: Key, to other: StatisticsTable) -> CallStatistics {
    guard var entry = self.entries[key],
      other.entries[key].map({ $0.statistics === entry.statistics }) ?? true
    else {
      let statistics = other.acquire(key)
      self.release(key)
      return statistics
    }
    if other.entries[key] == nil {
      var moved = entry
      (moved.uses, moved.isReported) = (0, false)
      other.entries[key] = moved
    }
    other.entries[key]?.uses += 1
    entry.uses -= 1
    self.entries[key] = entry.uses > 0 ? entry : nil
    if entry.uses == 0, entry.isReported { self.onChange?() }
    return entry.statistics
  }

  /// Says what a cluster in use is like.
  func note(_ key: Key, isReported: Bool, localities: some Sequence<XDSLocality>, now: Duration) {
    guard var entry = self.entries[key] else { return }
    // Nobody asks for these counts. Names of zones would pile up in them.
    if !isReported { _ = entry.statistics.take() }
    let isChanged = entry.isReported != isReported
    entry.isReported = isReported
    if isReported {
      entry.lastTake = entry.lastTake ?? now
      entry.current = []
      for locality in localities {
        entry.current.insert(locality.description)
        entry.localities[locality.description] = locality
      }
    }
    self.entries[key] = entry
    if isChanged { self.onChange?() }
  }

  /// The clusters whose loads are reported.
  var reported: [Key] { self.entries.filter(\.value.isReported).keys.sorted() }

  /// Takes the counts of clusters. Those that are not used any more are dropped.
  ///
  /// - Parameter clusters: The names of clusters; nil for all that are reported.
  func take(_ clusters: Set<String>?, now: Duration) -> [Counted] {
    var all: [Counted] = []
    for key in self.reported where clusters?.contains(key.cluster) ?? true {
      guard var entry = self.entries[key] else { continue }
      let counts = entry.statistics.take()
      let interval = now - (entry.lastTake ?? now)
      all.append(Counted(key: key, counts: counts, localities: entry.localities, interval: interval))
      entry.lastTake = now
      entry.localities = entry.localities.filter { zone, _ in
        entry.current.contains(zone) || counts.zones[zone] != nil
      }
      let isIdle = counts.zones.values.allSatisfy { $0.inFlight == 0 }
      self.entries[key] = entry.uses == 0 && isIdle ? nil : entry
    }
    // Nobody asks for these.
    self.entries = self.entries.filter { key, entry in
      entry.uses > 0 || clusters?.contains(key.cluster) ?? true
    }
    return all
  }

  /// Drops what is not used any more and what nobody has asked for.
  func dropUnused() {
    self.entries = self.entries.filter { $0.value.uses > 0 }
  }
}
