internal import Synchronization

/// One visit of a hook, which all copies of its `proceed` share.
///
/// What the hook does before it returns waits here until it has returned. So hooks do not stand on each other's stack, and
/// what was bound around one is not bound around what follows. Once the hook has returned without having proceeded, the visit
/// is armed: nobody can go on with the call when the last copy of `proceed` is released uncalled, and the host is told.
///
/// `@unchecked Sendable`: `host`, `place` and `number` are set while nobody else has the visit. The other variables are
/// touched on the call's executor, which debug builds check, and at the end, when nobody has the visit any more.
package final class Visit: HookTicket, @unchecked Sendable {
  /// Which hook is visited.
  package enum Place {
    case request(Int)
    case result(Int)
    case metrics(MetricsReport)
  }

  private let executor: any CallExecutor
  private var host: (any PipelineHost)?
  private(set) var place: Place
  /// Never used again in the same call.
  private(set) var number: Int
  private var isOnStack = true
  private var isArmed = false
  private var action: HookAction?
  /// Whether one of the copies was called, from any thread.
  private let isUsed = Atomic(false)

  init(_ number: Int, at place: Place, of host: any PipelineHost) {
    self.executor = host.executor
    self.host = host
    self.place = place
    self.number = number
  }

  deinit {
    guard self.isArmed, !self.isUsed.load(ordering: .relaxed), let host = self.host, !host.hasEnded else {
      return
    }
    let (place, number) = (Confined(self.place), self.number)
    // In a task, since a copy may be released while a lock of the event loop is held: for example by `Scheduled.cancel()`,
    // which releases what the scheduled closure has captured. The executor would take the same lock.
    Task.detached { host.executor.execute { host.hookWasDropped(place.value, number) } }
  }

  // MARK: For the pipeline

  /// Prepares a visit that nobody else has for another hook.
  func renew(_ number: Int, at place: Place, of host: any PipelineHost) {
    self.host = host
    self.place = place
    self.number = number
    self.isOnStack = true
    self.isUsed.store(false, ordering: .relaxed)
  }

  /// Nobody else has the visit, and it holds no call until it is renewed.
  func rest() {
    self.host = nil
    self.place = .request(0)
  }

  /// The hook has returned.
  ///
  /// - Parameter waits: Whether the call waits for the hook if it has not proceeded.
  /// - Returns: What it has done; nil if it has not proceeded yet.
  func hookReturned(waits: Bool) -> HookAction? {
    self.isOnStack = false
    guard let action = self.action.take() else {
      self.isArmed = waits
      return nil
    }
    return action
  }

  var canBeRenewed: Bool { !self.isArmed }

  /// Whether a pipeline waits for what the hook does.
  package func isAwaited(in pipeline: Pipeline) -> Bool {
    HookHolders(in: pipeline).holder(of: self.place, self.number) != nil
  }

  /// The report whose metrics the hook was given; nil for other hooks.
  package var metricsReport: MetricsReport? {
    if case .metrics(let report) = self.place { report } else { nil }
  }

  // MARK: HookTicket

  func take(_ action: consuming HookAction) {
    self.isUsed.store(true, ordering: .relaxed)
    guard let host = self.host else { return }
    if self.executor.isCurrent {
      self.accept(action, for: host)
    } else {
      let action = action
      self.executor.execute { self.accept(action, for: host) }
    }
  }

  private func accept(_ action: consuming HookAction, for host: any PipelineHost) {
    if self.isOnStack, self.action == nil {
      self.action = action
    } else if self.isOnStack {
      host.logIgnored("a hook that has proceeded before")
    } else {
      host.hookDid(action, self)
    }
  }

  var isOver: Bool { false }

  var isOnExecutor: Bool { self.executor.isCurrent }

  var taskExecutor: any TaskExecutor { self.host?.environment.taskExecutor ?? globalConcurrentExecutor }

  var retryCause: ConnectError? { self.host?.pipeline.retryCause }
}

/// The visit of a hook that is only told how its call has ended.
final class EndedVisit: HookTicket {
  let taskExecutor: any TaskExecutor

  init(on executor: any TaskExecutor) {
    self.taskExecutor = executor
  }

  func take(_ action: consuming HookAction) {}
  var isOver: Bool { true }
  var isOnExecutor: Bool { true }
  var retryCause: ConnectError? { nil }
}
