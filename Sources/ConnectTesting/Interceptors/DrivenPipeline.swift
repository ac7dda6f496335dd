internal import Connect
internal import DequeModule
internal import NIOCore
internal import Synchronization

/// A real pipeline with one interceptor at one level, and what is around it: the test, in place of the caller and the wire.
///
/// It stands for one call. The codec leaves messages as they are.
final class DrivenPipeline<OfRequest: Sendable, OfMessage: Sendable, OfResult: Sendable>: PipelineHost {
  typealias Notes = AsyncNotes<OfRequest, OfMessage, OfResult>
  typealias State = DrivenSurroundings<OfRequest, OfMessage, OfResult>

  private let plan: DrivenPlan
  /// Whether a test has given the request. If not, the request has passed the interceptor unseen.
  let hasRequest: Bool
  private let hasEndedFlag = Atomic(false)
  private let wasAbandonedFlag = Atomic(false)
  private let content: Confined<(state: State, pipeline: Pipeline)>

  init(_ plan: DrivenPlan, isUnary: Bool, hasRequest: Bool) {
    self.plan = plan
    self.hasRequest = hasRequest
    let state = State(plan)
    let pipeline = Pipeline(
      isUnary: isUnary,
      maximumWaiting: plan.config.limits.maximumWaitingValues,
      Pipeline.Surroundings(
        outside: state,
        inside: state,
        codec: DrivenCodec(isBytes: plan.isBytes),
        inheritance: nil,
        maximumReplayBytes: plan.config.retries.maximumReplayBytes
      )
    )
    self.content = Confined((state, pipeline), to: plan.executor)
  }

  private var state: State { self.content.value.state }

  // MARK: From the driver

  func prepare(_ level: DrivenLevel, _ notes: Notes?) {
    self.state.notes = notes
    self.pipeline.askForHooks(OneInterceptor(level), of: self.plan.method)
  }

  func start(_ part: RequestPart, _ record: HookRecord<OfRequest>?) {
    if self.state.notes == nil { self.state.request = record }
    self.enter { self.pipeline.start(part, self) }
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
    self.enter { MetricsReport(metrics, for: self.state.metricsHooks).pass(self) }
  }

  /// The call is over.
  func finish() {
    guard !self.isOver else { return }
    self.hasEndedFlag.store(true, ordering: .relaxed)
    let state = self.state
    state.end()
    self.pipeline.release()
  }

  /// Whether a hook released its `proceed` without calling it, which ends the call.
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
  ///   - isAwaited: Whether the call waits for the hook, and so ends when the hook releases `proceed` without calling it.
  ///   - effect: What the call makes of a verb, given whether it has granted the retry that the verb asks for.
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
    if self.plan.executor.isCurrent { work() } else { self.plan.executor.execute(work) }
  }

  /// Enters the pipeline. What hooks have done is noted once the pipeline is at rest, since only then it is known what the
  /// pipeline makes of it.
  private func enter(_ work: () -> Void) {
    let state = self.state
    state.depth += 1
    work()
    if state.depth == 1 {
      while let next = state.afterwards.popFirst() { next() }
      // Values that reached no hook.
      state.message.take()?.report(.notWaiting)
      state.result.take()?.report(.notWaiting)
    }
    state.depth -= 1
  }

  // MARK: PipelineHost

  var pipeline: Pipeline { self.content.value.pipeline }
  var environment: any HookEnvironment { self.plan }
  var executor: any CallExecutor { self.plan.executor }
  var isOver: Bool { self.hasEnded }
  var hasEnded: Bool { self.hasEndedFlag.load(ordering: .relaxed) }

  func finish(with end: ResultPart) {
    self.state.notes?.pass(end)
    self.finish()
  }

  func endIfDeadlineHasPassed() -> Bool { false }

  func hookDid(_ action: HookAction, _ visit: Visit) {
    if let report = visit.metricsReport {
      report.hookDid(action, visit, self)
    } else if !self.isOver, visit.isAwaited(in: self.pipeline) {
      self.enter { self.pipeline.hookDid(action, visit, self) }
    } else {
      self.state.wasIgnored = true
    }
  }

  func hookWasDropped(_ visit: Visit.Place, _ number: Int) { self.finish() }

  func hookWaits() {}

  func pump() {
    if !self.isOver { self.enter { self.pipeline.move(self) } }
  }

  func perform(_ work: @escaping (Pipeline) -> Void) {
    if !self.isOver { self.enter { self.pipeline.perform(work, self) } }
  }
}

/// The one interceptor of a driven pipeline.
private final class OneInterceptor: InterceptorSource {
  private let level: DrivenLevel

  init(_ level: DrivenLevel) {
    self.level = level
  }

  var count: Int { 1 }
  var isOver: Bool { false }

  func askForCallHooks(_ index: Int) -> any Interceptor { self.level }
}
