/// Whose hooks they are that proceed. Confined to the call's executor.
///
/// A hook that proceeds before it returns has its value handed on when it has returned. So hooks do not stand on each
/// other's stack, and what was bound around one is not bound around what follows.
///
/// Its variables are read and written at once, never for longer, so that exclusive access need not be enforced.
class HookOwner: @unchecked Sendable {
  /// The visit for which a hook is being called right now; ``noVisit`` if none is.
  @exclusivity(unchecked) private var visiting = HookOwner.noVisit
  /// Where what the hook does in it goes: memory for one verb.
  @exclusivity(unchecked) private var slot: UnsafeMutableRawPointer?
  @exclusivity(unchecked) private var isSlotFull = false

  /// Calls a hook.
  ///
  /// - Parameters:
  ///   - visit: Its number.
  ///   - call: Kept alive by the `proceed` that the hook is given.
  ///   - hook: Calls it with a `proceed` of that number.
  ///   - did: Called if it has proceeded before it has returned. Not called if the visit was abandoned meanwhile, by
  ///     ``abandon()`` or because another one has begun.
  ///   - waits: Called if it has returned and not proceeded.
  /// - Returns: What `did` has returned, or nil.
  @inline(__always)
  final func visit<Verb: Sendable, Result>(
    _ visit: Int,
    of call: Call,
    _ hook: (Proceed<Verb>) -> Void,
    did: (consuming Verb) -> Result?,
    waits: () -> Void
  ) -> Result? {
    withUnsafeTemporaryAllocation(of: Verb.self, capacity: 1) { memory in
      var proceed = Proceed<Verb>(self, visit: visit, of: call, call.takeTicket())
      // A visit around this one, which is abandoned now, may have a full slot.
      let wasSlotFull = self.isSlotFull
      self.visiting = visit
      self.slot = UnsafeMutableRawPointer(memory.baseAddress)
      self.isSlotFull = false
      hook(proceed)
      let isSlotFull = self.isSlotFull
      self.isSlotFull = wasSlotFull
      guard self.visiting == visit else {
        if isSlotFull { memory.deinitializeElement(at: 0) }
        return nil
      }
      self.visiting = Self.noVisit
      guard isSlotFull else {
        if self.waitsForHooks { proceed.arm() }
        waits()
        return nil
      }
      if let ticket = proceed.takeTicket() { call.spareTicket = ticket }
      return did(memory.moveElement(from: 0))
    }
  }

  /// Nothing that the hook does in the present visit counts any more.
  final func abandon() {
    self.visiting = Self.noVisit
  }

  /// - Parameter verb: Of the type that the visit was begun with.
  final func hook<Verb: Sendable>(_ visit: Int, did verb: consuming Verb) {
    if visit == self.visiting, !self.isSlotFull, let slot = self.slot {
      slot.initializeMemory(as: Verb.self, to: verb)
      self.isSlotFull = true
    } else {
      let visit = visit == self.visiting ? Self.noVisit : visit
      withUnsafePointer(to: verb) { self.goOn(visit, with: UnsafeRawPointer($0)) }
    }
  }

  /// The number that no visit has.
  static var noVisit: Int { -1 }

  /// A hook has proceeded after it had returned. Once more, if the visit is over.
  ///
  /// - Parameter verb: What it does, of the type that the visit was begun with. To be copied.
  func goOn(_ visit: Int, with verb: UnsafeRawPointer) {}

  /// Whether the call waits for its hooks, so that one which lets go of `proceed` ends it.
  var waitsForHooks: Bool { true }

  /// The last `proceed` of a visit is gone, and was not called. Called on the executor, maybe after the visit is over.
  func hookWasDropped(_ visit: Int) {}

  /// The call of the `proceed` around which one was made from a closure.
  var wrappedCall: Call? { nil }

  /// Where tasks of a `proceed` run that was made from a closure; nil for the concurrency pool.
  var taskExecutor: (any TaskExecutor)? { nil }
}

/// Gives what a hook does to a closure.
final class ClosureHookOwner<Verb: Sendable>: HookOwner, @unchecked Sendable {
  private let body: @Sendable (Verb) -> Void
  private let call: Call?
  private let executor: (any TaskExecutor)?

  init(
    wrapping call: Call? = nil,
    on executor: (any TaskExecutor)? = nil,
    _ body: @escaping @Sendable (Verb) -> Void
  ) {
    self.body = body
    self.call = call
    self.executor = executor
  }

  override var wrappedCall: Call? { self.call }

  override var taskExecutor: (any TaskExecutor)? { self.executor }

  override func goOn(_ visit: Int, with verb: UnsafeRawPointer) {
    self.body(verb.assumingMemoryBound(to: Verb.self).pointee)
  }
}
