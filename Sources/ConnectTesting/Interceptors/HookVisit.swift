internal import Connect
internal import Synchronization

/// One value given to a hook by an ``InterceptorDriver``, and what the hook has done with its `proceed`.
///
/// A visit begins when it is made. Its ``outcome`` waits for the hook; ``verbs`` says what has happened up to now,
/// which may be nothing yet, as for a hook that holds headers back until the first message.
public final class HookVisit<Verb: Sendable>: Sendable {
  private struct State {
    var verbs: [Verb] = []
    var misuse: HookMisuse.Kind?
  }

  /// Which hook of which interceptor.
  private let hook: String
  private let time: DriverTime
  /// What has to live as long as the hook may still proceed.
  private let lifetime: Lifetime?
  private let state = Mutex(State())

  init(_ hook: String, _ time: DriverTime, keeping lifetime: Lifetime? = nil) {
    self.hook = hook
    self.time = time
    self.lifetime = lifetime
  }

  /// What the hook has called `proceed` with so far, in order: one verb, or none yet, unless it makes a mistake.
  ///
  /// A stream's interceptor in its async form may give several values in the place of one: then these are all of
  /// them.
  public var verbs: [Verb] { self.state.withLock { $0.verbs } }

  /// What the hook proceeded with. Waits for it, and lets virtual time pass as fast as it can meanwhile.
  ///
  /// - Throws: ``HookMisuse`` if the hook called `proceed` twice, let go of it without calling it, or did not call
  ///   it in time; see ``InterceptorDriver``.
  public var outcome: Verb {
    get async throws {
      await self.time.pass { !self.verbs.isEmpty || self.state.withLock { $0.misuse } != nil }
      let state = self.state.withLock { $0 }
      if let kind = state.misuse { throw self.misuse(kind, state.verbs) }
      guard let verb = state.verbs.first else { throw self.misuse(.neverProceeded, []) }
      return verb
    }
  }

  private func misuse(_ kind: HookMisuse.Kind, _ verbs: [Verb]) -> HookMisuse {
    HookMisuse(kind: kind, hook: self.hook, verbs: verbs.map { describe($0) })
  }

  // MARK: For drivers

  var isOpen: Bool { self.state.withLock { $0.verbs.isEmpty && $0.misuse == nil } }

  /// The `proceed` for the hook. When the last copy of it is gone uncalled, the visit knows that the hook never will.
  func makeProceed() -> Proceed<Verb> {
    let lifetime = Lifetime { self.report(.letGoOfProceed) }
    return Proceed(on: self.time.executor) { verb in
      withExtendedLifetime(lifetime) {}
      self.state.withLock { state in
        state.verbs.append(verb)
        if state.verbs.count > 1 { state.misuse = .proceededTwice }
      }
    }
  }

  /// Notes what an interceptor in its async form did, which is no call of `proceed`.
  func add(_ verb: Verb) {
    self.state.withLock { $0.verbs.append(verb) }
  }

  func report(_ kind: HookMisuse.Kind) {
    self.state.withLock { state in
      if state.verbs.isEmpty, state.misuse == nil { state.misuse = kind }
    }
  }
}

/// Does something when the last reference to it is gone.
final class Lifetime: Sendable {
  private let onEnd: @Sendable () -> Void

  init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

  deinit { self.onEnd() }
}

/// A hook that has not called `proceed` exactly once.
public struct HookMisuse: Error, Sendable {
  public enum Kind: Sendable, Hashable {
    /// It holds on to its `proceed` and did not call it in the time that it had.
    case neverProceeded
    /// It let go of its `proceed` without calling it: it never will.
    case letGoOfProceed
    case proceededTwice
    /// The interceptor, in its async form, was given a value that it did not wait for: a response while no `next` was
    /// pending, or anything when it had returned.
    case notWaiting
  }

  public var kind: Kind
  /// Which hook of which interceptor, for example `AuthInterceptor, unary byte request`.
  public var hook: String
  /// What it proceeded with, as text.
  public var verbs: [String]
}

extension HookMisuse: CustomStringConvertible {
  public var description: String {
    let what =
      switch self.kind {
      case .neverProceeded: "did not call proceed in time"
      case .letGoOfProceed: "let go of proceed without calling it"
      case .proceededTwice: "called proceed more than once"
      case .notWaiting: "was given a value that it did not wait for"
      }
    return (["\(self.hook): \(what)"] + self.verbs).joined(separator: "\n  with ")
  }
}

/// How the visits of one driver wait.
struct DriverTime: Sendable {
  let executor: VirtualExecutor
  let timeout: Duration
  let patience: Duration

  /// Waits until `condition` holds, or until virtual time reaches the timeout, or for as long as the patience lasts if
  /// nothing is scheduled. Then what is left to do at the same time is done.
  func pass(until condition: () -> Bool) async {
    let end = (self.executor.now + self.timeout.clamped).clamped
    // What came of it, the caller sees for itself.
    try? await self.executor.wait(upTo: self.patience) {
      for _ in 0..<1000 where !condition() {
        guard self.executor.advanceToNext(by: end) else { break }
      }
      return condition() || self.executor.scheduled.first.map { $0 > end } == true
    }
    self.executor.runUntilIdle()
  }
}
