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
  /// What hooks pass on.
  private var passed: HTTPMetrics?
  /// Outermost first.
  private var hooks: [Hook]
  /// How many of the hooks are still to be called.
  private var remaining: Int
  /// The number of the visit whose hook has returned without having passed the metrics on.
  private var waiting: Int?

  init(_ metrics: HTTPMetrics.Values, for hooks: [Hook]) {
    self.metrics = metrics
    self.hooks = hooks
    self.remaining = hooks.count
  }

  func pass(_ call: Call) {
    let pipeline = call.pipeline
    defer { pipeline.restVisit() }
    var metrics = self.passed ?? HTTPMetrics(self.metrics)
    while self.remaining > 0 {
      self.remaining -= 1
      let hook = self.hooks[self.remaining]
      var visit = pipeline.makeVisit(at: .metrics(self), call)
      call.plan.inheritance.bind(nil, of: hook.interceptor) {
        hook.function(metrics, Proceed(visit))
      }
      guard case .metrics(let passed)? = visit.hookReturned(waits: false) else {
        self.waiting = visit.number
        // The hook may hold its `proceed`, and thereby this report.
        self.hooks.removeSubrange(self.remaining...)
        return
      }
      pipeline.keep(&visit)
      metrics = passed
    }
    self.hooks = []
  }

  func hookDid(_ action: HookAction, _ visit: Visit, _ call: Call) {
    guard visit.number == self.waiting, case .metrics(let metrics) = action else { return }
    self.waiting = nil
    self.passed = metrics
    self.pass(call)
  }
}
