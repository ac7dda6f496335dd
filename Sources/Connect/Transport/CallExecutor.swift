/// Where a call lives: runs the call's work in order, one piece at a time, and tells the time.
///
/// A transport gives one to each call. For a network transport it is the event loop of the connection that serves the
/// call, so that a call needs no lock. A test's executor runs on one thread in virtual time.
public protocol CallExecutor: AnyObject, Sendable {
  /// Time since some fixed point; never goes back.
  var now: Duration { get }

  /// Whether the caller is already running on this executor: true while it runs its work. Debug builds trap where a
  /// call is touched and this is false.
  var isCurrent: Bool { get }

  /// Runs `work` later, after all earlier work. May be called from any thread.
  func execute(_ work: @escaping @Sendable () -> Void)

  /// Runs `work` once `delay` has passed, unless it is cancelled before. To be called on the executor.
  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer

  /// Where the tasks of calls and of interceptors have to run. If it is nil, the default, async interceptors run where the
  /// caller's task prefers to. Tasks of adapters, retriers and credentials may then run anywhere.
  var taskExecutor: (any TaskExecutor)? { get }
}

extension CallExecutor {
  public var taskExecutor: (any TaskExecutor)? { nil }

  /// Runs `work` at once if the caller is on the executor, else later.
  @inlinable
  public func run(_ work: @escaping @Sendable () -> Void) {
    if self.isCurrent { work() } else { self.execute(work) }
  }

  /// Stops debug builds where the caller is not on the executor.
  @inline(__always)
  func assertIsCurrent() {
    assert(self.isCurrent, "a call was touched outside of its executor, where transports call its streams")
  }
}

/// Work scheduled on a ``CallExecutor``.
public protocol CallTimer: AnyObject, Sendable {
  /// Ensures that the work does not run any more. To be called on the executor.
  func cancel()
}
