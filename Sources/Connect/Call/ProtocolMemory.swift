internal import Synchronization

/// Which of its protocols a client speaks to each origin, as an index in the order of its preference. All executors of the
/// client share it.
final class ProtocolMemory: Sendable {
  /// How many origins besides the client's own are remembered.
  private static let maximumOthers = 1000

  /// What is remembered of the client's own origin.
  private let remembered = Atomic(0)
  /// The same for the origins that interceptors chose. A missing origin begins with the preferred protocol.
  private let others = Mutex<[Origin: Int]>([:])

  /// The protocol of the client's own origin.
  var own: Int { self.remembered.load(ordering: .relaxed) }

  /// The protocol of another origin.
  func index(for origin: Origin) -> Int {
    self.others.withLock { $0[origin] ?? 0 }
  }

  /// - Returns: Whether the change has changed anything.
  func updateOwn(_ change: (Int) -> Int) -> Bool {
    // If a concurrent change wins, its result is as good as this one.
    let old = self.own
    let new = change(old)
    return self.remembered.compareExchange(expected: old, desired: new, ordering: .relaxed).exchanged
      && old != new
  }

  /// - Returns: Whether the change has changed anything.
  func update(_ origin: Origin, _ change: (Int) -> Int) -> Bool {
    self.others.withLock { others in
      let old = others[origin] ?? 0
      let new = change(old)
      if others[origin] == nil, others.count >= Self.maximumOthers { others.removeAll() }
      others[origin] = new
      return old != new
    }
  }
}
