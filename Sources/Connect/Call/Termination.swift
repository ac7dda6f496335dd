/// Tells the stages that wait for results that an error ends the call. They cannot change that.
struct Termination {
  let error: ConnectError
  let plan: CallPlan

  func tell(_ pipeline: Pipeline) {
    let waiting = pipeline.order.finish()
    // A hook may complete the call, which releases the stages.
    let stages = pipeline.order.stages
    var visit: Visit?
    if pipeline.hasAsyncStages { self.tellAsync(stages) }
    for index in stages.indices.reversed() {
      switch stages[index] {
      case .codec, .async: break
      case .hooks(let stage):
        guard waiting[index], stage.kinds.seesResult else { continue }
        self.plan.inheritance.bind(nil, of: stage.interceptor) { self.tell(stage, &visit) }
      }
    }
  }

  private func tellAsync(_ stages: [Stage.Role]) {
    let endings = stages.compactMap { stage in
      if case .async(let stage) = stage { stage.finish(with: self.error) } else { nil }
    }
    // The outermost first: an inner body runs in the task of an outer one, and is cancelled when it hears of the end.
    for end in endings { end() }
  }

  private func tell(_ stage: HookStage, _ visit: inout Visit?) {
    let end = stage.form.failure(self.error)
    if stage.kinds.contains(.resultUpdate) {
      _ = stage.updated(end)
    } else {
      let ended = visit ?? Visit(afterCallOn: self.plan.environment.executor, tasksOn: self.plan.taskExecutor)
      visit = ended
      stage.call(with: end, ended)
    }
  }
}
