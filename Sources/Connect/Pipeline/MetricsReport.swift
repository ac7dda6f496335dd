/// The metrics of an attempt, and the hooks that want them: they are called from the last to the first, and nothing waits for
/// that. It outlives the pipeline, since an attempt may end with the call.
///
/// Confined to the call's executor.
package final class MetricsReport {
  typealias Function = (HTTPMetrics, Proceed<HTTPMetrics>) -> Void

  package struct Hook {
    let function: Function
    let interceptor: any Interceptor.Type
  }

  /// As the attempt has them, and then as hooks pass them on.
  var metrics: HTTPMetrics
  /// Those that are still to be called, outermost first. A hook may keep its `proceed`, and thereby this report, so none is
  /// kept here longer than that.
  private var hooks: [Hook]
  /// The number of the visit whose hook has returned without having passed the metrics on.
  private var waiting: Int?

  package init(_ metrics: HTTPMetrics, for hooks: [Hook]) {
    self.metrics = metrics
    self.hooks = hooks
  }

  package func pass(_ host: any PipelineHost) {
    let pipeline = host.pipeline
    while let hook = self.takeHook() {
      var visit = pipeline.makeVisit(at: .metrics(self), host)
      pipeline.surroundings.inheritance.bind(nil, of: hook.interceptor) {
        hook.function(self.metrics, Proceed(visit))
      }
      guard case .metrics(let passed) = visit.hookReturned(waits: false) else {
        self.waiting = visit.number
        return
      }
      pipeline.keep(&visit)
      self.metrics = passed
    }
  }

  private func takeHook() -> Hook? {
    // Taken out, so that each access to the variable is over at once.
    var hooks: [Hook] = []
    swap(&hooks, &self.hooks)
    guard hooks.count > 1 else { return hooks.first }
    let last = hooks.removeLast()
    self.hooks = hooks
    return last
  }

  package func hookDid(_ action: HookAction, _ visit: Visit, _ host: any PipelineHost) {
    guard visit.number == self.waiting, case .metrics(let metrics) = action else { return }
    self.waiting = nil
    self.metrics = metrics
    self.pass(host)
  }
}
