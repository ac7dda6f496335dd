internal import Synchronization

/// What all copies of one `proceed` share, to notice that the last copy is released uncalled.
///
/// Where the value waits for the hook on the stack, the ticket is empty while the hook runs, so that hooks that proceed at
/// once cost little; it is armed when the hook has returned without having proceeded. Where the value is kept anyway, it is
/// armed before. Then nobody can go on with the call when the last copy is released, and the owner is told.
///
/// `@unchecked Sendable`: `visit` is set at most once, on the call's executor, by somebody who holds the ticket. It is read
/// when nobody holds the ticket any more.
final class ProceedTicket: @unchecked Sendable {
  private struct Visit {
    let owner: HookOwner
    let number: Int
    let call: Call
  }

  /// Nil until the ticket is armed.
  @exclusivity(unchecked) private var visit: Visit?
  /// Whether one of the copies was called, from any thread.
  private let isUsed = Atomic(false)

  deinit {
    guard let visit = self.visit, !self.isUsed.load(ordering: .relaxed),
      !visit.call.hasEnded.load(ordering: .relaxed)
    else { return }
    // In a task, since a copy may be released while a lock of the event loop is held: for example by `Scheduled.cancel()`,
    // which releases what the scheduled closure has captured. The executor would take the same lock.
    Task.detached { visit.call.hop { visit.owner.hookWasDropped(visit.number) } }
  }

  func arm(_ owner: HookOwner, visit: Int, of call: Call) {
    self.visit = Visit(owner: owner, number: visit, call: call)
  }

  /// One of the copies was called.
  @inline(__always)
  func use() {
    self.isUsed.store(true, ordering: .relaxed)
  }

  /// Prepares a ticket that was not armed, and that nobody else holds, for another visit.
  @inline(__always)
  func renew() {
    self.isUsed.store(false, ordering: .relaxed)
  }
}
