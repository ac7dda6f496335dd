internal import Connect
internal import DequeModule
internal import NIOCore
internal import Synchronization

/// A real pipeline with one interceptor at one level, and what is around it: the test, in place of the caller and the wire.
///
/// It stands for one call. Messages stay as they are on their way through the codec.
final class DrivenPipeline<OfRequest: Sendable, OfMessage: Sendable, OfResult: Sendable>: PipelineHost {
  typealias Notes = AsyncNotes<OfRequest, OfMessage, OfResult>

  private final class State {
    /// Nil once the call is over.
    var pipeline: Pipeline?
    /// The interceptor, while it is asked for its hooks.
    var level = DrivenLevel()
    var metricsHooks: [MetricsReport.Hook] = []
    /// For the async form.
    var notes: Notes?

    /// Parts of the request that the pipeline has not taken yet.
    var outgoing: Deque<(RequestPart, HookRecord<OfMessage>?)> = []
    /// Results that the pipeline has not taken yet.
    var arrived: Deque<(ResultPart, HookRecord<OfResult>)> = []
    /// Whether the request has passed the interceptor, and its response has not ended.
    var isOnWire = false

    // The records of values on their way to a hook.
    var request: HookRecord<OfRequest>?
    var message: HookRecord<OfMessage>?
    var result: HookRecord<OfResult>?
    var metrics: HookRecord<HTTPMetrics>?

    /// How many functions of the pipeline are on the stack, and what to do once there is none.
    var depth = 0
    var afterwards: Deque<() -> Void> = []
    /// Whether the call has ignored what a hook proceeded with.
    var wasIgnored = false
    /// How many retries, of hooks and by `next`, were taken from the cap.
    var retryCount = 0
    /// How many retries of hooks were granted, of which the cap is one condition.
    var grantCount = 0
    var retryTimer: (any CallTimer)?
    var retryCause: ConnectError?
  }

  let method: MethodInfo
  /// Whether a test has given the request. If not, the request has passed the interceptor unseen.
  let hasRequest: Bool
  private let virtualExecutor: VirtualExecutor
  private let isBytes: Bool
  private let maximumRetries: Int
  private let hasEndedFlag = Atomic(false)
  private let wasAbandonedFlag = Atomic(false)
  private let content: Confined<State>

  init(_ plan: DrivenPlan, hasRequest: Bool) {
    self.method = plan.method.info
    self.hasRequest = hasRequest
    self.virtualExecutor = plan.executor
    self.isBytes = plan.isBytes
    self.maximumRetries = plan.config.retries.maximumRetries
    self.content = Confined(State(), to: plan.executor)
  }

  private var state: State { self.content.value }

  // MARK: From the driver

  func prepare(_ plan: DrivenPlan, _ level: DrivenLevel, isUnary: Bool, _ notes: Notes?) {
    let pipeline = Pipeline(
      isUnary: isUnary,
      maximumWaiting: plan.config.limits.maximumWaitingValues,
      maximumReplayBytes: plan.config.retries.maximumReplayBytes
    )
    self.state.level = level
    self.state.notes = notes
    self.state.pipeline = pipeline
    pipeline.askForHooks(of: plan.method, self)
    self.state.level = DrivenLevel()
  }

  func start(_ part: RequestPart, _ record: HookRecord<OfRequest>?) {
    if self.state.notes == nil { self.state.request = record }
    self.enter { self.state.pipeline?.start(part, self) }
  }

  func send(_ part: RequestPart, _ record: HookRecord<OfMessage>?) {
    if let record {
      self.state.notes?.append(message: record)
      guard !self.isOver else {
        record.report(.notWaiting)
        return
      }
    }
    self.state.outgoing.append((part, record))
    self.pump()
  }

  func receive(_ part: ResultPart, _ record: HookRecord<OfResult>) {
    self.state.notes?.append(result: record)
    guard !self.isOver else {
      record.report(.notWaiting)
      return
    }
    self.state.arrived.append((part, record))
    self.pump()
  }

  func pass(_ metrics: HTTPMetrics, _ record: HookRecord<HTTPMetrics>) {
    guard !self.state.metricsHooks.isEmpty else {
      record.add(metrics)
      return
    }
    self.state.metrics = record
    self.enter { MetricsReport(self.state.metricsHooks).pass(metrics, self) }
  }

  /// The call is over.
  func finish() {
    guard !self.isOver else { return }
    self.hasEndedFlag.store(true, ordering: .relaxed)
    let state = self.state
    state.isOnWire = false
    state.retryTimer.take()?.cancel()
    state.notes?.end()
    for (_, record) in state.outgoing { record?.report(.notWaiting) }
    for (_, record) in state.arrived { record.report(.notWaiting) }
    state.outgoing = []
    state.arrived = []
    state.metricsHooks = []
    state.pipeline.take()?.release()
  }

  /// Whether a hook let go of its `proceed`, which ends the call.
  var wasAbandoned: Bool { self.wasAbandonedFlag.load(ordering: .relaxed) }

  // MARK: From hooks

  func takeRequestRecord() -> HookRecord<OfRequest> { self.take(self.state.request.take()) }

  func takeMessageRecord() -> HookRecord<OfMessage> { self.take(self.state.message.take()) }

  func takeResultRecord() -> HookRecord<OfResult> { self.take(self.state.result.take()) }

  func takeMetricsRecord() -> HookRecord<HTTPMetrics> { self.take(self.state.metrics.take()) }

  /// - Parameter record: Nil if a retry brings a value again, which no test looks at.
  private func take<Verb>(_ record: HookRecord<Verb>?) -> HookRecord<Verb> {
    let record = record ?? HookRecord()
    record.read()
    return record
  }

  /// A `proceed` for the hook around the pipeline's.
  ///
  /// - Parameters:
  ///   - isAwaited: Whether the call waits for the hook, and so ends when the hook lets go of `proceed`.
  ///   - effect: What the call makes of a verb, by whether it has granted the retry that the verb asks for.
  func noting<Verb>(
    _ proceed: Proceed<Verb>,
    _ record: HookRecord<Verb>,
    isAwaited: Bool = true,
    effect: @escaping @Sendable (_ verb: Verb, _ isGranted: Bool) -> Verb = { verb, _ in verb }
  ) -> Proceed<Verb> {
    let lifetime = Lifetime {
      if record.report(.letGoOfProceed), isAwaited { self.wasAbandonedFlag.store(true, ordering: .relaxed) }
    }
    return Proceed(around: proceed) { verb in
      self.onExecutor {
        let state = self.state
        self.enter {
          state.wasIgnored = false
          let grantCount = state.grantCount
          proceed.send(verb)
          let wasIgnored = state.wasIgnored
          state.afterwards.append {
            withExtendedLifetime(lifetime) {
              record.proceed(verb, effect: wasIgnored ? nil : effect(verb, state.grantCount > grantCount))
            }
          }
        }
      }
    }
  }

  /// What an interceptor in its async form reports.
  var asyncReport: AsyncReport {
    AsyncReport(
      willReadMessage: { index in self.onExecutor { self.state.notes?.willReadMessage(index) } },
      didReadMessage: { index in self.onExecutor { self.state.notes?.didReadMessage(index) } },
      didThrow: { self.onExecutor { self.state.notes?.didThrow() } }
    )
  }

  private func onExecutor(_ work: @escaping @Sendable () -> Void) {
    if self.virtualExecutor.isCurrent { work() } else { self.virtualExecutor.execute(work) }
  }

  /// Does something with the pipeline. What hooks have done by then is noted when the pipeline has come to rest, since only
  /// then it is known what the pipeline makes of it.
  private func enter(_ work: () -> Void) {
    let state = self.state
    state.depth += 1
    work()
    if state.depth == 1 {
      while let next = state.afterwards.popFirst() { next() }
      // Values that no hook was given.
      state.message.take()?.report(.notWaiting)
      state.result.take()?.report(.notWaiting)
    }
    state.depth -= 1
  }

  // MARK: PipelineHost

  var executor: any CallExecutor { self.virtualExecutor }
  var taskExecutor: any TaskExecutor { self.virtualExecutor }
  var inheritance: Inheritance? { nil }
  var isOver: Bool { self.hasEnded }
  var hasEnded: Bool { self.hasEndedFlag.load(ordering: .relaxed) }

  var interceptorCount: Int { 1 }

  func askForCallHooks(_ index: Int) -> any Interceptor { self.state.level }

  func addMetricsHook(_ hook: MetricsReport.Hook) { self.state.metricsHooks.append(hook) }

  var demand: Int { 1 }

  func deliver(_ result: ResultPart) {
    self.state.notes?.pass(result)
    if result.isEnd { self.finish() }
  }

  func takeOutgoing() -> RequestPart? {
    guard let (part, record) = self.state.outgoing.popFirst() else { return nil }
    self.state.message.take()?.report(.notWaiting)
    if self.state.notes == nil { self.state.message = record }
    return part
  }

  func outgoingWasTaken() {}

  func encode(_ part: RequestPart) throws(ConnectError) -> RequestPart {
    guard self.isBytes else { return part }
    return switch part {
    case .whole(let head, let message): .wholeBytes(head, MessageBox<ByteBuffer>.of(message).message)
    case .message(let message): .bytes(MessageBox<ByteBuffer>.of(message).message)
    case .wholeBytes, .head, .bytes, .end: part
    }
  }

  func decode(_ result: ResultPart) throws(ConnectError) -> ResultPart { result }

  var attemptHasRoom: Bool { true }

  func transmit(_ part: RequestPart) {
    switch part {
    case .whole, .wholeBytes, .head: self.state.isOnWire = true
    case .message, .bytes, .end: break
    }
    self.state.notes?.pass(part, at: self.virtualExecutor.now)
  }

  func takeArrived() -> ResultPart? {
    guard self.state.isOnWire else { return nil }
    self.state.notes?.willReadResult()
    guard let (part, record) = self.state.arrived.popFirst() else { return nil }
    if part.isEnd { self.state.isOnWire = false }
    self.state.result.take()?.report(.notWaiting)
    if let notes = self.state.notes {
      notes.didRead(result: record, at: self.virtualExecutor.now)
    } else {
      self.state.result = record
    }
    return part
  }

  /// Results that were given and not taken are lost with the attempt that they belong to.
  func dropAttempts() {
    guard self.state.isOnWire else { return }
    self.state.isOnWire = false
    let arrived = self.state.arrived
    self.state.arrived = []
    // The end that an async interceptor gives is noted before, in the place of the first of them.
    self.state.afterwards.append { for (_, record) in arrived { record.report(.notWaiting) } }
  }

  func takeRetry(after delay: Duration) -> Bool {
    guard !self.isOver, self.state.retryCount < self.maximumRetries else { return false }
    self.state.retryCount += 1
    return true
  }

  func afterDelay(_ delay: Duration, _ work: @escaping () -> Void) {
    self.state.grantCount += 1
    guard delay > .zero else {
      work()
      return
    }
    self.state.retryTimer?.cancel()
    let here = Confined(work, to: self.virtualExecutor)
    self.state.retryTimer = self.virtualExecutor.schedule(after: delay) {
      if !self.isOver { self.enter { here.value() } }
    }
  }

  var retryCause: ConnectError? {
    get { self.state.retryCause }
    set { self.state.retryCause = newValue }
  }

  func hookDid(_ action: HookAction, _ visit: Visit) {
    if case .metrics(let report) = visit.place {
      report.hookDid(action, visit.number, self)
    } else if let pipeline = self.state.pipeline, pipeline.awaits(visit) {
      self.enter { pipeline.hookDid(action, visit, self) }
    } else {
      self.state.wasIgnored = true
    }
  }

  func hookWasDropped(_ visit: Visit.Place, _ number: Int) { self.finish() }

  func hookWaits() {}

  func logIgnored(_ what: String) {}

  func run(_ job: Job) { job.start(on: self.virtualExecutor) }

  func pump() {
    if !self.isOver { self.enter { self.state.pipeline?.move(self) } }
  }

  func perform(_ work: @escaping (Pipeline) -> Void) {
    if !self.isOver { self.enter { self.state.pipeline?.perform(work, self) } }
  }
}
