internal import Connect

/// What the calls of a driver at one level have in common.
struct DriverSetup: Sendable {
  let config: ProtocolClientConfig
  let time: DriverTime
  var isBytes = false
  var isAsync = false

  func at(isBytes: Bool, isAsync: Bool) -> DriverSetup {
    var setup = self
    (setup.isBytes, setup.isAsync) = (isBytes, isAsync)
    return setup
  }
}

/// Drives an interceptor at one level, from any thread. The end of the session ends its call.
final class HookSession: Sendable {
  /// Starts a call with a request; without one, the interceptor does not see the request.
  typealias Start = (DriverSetup, _ request: (any Sendable)?, HookRecord?) -> DriverCall
  typealias MetricsHook = (HTTPMetrics, Proceed<HTTPMetrics>) -> Void

  /// The call in flight. Confined to the driver's executor.
  private final class Current {
    let start: Start
    let metricsHook: () -> MetricsHook?
    var call: DriverCall?

    init(_ start: @escaping Start, _ metricsHook: @escaping () -> MetricsHook?) {
      self.start = start
      self.metricsHook = metricsHook
    }
  }

  private let name: String
  private let setup: DriverSetup
  private let current: Confined<Current>

  /// - Parameter metricsHook: Asks for the metrics hook, at its first use.
  init(
    _ name: String,
    _ setup: DriverSetup,
    metricsHook: @escaping () -> MetricsHook? = { nil },
    _ start: @escaping Start
  ) {
    let level =
      setup.isAsync ? (setup.isBytes ? "async byte" : "async") : (setup.isBytes ? "byte" : "message")
    self.name = "\(name) \(level)"
    self.setup = setup
    self.current = Confined(Current(start, metricsHook), to: setup.time.executor)
  }

  deinit {
    let current = self.current
    self.setup.time.executor.execute { current.value.call.take()?.end() }
  }

  /// Gives a value to a hook, and lets the executor become idle.
  func visit<Verb>(_ hook: String, _ work: (HookSession, HookRecord) -> Void) -> HookVisit<Verb> {
    let visit = HookVisit<Verb>("\(self.name) \(hook)", self.setup.time, keeping: self)
    self.perform { work($0, visit.record) }
    return visit
  }

  func perform(_ work: (HookSession) -> Void) {
    self.setup.time.executor.sync { work(self) }
    self.setup.time.executor.runUntilIdle()
  }

  // MARK: On the executor

  /// Begins a call.
  func request(_ request: any Sendable, _ record: HookRecord) {
    self.current.value.call.take()?.end()
    self.start(request, record)
  }

  func message(_ message: any Sendable, _ record: HookRecord) {
    if let call = self.openCall() { call.send(message, record) } else { record.report(.notWaiting) }
  }

  func finishRequest() { self.current.value.call?.finishRequest() }

  func result(_ result: any Sendable, _ record: HookRecord) {
    if let call = self.openCall() { call.receive(result, record) } else { record.report(.notWaiting) }
  }

  /// Nothing waits for metrics hooks, so they need no call.
  func metrics(_ metrics: HTTPMetrics, _ record: HookRecord) {
    guard let hook = self.current.value.metricsHook() else {
      record.add(metrics)
      return
    }
    record.read()
    let lifetime = Lifetime { record.report(.letGoOfProceed) }
    let proceed = Proceed<HTTPMetrics>(on: self.setup.time.executor) { metrics in
      withExtendedLifetime(lifetime) { record.proceed(metrics, effect: metrics) }
    }
    hook(metrics, proceed)
  }

  /// The call that a value belongs to. If a test has given no request, begins a call whose request the interceptor does not
  /// see. The async form needs a request.
  private func openCall() -> DriverCall? {
    if let call = self.current.value.call, call.hasRequest || !call.isOver { return call }
    return self.setup.isAsync ? nil : self.start(nil, nil)
  }

  @discardableResult
  private func start(_ request: (any Sendable)?, _ record: HookRecord?) -> DriverCall {
    let call = self.current.value.start(self.setup, request, record)
    self.current.value.call = call
    return call
  }
}

/// A value that is made at its first use.
final class OnceMade<Value> {
  private let make: () -> Value
  private(set) lazy var value = self.make()

  init(_ make: @escaping () -> Value) {
    self.make = make
  }
}
