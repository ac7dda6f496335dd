/// Runs tasks on the executor of calls, one at a time. Their time is virtual if the executor's is.
package final class CallTaskExecutor: TaskExecutor {
  private let executor: any CallExecutor

  package init(_ executor: any CallExecutor) {
    self.executor = executor
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    self.executor.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

extension TaskExecutor {
  /// The executor itself, if tasks have to run there. Nil for a ``CallTaskExecutor``, which stands in for an executor
  /// of calls without a task executor. Tasks of interceptors that begin at once then run anywhere.
  package var unlessOfCalls: (any TaskExecutor)? { self is CallTaskExecutor ? nil : self }
}
