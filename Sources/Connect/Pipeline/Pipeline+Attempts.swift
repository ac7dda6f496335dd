// Where attempts start and end within a pipeline.
extension Pipeline {
  /// Whether the first stage takes a message at once.
  func acceptsMessage(_ host: any PipelineHost) -> Bool {
    self.hasStarted && !self.isMoving && self.order.messages?.isBusy != true && self.hasRoom(at: 0, host)
  }

  /// Whether to send more is of no use: the response has ended, and nothing can start it again.
  func isRequestObsolete(attemptIsOver: Bool) -> Bool {
    guard self.order.cut != nil || attemptIsOver else { return false }
    return !self.order.canReplay && !self.hasAsyncStages
  }

  /// Lets results take the place of what is inside of a stage.
  func answer(at index: Int, with results: [ResultPart], _ host: any PipelineHost) {
    self.close(insideOf: index - 1, cuttingAt: index, host)
    self.order.setAnswer(results, at: index)
    self.mustMoveAgain = true
  }

  /// Gives up what is inside of a stage, and throws parts of the request away from `cut` on.
  func close(insideOf index: Int, cuttingAt cut: Int, _ host: any PipelineHost) {
    let old = self.order.close(insideOf: index, cuttingAt: cut)
    self.resetAsyncStages(from: index + 1)
    host.dropAttempts()
    withExtendedLifetime(old) {}
  }

  /// Gives up what is inside of a stage, which starts a new attempt there.
  func reopen(insideOf index: Int, _ host: any PipelineHost) {
    let old = self.order.reopen(insideOf: index)
    self.resetAsyncStages(from: index + 1)
    host.dropAttempts()
    withExtendedLifetime(old) {}
  }

  /// - Returns: False if there is to be no other attempt.
  func retry(at index: Int, _ request: RequestPart?, after delay: Duration, _ host: any PipelineHost) -> Bool
  {
    guard let head = self.order.retryHead(request, at: index), host.takeRetry(after: delay) else {
      return false
    }
    let old = self.order.waitToRetry(for: index)
    self.resetAsyncStages(from: self.order.isMessageStage(index) ? 0 : self.order.codec + 1)
    host.dropAttempts()
    withExtendedLifetime(old) {}
    let epoch = self.order.epoch
    host.afterDelay(delay) { [self] in
      if self.order.retry(for: index, with: head, in: epoch) { host.pump() }
    }
    return true
  }

  func resetAsyncStages(from first: Int) {
    guard self.hasAsyncStages else { return }
    for stage in self.stages[first...] {
      if case .async(let stage) = stage.form { stage.reset() }
    }
  }

  /// Runs jobs of the stage at `index` where the nearest `next` outside of it was called.
  func run(_ job: Job, of index: Int, _ host: any PipelineHost) {
    for stage in self.stages[..<index].reversed() {
      if case .async(let stage) = stage.form, let runner = stage.runner {
        runner.run(job)
        return
      }
    }
    host.run(job)
  }

  // MARK: End

  /// Tells the stages that wait for results that `error` ends the call. They cannot change that.
  ///
  /// - Parameters:
  ///   - executor: Where hooks may run tasks.
  ///   - inheritance: What is bound around them.
  func terminate(with error: ConnectError, on executor: any TaskExecutor, _ inheritance: Inheritance?) {
    let waiting = self.order.finish()
    // A hook may complete the call, which lets go of the stages.
    let stages = self.stages
    var visit: EndedVisit?
    for index in stages.indices.reversed() {
      switch stages[index].form {
      case .codec: break
      case .async(let stage): stage.end(with: error)
      case .hooks(let hooks):
        guard waiting[index] else { continue }
        let end = self.order.failure(error, at: index)
        self.tell(hooks, end, &visit, of: stages[index].interceptor, executor, inheritance)
      }
    }
  }

  private func tell(
    _ hooks: any StageHooks,
    _ end: ResultPart,
    _ visit: inout EndedVisit?,
    of interceptor: any Interceptor.Type,
    _ executor: any TaskExecutor,
    _ inheritance: Inheritance?
  ) {
    let kinds = hooks.kinds
    guard kinds.seesResult else { return }
    inheritance.bind(nil, of: interceptor) {
      if kinds.contains(.resultUpdate) {
        var end = end
        _ = hooks.update(&end)
      } else {
        let ended = visit ?? EndedVisit(on: executor)
        visit = ended
        hooks.call(with: end, ended)
      }
    }
  }
}
