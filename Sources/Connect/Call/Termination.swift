/// Tells the stages that wait for results that an error ends the call. They cannot change that.
struct Termination {
  let error: ConnectError
  let plan: CallPlan

  /// - Parameter isFinal: Whether nothing flows any more; otherwise the call may start again.
  func tell(_ pipeline: Pipeline, isFinal: Bool = true) {
    let waiting = isFinal ? pipeline.finish() : pipeline.finishStages(closing: false)
    // A hook may complete the call, which releases the stages.
    let stages = pipeline.stages
    var visit: Visit?
    if isFinal, pipeline.hasAsyncStages { self.tellAsync(stages) }
    for index in stages.indices.reversed() {
      guard waiting[index], case .hooks(let functions, let kinds, let form) = stages[index], kinds.seesResult
      else { continue }
      self.plan.inheritance.bind(nil, of: functions.interceptor) {
        self.tell(functions, isUpdate: kinds.contains(.resultUpdate), form, &visit)
      }
    }
  }

  private func tellAsync(_ stages: [Stage]) {
    let endings = stages.compactMap { stage in
      if case .async(let stage) = stage { stage.finish(with: self.error) } else { nil }
    }
    // The outermost first: an inner body runs in the task of an outer one, and is cancelled when it hears of the end.
    for end in endings { end() }
  }

  private func tell(
    _ functions: HookFunctions,
    isUpdate: Bool,
    _ form: Stage.Form,
    _ visit: inout Visit?
  ) {
    var end = form.failure(self.error)
    if isUpdate {
      _ = functions.update(form, &end)
    } else {
      let ended = visit ?? Visit(afterCallOn: self.plan.environment.executor, tasksOn: self.plan.taskExecutor)
      visit = ended
      functions.call(form, with: end, ended)
    }
  }
}
