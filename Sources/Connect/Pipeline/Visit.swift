internal import Synchronization

/// One visit of a hook, which all copies of its `proceed` share.
///
/// An action that the hook takes before it returns waits here until the hook has returned. So hooks do not nest on the
/// stack, and values bound around one hook are not bound around the next.
///
/// A hook that returns without having proceeded arms the visit. If the last copy of `proceed` is then released
/// uncalled, nobody can continue the call, and the host is told.
///
/// `@unchecked Sendable`: `host`, `place` and `number` are set while nobody else has the visit. The other variables are
/// touched on the call's executor, which debug builds check in the functions that change them, and in `deinit`, when nobody
/// has the visit any more.
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
  /// Unique within the call.
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
    let (place, number) = (Confined(self.place, to: host.executor), self.number)
    // In a task, since a copy may be released while a lock of the event loop is held. For example, `Scheduled.cancel()`
    // releases the captures of the scheduled closure under the lock. The executor would take the same lock.
    Task.detached { host.executor.execute { host.hookWasDropped(place.value, number) } }
  }

  // MARK: For the pipeline

  /// Prepares a visit for another hook. Nobody else has the visit.
  func renew(_ number: Int, at place: Place, of host: any PipelineHost) {
    self.executor.assertIsCurrent()
    self.host = host
    self.place = place
    self.number = number
    self.isOnStack = true
    self.isUsed.store(false, ordering: .relaxed)
  }

  /// Releases the call, until the visit is renewed. Nobody else has the visit.
  func rest() {
    self.host = nil
    self.place = .request(0)
  }

  /// The hook has returned.
  ///
  /// - Parameter waits: Whether the call waits for the hook if it has not proceeded.
  /// - Returns: The hook's action; nil if it has not proceeded yet.
  func hookReturned(waits: Bool) -> HookAction? {
    self.executor.assertIsCurrent()
    self.isOnStack = false
    guard let action = self.action.take() else {
      self.isArmed = waits
      return nil
    }
    return action
  }

  var canBeRenewed: Bool { !self.isArmed }

  /// Whether a pipeline waits for the hook's action.
  package func isAwaited(in pipeline: Pipeline) -> Bool {
    HookHolders(in: pipeline).holder(of: self.place, self.number) != nil
  }

  /// The report whose metrics the hook received; nil for other hooks.
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
    self.executor.assertIsCurrent()
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
