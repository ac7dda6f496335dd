/// The metrics of an attempt, and the hooks that want them. The hooks are called from the last to the first, and
/// nothing waits for them. The report outlives the pipeline, since an attempt may end with the call.
///
/// Confined to the call's executor.
final class MetricsReport {
  typealias Function = (HTTPMetrics, Proceed<HTTPMetrics>) -> Void

  struct Hook {
    let function: Function
    let interceptor: any Interceptor.Type
  }

  /// The metrics of the attempt, until the hooks receive them.
  var metrics: HTTPMetrics.Values
  /// Outermost first.
  private var hooks: [Hook]
  /// How many of the hooks are still to be called.
  private var remaining: Int

  init(_ metrics: HTTPMetrics.Values, for hooks: [Hook]) {
    self.metrics = metrics
    self.hooks = hooks
    self.remaining = hooks.count
  }

  /// Gives the metrics to the hooks.
  func pass(_ call: Call) { self.pass(HTTPMetrics(self.metrics), call) }

  /// Gives the metrics, as the hook before has passed them on, to the remaining hooks.
  func pass(_ given: HTTPMetrics, _ call: Call) {
    let pipeline = call.pipeline
    defer { pipeline.restVisit() }
    var metrics = given
    while self.remaining > 0 {
      self.remaining -= 1
      let hook = self.hooks[self.remaining]
      var visit = pipeline.makeVisit(at: .metrics, call)
      call.plan.inheritance.bind(nil, of: hook.interceptor) {
        hook.function(metrics, Proceed(visit))
      }
      guard visit.hookReturned(), case .metrics(let passed) = visit.takeAction() else {
        visit.report = self
        // The hook may hold its `proceed`, and thereby this report.
        self.hooks.removeSubrange(self.remaining...)
        return
      }
      pipeline.keep(&visit)
      metrics = passed
    }
    self.hooks = []
  }
}
