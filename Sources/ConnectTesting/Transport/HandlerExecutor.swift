internal import Connect

/// Runs tasks on a call's executor, so that handlers run where the calls do: one at a time, and in virtual time
/// under the control of whoever moves the clock.
final class HandlerExecutor: _Concurrency.TaskExecutor {
  private let executor: any CallExecutor

  init(_ executor: any CallExecutor) {
    self.executor = executor
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    self.executor.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
