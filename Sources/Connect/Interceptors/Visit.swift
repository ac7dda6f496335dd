internal import Synchronization

/// One visit of a hook, which all copies of its `proceed` share.
///
/// An action that the hook takes before it returns waits here until the hook has returned. So hooks do not nest on the
/// stack, and values bound around one hook are not bound around the next.
///
/// A hook that returns without having proceeded arms the visit. If the last copy of `proceed` is then released
/// uncalled, nobody can continue the call, and the host is told.
///
/// `@unchecked Sendable`: the variables are touched on the call's executor, which debug builds check in the functions that
/// change them, and in `deinit`, when nobody has the visit any more.
@usableFromInline
final class Visit: @unchecked Sendable {
  /// Which hook is visited.
  enum Place {
    case request(Int)
    case result(Int)
    /// A hook for metrics, with the report that continues with them.
    case metrics(AnyObject)
  }

  private let executor: any CallExecutor
  /// Nil while the visit is at rest, and for hooks that are only told how their call has ended.
  private var host: (any VisitHost)?
  /// Where the tasks of hooks run that are only told how their call has ended; nil for other hooks.
  private let endExecutor: (any TaskExecutor)?
  private(set) var place: Place
  /// Unique within the call.
  private(set) var number: Int
  private(set) var isOnStack = true
  private var isArmed = false
  private var action: HookAction?
  /// Whether a copy was called on another thread, or after the hook had returned.
  private let isUsed = Atomic(false)

  init(_ number: Int, at place: Place, of host: any VisitHost, on executor: any CallExecutor) {
    self.executor = executor
    self.host = host
    self.endExecutor = nil
    self.place = place
    self.number = number
  }

  /// The visit of hooks that are only told how their call has ended.
  init(afterCallOn executor: any CallExecutor, tasksOn taskExecutor: any TaskExecutor) {
    self.executor = executor
    self.host = nil
    self.endExecutor = taskExecutor
    self.place = .result(0)
    self.number = 0
    self.isOnStack = false
  }

  deinit {
    guard self.isArmed, !self.isUsed.load(ordering: .relaxed), let host = self.host, !host.isOver else {
      return
    }
    let executor = self.executor
    let (place, number) = (Confined(self.place, to: executor), self.number)
    // In a task, since a copy may be released while a lock of the event loop is held. For example, `Scheduled.cancel()`
    // releases the captures of the scheduled closure under the lock. The executor would take the same lock.
    Task.detached { executor.execute { host.hookWasDropped(place.value, number) } }
  }

  // MARK: For the pipeline

  /// Prepares the visit for another hook. Nobody else has the visit.
  @inline(__always)
  func renew(_ number: Int, at place: Place, of host: any VisitHost) {
    if self.host == nil { self.host = host }
    self.place = place
    self.number = number
    self.isOnStack = true
    // The hook before may have proceeded twice.
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
  @inline(__always)
  func hookReturned(waits: Bool) -> HookAction? {
    self.isOnStack = false
    if self.action == nil { self.isArmed = waits }
    return self.action.take()
  }

  // MARK: For `proceed`

  /// Takes the action of the hook. Counts once, and only while the visit does.
  @usableFromInline
  func take(_ action: consuming HookAction) {
    if self.executor.isCurrent {
      if self.isOnStack, self.action == nil { self.action = action } else { self.takeLate(action) }
    } else {
      let action = action
      self.isUsed.store(true, ordering: .relaxed)
      if self.host != nil { self.executor.execute { self.takeLate(action) } }
    }
  }

  private func takeLate(_ action: consuming HookAction) {
    self.isUsed.store(true, ordering: .relaxed)
    if self.isOnStack, self.action == nil {
      self.action = action
    } else {
      self.host?.hookDid(action, self)
    }
  }

  /// Whether the call is over, so that no action counts.
  var isOver: Bool { self.endExecutor != nil }
  var isOnExecutor: Bool { self.executor.isCurrent }
  /// Where tasks of hooks run.
  var taskExecutor: any TaskExecutor {
    self.endExecutor ?? self.host?.taskExecutor ?? globalConcurrentExecutor
  }
  /// The error of the attempt that a hook abandoned last.
  var retryCause: ConnectError? { self.host?.retryCause }
}

/// The call that a hook belongs to, as ``Visit`` sees it.
protocol VisitHost: AnyObject, Sendable {
  /// Whether the call is over, for any thread.
  var isOver: Bool { get }
  /// Where tasks of hooks run.
  var taskExecutor: any TaskExecutor { get }
  /// The error of the attempt that a hook abandoned last.
  var retryCause: ConnectError? { get }

  /// Continues the call: a hook has proceeded after it had returned. An action of a hook that has proceeded before, and has
  /// not returned, is ignored.
  func hookDid(_ action: HookAction, _ visit: Visit)
  /// The last copy of a visit's `proceed` was released uncalled.
  func hookWasDropped(_ visit: Visit.Place, _ number: Int)
}
