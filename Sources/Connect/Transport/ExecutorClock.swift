/// A clock of an executor's own time, whose timers may be set there alone: tasks that sleep on it have to run there.
package protocol ExecutorClock: Clock where Duration == Swift.Duration {
  /// Where tasks that sleep on the clock run; nil for anywhere.
  var taskExecutor: (any TaskExecutor)? { get }
}
