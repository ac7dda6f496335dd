/// Whose hooks they are that proceed. Confined to the call's executor.
///
/// A hook that proceeds before it returns has its value handed on when it has returned. So hooks do not stand on each
/// other's stack, and what was bound around one is not bound around what follows.
class HookOwner<Verb: Sendable>: @unchecked Sendable {
  /// The visit for which a hook is being called right now.
  private var visiting: Int?
  private var verb: Verb?

  /// A hook is going to be called.
  final func begin(_ visit: Int) {
    self.visiting = visit
  }

  /// The hook has returned.
  ///
  /// - Returns: What it has done; nil if it has done nothing yet, or if the visit was ended with ``abandon()``.
  final func end(_ visit: Int) -> Verb? {
    guard self.visiting == visit else { return nil }
    self.visiting = nil
    return self.verb.take()
  }

  /// Nothing that the hook does in the present visit counts any more.
  final func abandon() {
    self.visiting = nil
    self.verb = nil
  }

  final func hook(_ visit: Int, did verb: consuming Verb) {
    if visit != self.visiting {
      self.goOn(visit, with: verb)
    } else if self.verb == nil {
      self.verb = verb
    } else {
      self.goOn(Self.noVisit, with: verb)
    }
  }

  /// The number that no visit has.
  private static var noVisit: Int { -1 }

  /// A hook has proceeded after it had returned. Once more, if the visit is over.
  func goOn(_ visit: Int, with verb: consuming Verb) {}
}

/// Gives what a hook does to a closure.
final class ClosureHookOwner<Verb: Sendable>: HookOwner<Verb>, @unchecked Sendable {
  private let body: @Sendable (Verb) -> Void

  init(_ body: @escaping @Sendable (Verb) -> Void) {
    self.body = body
  }

  override func goOn(_ visit: Int, with verb: consuming Verb) {
    self.body(verb)
  }
}
