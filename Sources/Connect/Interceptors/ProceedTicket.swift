internal import Synchronization

/// What all copies of one `proceed` share: which visit of which hook they are for.
///
/// When the last copy is released and the hook has not proceeded, the owner is told: nobody is left who could go on.
///
/// `@unchecked Sendable`: `owner`, `visit` and `call` change only while nobody else holds the ticket, which
/// ``HookOwner`` checks before it uses one again. So access to them cannot overlap either.
final class ProceedTicket: @unchecked Sendable {
  @exclusivity(unchecked) private(set) var owner: HookOwner?
  @exclusivity(unchecked) private(set) var visit = HookOwner.noVisit
  /// Nil for a `proceed` that was made from a closure.
  @exclusivity(unchecked) private(set) var call: Call?
  /// Whether one of the copies was called, from any thread.
  private let isUsed = Atomic(false)

  /// Set with a `proceed` that was made from a closure.
  private let closureTaskExecutor: (any TaskExecutor)?
  /// That of the `proceed` around which this one was made from a closure.
  private let inner: ProceedTicket?

  /// For a `proceed` that is made from a closure.
  ///
  /// - Parameter inner: What it is made around.
  init(_ owner: HookOwner, taskExecutor: (any TaskExecutor)? = nil, around inner: ProceedTicket? = nil) {
    self.owner = owner
    self.closureTaskExecutor = taskExecutor
    self.inner = inner
  }

  init(_ owner: HookOwner, visit: Int, of call: Call) {
    self.owner = owner
    self.visit = visit
    self.call = call
    self.closureTaskExecutor = nil
    self.inner = nil
  }

  /// The call whose hook it is.
  var hookedCall: Call? { self.call ?? self.inner?.hookedCall }

  /// Where tasks run that belong to the hook.
  var taskExecutor: (any TaskExecutor)? { self.hookedCall?.client.taskExecutor ?? self.closureTaskExecutor }

  deinit {
    guard !self.isUsed.load(ordering: .relaxed), let call = self.call, let owner = self.owner,
      owner.waitsForHooks, !call.hasEnded.load(ordering: .relaxed)
    else { return }
    let visit = self.visit
    // This may be anywhere, also under a lock of the event loop that the executor would take: where it drops a task that
    // was cancelled, and with it what the task has captured.
    Task.detached { call.hop { owner.hookWasDropped(visit) } }
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

  @inline(__always)
  func send<Verb: Sendable>(_ verb: consuming Verb) {
    self.isUsed.store(true, ordering: .relaxed)
    if self.call?.isOnExecutor ?? true {
      self.owner?.hook(self.visit, did: verb)
    } else {
      self.hop(verb)
    }
  }

  @inline(never)
  private func hop<Verb: Sendable>(_ verb: Verb) {
    self.call?.hop { self.owner?.hook(self.visit, did: verb) }
  }
}
