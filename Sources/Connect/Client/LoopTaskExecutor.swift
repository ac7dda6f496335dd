/// Runs tasks where a client's calls live.
final class LoopTaskExecutor: _Concurrency.TaskExecutor {
  private let executor: any CallExecutor

  init(_ executor: any CallExecutor) {
    self.executor = executor
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    self.executor.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
