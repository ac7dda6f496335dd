internal import Synchronization

/// What all copies of one `proceed` share: which visit of which hook they are for.
///
/// When the last copy is released and the hook has not proceeded, the owner is told: nobody is left who could go on.
///
/// `@unchecked Sendable`: `owner`, `visit` and `call` change only while nobody else holds the ticket, which
/// ``HookOwner`` checks before it uses one again.
final class ProceedTicket: @unchecked Sendable {
  private(set) var owner: HookOwner?
  private(set) var visit = HookOwner.noVisit
  /// Nil for a `proceed` that was made from a closure.
  private(set) var call: Call?
  /// Whether one of the copies was called, from any thread.
  private let isUsed = Atomic(false)

  /// Set with a `proceed` that was made from a closure.
  private let closureTaskExecutor: (any TaskExecutor)?

  /// For a `proceed` that is made from a closure.
  init(_ owner: HookOwner, taskExecutor: (any TaskExecutor)? = nil) {
    self.owner = owner
    self.closureTaskExecutor = taskExecutor
  }

  init(_ owner: HookOwner, visit: Int, of call: Call) {
    self.owner = owner
    self.visit = visit
    self.call = call
    self.closureTaskExecutor = nil
  }

  /// Where tasks run that belong to the hook.
  var taskExecutor: (any TaskExecutor)? { self.call?.client.taskExecutor ?? self.closureTaskExecutor }

  deinit {
    guard !self.isUsed.load(ordering: .relaxed), let call = self.call, let owner = self.owner else { return }
    let visit = self.visit
    // Later, since this may be anywhere: for example where the hook's own captures are released.
    call.hop { owner.hookWasDropped(visit) }
  }

  /// Makes a ticket that nobody else holds one for another visit.
  func renew(_ owner: HookOwner, visit: Int, of call: Call) {
    self.owner = owner
    self.visit = visit
    self.call = call
    self.isUsed.store(false, ordering: .relaxed)
  }

  /// Releases what the ticket refers to.
  func clear() {
    self.owner = nil
    self.call = nil
  }

  func send<Verb: Sendable>(_ verb: consuming Verb) {
    self.isUsed.store(true, ordering: .relaxed)
    if self.call?.isOnExecutor ?? true {
      self.owner?.hook(self.visit, did: verb)
    } else {
      self.hop(verb)
    }
  }

  private func hop<Verb: Sendable>(_ verb: Verb) {
    self.call?.hop { self.owner?.hook(self.visit, did: verb) }
  }
}
