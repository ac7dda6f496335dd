/// The metrics of an attempt, and the hooks that want them. The hooks are called from the last to the first, and
/// nothing waits for them. The report outlives the pipeline, since an attempt may end with the call.
///
/// Confined to the call's executor.
package final class MetricsReport {
  typealias Function = (HTTPMetrics, Proceed<HTTPMetrics>) -> Void

  package struct Hook {
    let function: Function
    let interceptor: any Interceptor.Type
  }

  /// The metrics of the attempt, and then those that hooks pass on.
  var metrics: HTTPMetrics
  /// The hooks that are still to be called, outermost first. A called hook is not kept, since it may hold its
  /// `proceed`, and thereby this report.
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
    // Moved out and back, so that each exclusive access to the variable ends at once.
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
