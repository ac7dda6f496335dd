extension Proceed {
  /// Where the tasks of an interceptor have to run; nil where any place will do.
  package var requiredTaskExecutor: (any TaskExecutor)? { self.taskExecutor?.unlessOfCalls }
}
