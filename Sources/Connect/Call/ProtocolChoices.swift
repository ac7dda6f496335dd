/// The protocols that a client may speak on one of its executors, in the order of its preference. Also knows which of
/// them to speak to each origin.
final class ProtocolChoices: Sendable {
  /// One for each protocol.
  let environments: [CallEnvironment]
  private let memory: ProtocolMemory

  /// - Parameter environments: At least one. All have the same executor.
  init(_ environments: [CallEnvironment], _ memory: ProtocolMemory) {
    self.environments = environments
    self.memory = memory
  }

  /// The same choices, which share what is known of origins, with another codec.
  func using(_ codec: any Codec) -> ProtocolChoices {
    ProtocolChoices(self.environments.map { CallEnvironment($0, using: codec) }, self.memory)
  }

  /// What calls to the client's own origin begin with.
  var current: CallEnvironment { self.environments[self.clamped(self.memory.own)] }

  /// What calls to `origin` begin with.
  func environment(for origin: Origin) -> CallEnvironment {
    if self.isOwn(origin) { return self.current }
    return self.environments[self.clamped(self.memory.index(for: origin))]
  }

  /// The next environment, in cyclic order, that is not one of `others`; nil if there is none.
  func next(after environment: CallEnvironment, except others: [CallEnvironment]) -> CallEnvironment? {
    let index = self.index(of: environment)
    return (self.environments[(index + 1)...] + self.environments[..<index]).first { next in
      !others.contains { $0 === next }
    }
  }

  /// Lets calls to `origin` begin with this protocol, which gets through.
  ///
  /// - Returns: Whether calls began with another protocol before.
  func remember(_ environment: CallEnvironment, for origin: Origin) -> Bool {
    self.update(origin) { _ in self.index(of: environment) }
  }

  /// Lets calls to `origin` begin with the next protocol, if they began with this one.
  ///
  /// - Returns: Whether calls began with this protocol before.
  func avoid(_ environment: CallEnvironment, for origin: Origin) -> Bool {
    let index = self.index(of: environment)
    let next = (index + 1) % self.environments.count
    return self.update(origin) { $0 == index ? next : $0 }
  }

  private func update(_ origin: Origin, _ change: (Int) -> Int) -> Bool {
    self.isOwn(origin) ? self.memory.updateOwn(change) : self.memory.update(origin, change)
  }

  /// A transport may allow fewer protocols on one executor than on another.
  private func clamped(_ index: Int) -> Int { min(index, self.environments.count - 1) }

  private func isOwn(_ origin: Origin) -> Bool { self.environments[0].origin == origin }

  private func index(of environment: CallEnvironment) -> Int {
    self.environments.firstIndex { $0 === environment } ?? 0
  }
}
