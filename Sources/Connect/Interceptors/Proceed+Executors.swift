extension Proceed {
  /// The executor on which the tasks of an interceptor have to run; nil if any executor will do.
  package var requiredTaskExecutor: (any TaskExecutor)? { self.taskExecutor?.unlessOfCalls }
}
