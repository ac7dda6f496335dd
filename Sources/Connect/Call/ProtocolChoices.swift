internal import Synchronization

/// The protocols that a client may speak, in the order of its preference, and which of them to speak to each origin.
final class ProtocolChoices: Sendable {
  /// How many origins besides the client's own are remembered.
  private static let maximumOthers = 1000

  /// One for each protocol.
  let environments: [CallEnvironment]
  /// What is remembered of the client's own origin: an index.
  private let remembered = Atomic(0)
  /// The same for the origins that interceptors chose. Those that are missing begin with the preferred protocol.
  private let others = Mutex<[Origin: Int]>([:])

  /// - Parameter environments: At least one. All have the same executor.
  init(_ environments: [CallEnvironment]) {
    self.environments = environments
  }

  /// What calls to the client's own origin begin with.
  var current: CallEnvironment { self.environments[self.remembered.load(ordering: .relaxed)] }

  /// What calls to `origin` begin with.
  func environment(for origin: Origin) -> CallEnvironment {
    if self.isOwn(origin) { return self.current }
    return self.environments[self.others.withLock { $0[origin] ?? 0 }]
  }

  /// The next one, round and round, that is none of `others`; nil if there is none.
  func next(after environment: CallEnvironment, except others: [CallEnvironment]) -> CallEnvironment? {
    let index = self.index(of: environment)
    return (self.environments[(index + 1)...] + self.environments[..<index]).first { next in
      !others.contains { $0 === next }
    }
  }

  /// Lets calls to `origin` begin with a protocol that gets through.
  ///
  /// - Returns: Whether they began with another one.
  func remember(_ environment: CallEnvironment, for origin: Origin) -> Bool {
    self.update(origin) { _ in self.index(of: environment) }
  }

  /// Lets calls to `origin` begin with the next protocol, if they began with this one.
  ///
  /// - Returns: Whether they did.
  func avoid(_ environment: CallEnvironment, for origin: Origin) -> Bool {
    let index = self.index(of: environment)
    let next = (index + 1) % self.environments.count
    return self.update(origin) { $0 == index ? next : $0 }
  }

  private func update(_ origin: Origin, _ change: (Int) -> Int) -> Bool {
    if self.isOwn(origin) {
      // A change at the same time is as good as this one.
      let old = self.remembered.load(ordering: .relaxed)
      let new = change(old)
      return self.remembered.compareExchange(expected: old, desired: new, ordering: .relaxed).exchanged
        && old != new
    }
    return self.others.withLock { others in
      let old = others[origin] ?? 0
      let new = change(old)
      if others[origin] == nil, others.count >= Self.maximumOthers { others.removeAll() }
      others[origin] = new
      return old != new
    }
  }

  private func isOwn(_ origin: Origin) -> Bool { self.environments[0].origin == origin }

  private func index(of environment: CallEnvironment) -> Int {
    self.environments.firstIndex { $0 === environment } ?? 0
  }
}
