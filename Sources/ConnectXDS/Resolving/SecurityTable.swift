internal import Synchronization

/// The TLS of clusters by name, for connections on all threads.
///
/// A cluster stays in the table as long as its target is watched, also if no route leads to it any more: calls that still run may
/// need new connections, which must not fall back to cleartext.
final class SecurityTable: Sendable {
  private struct Entry {
    var security: ClusterSecurity?
    var targets: Set<ListenerName>
  }

  private let entries = Mutex<[String: Entry]>([:])

  func set(_ security: ClusterSecurity?, of cluster: String, for target: ListenerName) {
    self.entries.withLock { entries in
      entries[cluster, default: Entry(security: nil, targets: [])].targets.insert(target)
      entries[cluster]?.security = security
    }
  }

  func remove(_ target: ListenerName) {
    self.entries.withLock { entries in
      for name in entries.keys {
        entries[name]?.targets.remove(target)
        if entries[name]?.targets.isEmpty == true { entries[name] = nil }
      }
    }
  }

  /// Nil if the cluster has none, or is not known.
  func security(of cluster: String) -> ClusterSecurity? {
    self.entries.withLock { $0[cluster]?.security }
  }
}
