/// Runs tasks on a call's executor: one at a time, where the calls live, and in virtual time if those do.
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
