/// How a visit of a hook stands when the hook has returned.
enum HookOutcome {
  /// What the hook has done is to be had from ``HookOwner/takeVerb()``.
  case done
  case waiting
  /// It was ended with ``HookOwner/abandon()``, or another one has begun.
  case abandoned
}

/// Whose hooks they are that proceed. Confined to the call's executor.
///
/// A hook that proceeds before it returns has its value handed on when it has returned. So hooks do not stand on each
/// other's stack, and what was bound around one is not bound around what follows.
class HookOwner<Verb: Sendable>: @unchecked Sendable {
  /// The visit for which a hook is being called right now; ``noVisit`` if none is.
  private var visiting = HookOwner.noVisit
  /// What the hook has done in it. Memory of its own, since an optional would be looked up as a type each time.
  private let slot = UnsafeMutablePointer<Verb>.allocate(capacity: 1)
  private var isSlotFull = false

  deinit {
    self.empty()
    self.slot.deallocate()
  }

  private func empty() {
    guard self.isSlotFull else { return }
    self.isSlotFull = false
    self.slot.deinitialize(count: 1)
  }

  /// A hook is going to be called.
  @inline(__always)
  final func begin(_ visit: Int) {
    self.empty()
    self.visiting = visit
  }

  /// The hook has returned.
  @inline(__always)
  final func end(_ visit: Int) -> HookOutcome {
    guard self.visiting == visit else { return .abandoned }
    self.visiting = Self.noVisit
    return self.isSlotFull ? .done : .waiting
  }

  /// What the hook has done. Only to be called after ``end(_:)`` has said that it is done.
  @inline(__always)
  final func takeVerb() -> Verb {
    self.isSlotFull = false
    return self.slot.move()
  }

  /// Nothing that the hook does in the present visit counts any more.
  final func abandon() {
    self.visiting = Self.noVisit
    self.empty()
  }

  final func hook(_ visit: Int, did verb: consuming Verb) {
    if visit != self.visiting {
      self.goOn(visit, with: verb)
    } else if self.isSlotFull {
      self.goOn(Self.noVisit, with: verb)
    } else {
      self.slot.initialize(to: verb)
      self.isSlotFull = true
    }
  }

  /// The number that no visit has.
  static var noVisit: Int { -1 }

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
