internal import Connect
internal import Synchronization

/// What has become of one value for a hook. Shared by the call that drives the hook and the test's ``HookVisit``, which
/// knows the type of the verbs.
final class HookRecord: Sendable {
  struct State {
    var verbs: [any Sendable] = []
    var misuse: HookMisuse.Kind?
    /// Whether the interceptor got the value.
    var wasRead = false

    /// Whether nothing has become of the value.
    var isOpen: Bool { self.verbs.isEmpty && self.misuse == nil }
  }

  private let content = Mutex(State())

  var state: State { self.content.withLock { $0 } }

  /// The interceptor has got the value.
  func read() {
    self.content.withLock { $0.wasRead = true }
  }

  /// Notes what an interceptor in its async form did. It may give several values in the place of one.
  func add(_ verb: any Sendable) {
    self.content.withLock { $0.verbs.append(verb) }
  }

  /// Notes what a hook called `proceed` with, which it may do once.
  ///
  /// - Parameter effect: What the call has made of it; nil if the call has ignored it.
  func proceed(_ verb: any Sendable, effect: (any Sendable)?) {
    self.content.withLock { state in
      if !state.verbs.isEmpty {
        state.verbs.append(verb)
        state.misuse = .proceededTwice
      } else if let effect {
        state.verbs = [effect]
      } else {
        state.misuse = .neverProceeded
      }
    }
  }

  /// Notes that the value leads to nothing.
  ///
  /// - Returns: False if something has become of it before.
  @discardableResult
  func report(_ kind: HookMisuse.Kind) -> Bool {
    self.content.withLock { state in
      guard state.isOpen else { return false }
      state.misuse = kind
      return true
    }
  }
}
