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
  enum Place: Sendable {
    case request(Int)
    case result(Int)
    case metrics
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
  /// Whether the call waits for the hook, which has returned without having proceeded.
  var isArmed = false
  /// Of a metrics hook that has returned without having proceeded: the report that continues then. Nobody else has it, so that
  /// it goes with the last copy of `proceed`.
  var report: AnyObject?
  /// The part of the request that the hook has passed on before it returned. Of this and the next two, at most one is set.
  var sent: RequestPart?
  /// The part of the response that the hook has passed on before it returned.
  private var received: ResultPart?
  /// What else the hook has done before it returned.
  private var otherAction: HookAction?
  /// Whether the hook has proceeded before it returned.
  private var hasActed = false
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
    let (place, number) = (self.place, self.number)
    // In a task, since a copy may be released while a lock of the event loop is held. For example, `Scheduled.cancel()`
    // releases the captures of the scheduled closure under the lock. The executor would take the same lock.
    Task.detached { executor.execute { host.hookWasDropped(place, number) } }
  }

  // MARK: For the pipeline

  /// Prepares the visit for another hook. Nobody else has the visit.
  @inline(__always)
  func renew(_ number: Int, at place: Place, of host: any VisitHost) {
    assert(!self.isArmed && self.sent == nil && self.received == nil && self.otherAction == nil)
    if self.host == nil { self.host = host }
    self.place = place
    self.number = number
    self.isOnStack = true
    self.hasActed = false
    // The hook before may have proceeded twice.
    self.isUsed.store(false, ordering: .relaxed)
  }

  /// Releases the call, until the visit is renewed. Nobody else has the visit.
  func rest() { self.host = nil }

  /// The hook has returned.
  ///
  /// - Returns: Whether the hook has proceeded.
  @inline(__always)
  func hookReturned() -> Bool {
    self.isOnStack = false
    return self.hasActed
  }

  /// The part of the response that the hook has passed on; nil if it has done something else, or has passed on a part of
  /// another kind.
  @inline(__always)
  func takeReceived(ifEnd isEnd: Bool) -> ResultPart? {
    guard let received = self.received, received.isEnd == isEnd else { return nil }
    return self.received.take()
  }

  /// What the hook has done.
  func takeAction() -> HookAction {
    if let part = self.sent.take() { return .send(part) }
    if let result = self.received.take() { return .receive(result) }
    return self.otherAction.take() ?? .drop
  }

  // MARK: For `proceed`

  /// Takes the action of the hook. Counts once, and only while the visit does.
  @usableFromInline
  func take(_ action: consuming HookAction) {
    if self.takesNow { self.otherAction = action } else { self.takeLater(action) }
  }

  /// As ``take(_:)``, for a part of the request that goes on.
  @usableFromInline
  func send(_ part: consuming RequestPart) {
    if self.takesNow { self.sent = part } else { self.takeLater(.send(part)) }
  }

  /// As ``take(_:)``, for a part of the response that goes on.
  @usableFromInline
  func receive(_ result: consuming ResultPart) {
    if self.takesNow { self.received = result } else { self.takeLater(.receive(result)) }
  }

  /// Whether the hook is called, and has not proceeded: then what it does is kept until it has returned.
  private var takesNow: Bool {
    guard self.executor.isCurrent, self.isOnStack, !self.hasActed else { return false }
    self.hasActed = true
    return true
  }

  private func takeLater(_ action: HookAction) {
    self.isUsed.store(true, ordering: .relaxed)
    if self.executor.isCurrent {
      self.host?.hookDid(action, self)
    } else if self.host != nil {
      // The hook may still be called.
      self.executor.execute {
        if self.takesNow { self.otherAction = action } else { self.host?.hookDid(action, self) }
      }
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
