internal import Connect

/// One value given to a hook by an ``InterceptorDriver``, and what the hook has done with its `proceed`.
///
/// A visit begins when it is made. Its ``outcome`` waits for the hook; ``verbs`` says what has happened up to now,
/// which may be nothing yet, as for a hook that holds headers back until the first message.
public final class HookVisit<Verb: Sendable>: Sendable {
  let record = HookRecord()
  /// Which hook of which interceptor.
  private let hook: String
  private let time: DriverTime
  /// What has to live as long as the hook may still proceed.
  private let session: any Sendable

  init(_ hook: String, _ time: DriverTime, keeping session: any Sendable) {
    self.hook = hook
    self.time = time
    self.session = session
  }

  /// The verbs that the hook has called `proceed` with so far, in order: one, or none yet, unless the hook makes a mistake.
  ///
  /// A stream's interceptor in its async form may give several values in the place of one: then these are all of
  /// them.
  public var verbs: [Verb] { self.record.state.verbs.compactMap { $0 as? Verb } }

  /// The verb that the hook proceeded with. Waits for the hook, and meanwhile lets virtual time pass as fast as it can.
  ///
  /// - Throws: ``HookMisuse`` if the hook called `proceed` twice, released it without calling it, or did not call it in
  ///   time, or if the value did not reach the hook; see ``InterceptorDriver``.
  public var outcome: Verb {
    get async throws {
      await self.time.pass { !self.record.state.isOpen }
      let state = self.record.state
      if state.misuse == nil, let verb = self.verbs.first { return verb }
      let kind = state.misuse ?? (state.wasRead ? .neverProceeded : .notWaiting)
      throw HookMisuse(kind: kind, hook: self.hook, verbs: state.verbs.map { describe($0) })
    }
  }
}

/// Calls a function when the last reference to it is released.
final class Lifetime: Sendable {
  private let onEnd: @Sendable () -> Void

  init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

  deinit { self.onEnd() }
}

/// A hook that has not called `proceed` exactly once.
public struct HookMisuse: Error, Sendable {
  /// What a hook did wrong, for programs.
  public enum Kind: Sendable, Hashable {
    /// It did not call `proceed` in time, or called it when the call had gone on without it.
    case neverProceeded
    /// It released its `proceed` without calling it: it never will.
    case letGoOfProceed
    /// It called `proceed` more than once. Calls after the first do nothing.
    case proceededTwice
    /// The value did not reach the interceptor, as in a call. For example a response to a request that was not passed on, a
    /// value after the end, or a value that the async form did not read.
    case notWaiting
  }

  /// What the hook did wrong.
  public var kind: Kind
  /// Which hook of which interceptor, for example `AuthInterceptor, unary byte request`.
  public var hook: String
  /// What the hook proceeded with, as text.
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

  /// Waits until `condition` holds, or until virtual time reaches the timeout. If nothing is scheduled, waits until the
  /// patience is over. Then runs what else is due at the same time.
  func pass(until condition: () -> Bool) async {
    let end = (self.executor.now + self.timeout.clamped).clamped
    // The caller checks what has happened.
    try? await self.executor.wait(upTo: self.patience) {
      for _ in 0..<1000 where !condition() {
        guard self.executor.advanceToNext(by: end) else { break }
      }
      return condition() || self.executor.scheduled.first.map { $0 > end } == true
    }
    self.executor.runUntilIdle()
  }
}
