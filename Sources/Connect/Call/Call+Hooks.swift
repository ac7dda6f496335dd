internal import Logging

extension Call: VisitHost {
  var taskExecutor: any TaskExecutor { self.plan.taskExecutor }
  var retryCause: ConnectError? { self.pipeline.retryCause }

  func hookDid(_ action: HookAction, _ visit: Visit) {
    if case .metrics = visit.place, !visit.isOnStack {
      guard case .metrics(let metrics) = action else { return }
      (visit.report.take() as? MetricsReport)?.pass(metrics, self)
    } else if self.isOver || visit.isOnStack {
      let what = self.isOver ? "the call is over" : "a hook that has proceeded before"
      self.plan.logger.logIgnored(what, of: self.plan.info)
    } else {
      self.pipeline.hookDid(action, visit, self)
    }
  }

  func hookWasDropped(_ place: Visit.Place, _ number: Int) {
    let holders = HookHolders(in: self.pipeline)
    if let error = holders.abandonment(of: self.plan.info, at: place, number) { self.terminate(with: error) }
  }

  /// Lets the pipeline continue: something has changed.
  func pump() {
    self.executor.assertIsCurrent()
    if !self.isOver { self.pipeline.move(self) }
  }
}

extension Logger {
  /// Tells of a `proceed` that comes too late, or for the second time.
  func logIgnored(_ what: String, of method: MethodInfo) {
    self.debug(
      "ignored: the call or the attempt is over, or the hook has proceeded before",
      metadata: ["rpc.method": "\(method.path)", "hook": "\(what)"]
    )
  }
}
