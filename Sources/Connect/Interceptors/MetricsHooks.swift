/// The metrics hooks of a call, outermost first: metrics pass them from the last to the first, and nothing waits
/// for that. They outlive the chain that they came from, since an attempt may end with the call.
///
/// Confined to the call's executor, which makes it `Sendable`.
struct MetricsHooks: @unchecked Sendable {
  typealias Function = (HTTPMetrics, Proceed<HTTPMetrics>) -> Void

  private let functions: [Function]
  private let call: Call

  /// Nil if there are no functions.
  init?(functions: [Function], call: Call) {
    guard !functions.isEmpty else { return nil }
    self.functions = functions
    self.call = call
  }

  func pass(_ metrics: HTTPMetrics) {
    self.pass(metrics, from: self.functions.count - 1)
  }

  private func pass(_ metrics: HTTPMetrics, from index: Int) {
    guard index >= 0 else { return }
    let proceed = Proceed<HTTPMetrics> { metrics in
      guard self.call.isOnExecutor else {
        self.call.hop { self.pass(metrics, from: index - 1) }
        return
      }
      self.pass(metrics, from: index - 1)
    }
    if let inheritance = self.call.inheritance {
      inheritance.bind(nil) { self.functions[index](metrics, proceed) }
    } else {
      self.functions[index](metrics, proceed)
    }
  }
}
