/// The metrics hooks of a call, outermost first: metrics pass them from the last to the first, and nothing waits
/// for that. They outlive the chain that they came from, since an attempt may end with the call.
///
final class MetricsHooks: HookOwner<HTTPMetrics>, @unchecked Sendable {
  typealias Function = (HTTPMetrics, Proceed<HTTPMetrics>) -> Void

  private let functions: [Function]
  private let call: Call
  /// The hook that has returned without having passed the metrics on.
  private var waiting: Int?

  /// Nil if there are no functions.
  init?(functions: [Function], call: Call) {
    guard !functions.isEmpty else { return nil }
    self.functions = functions
    self.call = call
  }

  func pass(_ metrics: HTTPMetrics) {
    self.pass(metrics, from: self.functions.count - 1)
  }

  private func pass(_ metrics: HTTPMetrics, from last: Int) {
    var metrics = metrics
    for index in stride(from: last, through: 0, by: -1) {
      let proceed = Proceed(self, visit: index, of: self.call)
      self.begin(index)
      if let inheritance = self.call.inheritance {
        inheritance.bind(nil) { self.functions[index](metrics, proceed) }
      } else {
        self.functions[index](metrics, proceed)
      }
      guard self.end(index) == .done else {
        self.waiting = index
        return
      }
      metrics = self.takeVerb()
    }
  }

  override func goOn(_ index: Int, with metrics: consuming HTTPMetrics) {
    guard index == self.waiting else { return }
    self.waiting = nil
    self.pass(metrics, from: index - 1)
  }
}
