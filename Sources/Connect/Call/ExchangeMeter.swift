internal import NIOCore

/// Measures one exchange, and gives its metrics to the hooks that want them: from the last to the first, and nothing waits
/// for that. It outlives the chains, since an attempt may end with the call.
///
/// Confined to the call's executor.
final class ExchangeMeter: HookOwner, @unchecked Sendable {
  /// A hook in a structure, since an array of functions wraps each in another one.
  struct Hook {
    let function: (HTTPMetrics, Proceed<HTTPMetrics>) -> Void
    let interceptor: any Interceptor.Type
  }

  private let call: Call
  /// Those that are still to be called, outermost first. A hook may keep its `proceed`, and thereby this meter, so none is
  /// kept here longer than that. Hooks go away only while no access is in progress.
  @exclusivity(unchecked) private var hooks: [Hook]
  private let startTime: Duration
  /// Whether somebody looks that closely.
  private let readsEncodings: Bool
  private var metrics: HTTPMetrics
  /// The hook that has returned without having passed the metrics on.
  private var waiting: Int?

  init(call: Call, hooks: [Hook]) {
    self.call = call
    self.hooks = hooks
    self.startTime = call.executor.now
    self.readsEncodings = call.options.arrangement != nil
    self.metrics = HTTPMetrics(attempt: call.attempt)
  }

  // MARK: The exchange

  func willStart(_ head: HTTPStreamRequest) {
    if self.readsEncodings { self.metrics.requestEncoding = head.headers.announcedEncoding }
    self.metrics.requestBodyBytes = 0
    if case .complete(let body) = head.body { self.metrics.requestBodyBytes = body.readableBytes }
  }

  func willWrite(_ byteCount: Int) {
    self.metrics.requestBodyBytes += byteCount
  }

  func didStart(on connection: HTTPConnectionInfo) {
    self.metrics.connection = connection
    self.metrics.timeToConnection = self.elapsed
  }

  func didReceive(_ head: HTTPResponseHead) {
    self.metrics.timeToHeaders = self.elapsed
    self.metrics.httpStatus = head.status
    if self.readsEncodings { self.metrics.responseEncoding = head.headers.announcedEncoding }
  }

  func didReceive(_ byteCount: Int) {
    self.metrics.responseBodyBytes += byteCount
  }

  /// Gives the metrics to the hooks.
  func finish() {
    self.metrics.duration = self.elapsed
    self.pass(self.metrics, from: self.hooks.count - 1)
  }

  /// Gives them to the hooks later, as they are now.
  func finishLater() {
    self.metrics.duration = self.elapsed
    let metrics = self.metrics
    self.call.metricsArePending()
    self.call.executor.execute {
      self.call.metricsWereGiven()
      self.pass(metrics, from: self.hooks.count - 1)
    }
  }

  private var elapsed: Duration { self.call.executor.now - self.startTime }

  // MARK: Hooks

  private func pass(_ metrics: HTTPMetrics, from last: Int) {
    var metrics = metrics
    for index in stride(from: last, through: 0, by: -1) {
      let hook = self.hooks[index]
      let passed: HTTPMetrics? = self.visit(index, of: self.call) { proceed in
        self.call.inheritance.bind(nil, of: hook.interceptor) { hook.function(metrics, proceed) }
      } did: { (passed: consuming HTTPMetrics) in
        passed
      } waits: {
        self.waiting = index
        self.drop(from: index)
      }
      guard let passed else { return }
      metrics = passed
    }
    self.drop(from: 0)
  }

  private func drop(from index: Int) {
    let hooks = self.hooks
    self.hooks = Array(hooks[..<index])
  }

  override var waitsForHooks: Bool { false }

  override func goOn(_ index: Int, with metrics: UnsafeRawPointer) {
    guard index == self.waiting else { return }
    self.waiting = nil
    self.pass(metrics.assumingMemoryBound(to: HTTPMetrics.self).pointee, from: index - 1)
  }
}

extension Headers {
  /// What these say of how messages behind them are compressed, in any of the protocols.
  fileprivate var announcedEncoding: String? {
    for field in self {
      switch field.name {
      case "content-encoding", "connect-content-encoding", "grpc-encoding":
        return field.value == "identity" ? nil : field.value
      default:
        continue
      }
    }
    return nil
  }
}
