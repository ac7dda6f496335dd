/// Gives the metrics of an attempt to the hooks that want them: from the last to the first, and nothing waits for that. It
/// outlives the pipeline, since an attempt may end with the call.
///
/// Confined to the call's executor.
package final class MetricsReport {
  typealias Function = (HTTPMetrics, Proceed<HTTPMetrics>) -> Void

  package struct Hook {
    let function: Function
    let interceptor: any Interceptor.Type
  }

  /// Those that are still to be called, outermost first. A hook may keep its `proceed`, and thereby this report, so none is
  /// kept here longer than that.
  private var hooks: [Hook]
  /// The number of the visit whose hook has returned without having passed the metrics on.
  private var waiting: Int?

  package init(_ hooks: [Hook]) {
    self.hooks = hooks
  }

  package func pass(_ metrics: HTTPMetrics, _ host: any PipelineHost) {
    var metrics = metrics
    while let hook = self.hooks.popLast() {
      let visit = Visit(self.hooks.count, at: .metrics(self), of: host)
      host.pipeline.surroundings.inheritance.bind(nil, of: hook.interceptor) {
        hook.function(metrics, Proceed(visit))
      }
      guard case .metrics(let passed) = visit.hookReturned(waits: false) else {
        self.waiting = visit.number
        return
      }
      metrics = passed
    }
  }

  package func hookDid(_ action: HookAction, _ visit: Visit, _ host: any PipelineHost) {
    guard visit.number == self.waiting, case .metrics(let metrics) = action else { return }
    self.waiting = nil
    self.pass(metrics, host)
  }
}
