/// A clock of an executor's own time. Its timers may be set only on the executor, so tasks that sleep on the clock have
/// to run there.
package protocol ExecutorClock: Clock where Duration == Swift.Duration {
  /// Where tasks that sleep on the clock run; nil for anywhere.
  var taskExecutor: (any TaskExecutor)? { get }
}
