internal import Synchronization

/// The TLS of clusters by name, for connections on all threads.
///
/// A cluster stays in the table also if no route leads to it any more: calls that still run may need new connections, which must
/// not fall back to cleartext. Of such clusters the last ones are known. Once one was forgotten, a cluster that is not known gets no
/// connection: ``ClusterSecurity/refusing``.
final class SecurityTable: Sendable {
  private struct Entry {
    var security: ClusterSecurity?
    /// How many targets lead to it now.
    var uses = 0
  }

  private struct State {
    var entries: [String: Entry] = [:]
    /// Where targets lead now.
    var targets: [ListenerName: Set<String>] = [:]
    /// The clusters to which no target leads any more, in the order in which that came about.
    var retired: [String] = []
    var hasForgotten = false
  }

  private let state = Mutex(State())
  /// How many clusters are kept to which no target leads any more. A control plane may change names for ever.
  private let maximumRetired: Int

  init(maximumRetired: Int = 1_000) {
    self.maximumRetired = maximumRetired
  }

  /// Says what all the clusters of a target have.
  func set(_ clusters: [String: ClusterSecurity?], for target: ListenerName) {
    self.state.withLock { state in
      let old = state.targets.updateValue(Set(clusters.keys), forKey: target) ?? []
      for (name, security) in clusters {
        var entry = state.entries[name] ?? Entry()
        entry.security = security
        if !old.contains(name) {
          if entry.uses == 0 { state.retired.removeAll { $0 == name } }
          entry.uses += 1
        }
        state.entries[name] = entry
      }
      for name in old.subtracting(clusters.keys).sorted() {
        state.entries[name]?.uses -= 1
        if state.entries[name]?.uses == 0 { state.retired.append(name) }
      }
      let excess = state.retired.count - self.maximumRetired
      guard excess > 0 else { return }
      for name in state.retired.prefix(excess) { state.entries[name] = nil }
      state.retired.removeFirst(excess)
      state.hasForgotten = true
    }
  }

  /// The target is not watched any more.
  func remove(_ target: ListenerName) {
    self.state.withLock { state in
      for name in state.targets.removeValue(forKey: target) ?? [] {
        state.entries[name]?.uses -= 1
        if state.entries[name]?.uses == 0 { state.entries[name] = nil }
      }
      if state.targets.isEmpty { state = State() }
    }
  }

  /// Nil if the cluster has none, or is not known.
  func security(of cluster: String) -> ClusterSecurity? {
    self.state.withLock { state in
      if let entry = state.entries[cluster] { return entry.security }
      return state.hasForgotten ? .refusing : nil
    }
  }
}

extension ClusterSecurity {
  /// Trusts no server: the bootstrap has no provider without a name.
  static let refusing = ClusterSecurity(roots: "")
}
