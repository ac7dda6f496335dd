internal import Connect
internal import Logging
internal import NIOCore

/// What all pipelines of one driver share.
struct DrivenPlan: HookEnvironment {
  let method: AnyMethod
  let isBytes: Bool
  let config: ProtocolClientConfig
  let executor: VirtualExecutor

  var info: MethodInfo { self.method.info }
  var logger: Logger { self.config.logger }
  var taskExecutor: any TaskExecutor { self.executor }
}

/// One level of the interceptor that is driven, and the pipeline that has it.
///
/// Confined to the driver's executor.
final class HookSession<OfRequest: Sendable, OfMessage: Sendable, OfResult: Sendable> {
  typealias Run = DrivenPipeline<OfRequest, OfMessage, OfResult>
  typealias MakeLevel = (Run) -> DrivenLevel

  let driven: DrivenInterceptor
  private let plan: DrivenPlan
  private let verbs: DrivenVerbs<OfRequest, OfMessage, OfResult>
  private let isAsync: Bool
  private let makeLevel: MakeLevel
  private var run: Run?

  init(
    _ driven: DrivenInterceptor,
    _ plan: DrivenPlan,
    _ verbs: DrivenVerbs<OfRequest, OfMessage, OfResult>,
    isAsync: Bool,
    _ makeLevel: @escaping MakeLevel
  ) {
    self.driven = driven
    self.plan = plan
    self.verbs = verbs
    self.isAsync = isAsync
    self.makeLevel = makeLevel
  }

  /// Begins a call.
  func request(_ part: RequestPart, _ record: HookRecord<OfRequest>) {
    self.end()
    let run = self.makeRun(hasRequest: true, self.isAsync ? AsyncNotes(self.verbs, record) : nil)
    self.run = run
    run.start(part.inPlace(of: nil, isUnary: self.verbs.isUnary), record)
  }

  func message(_ part: RequestPart, _ record: HookRecord<OfMessage>) {
    if let run = self.openRun() { run.send(part, record) } else { record.report(.notWaiting) }
  }

  func finishRequest() {
    if let run = self.run, !run.isOver { run.send(.end, nil) }
  }

  func result(_ part: ResultPart, _ record: HookRecord<OfResult>) {
    if let run = self.openRun() { run.receive(part, record) } else { record.report(.notWaiting) }
  }

  func metrics(_ metrics: HTTPMetrics, _ record: HookRecord<HTTPMetrics>) {
    if self.isAsync {
      record.add(metrics)
    } else if let run = self.run, !run.isOver {
      run.pass(metrics, record)
    } else {
      self.makeRun(hasRequest: false, nil).pass(metrics, record)
    }
  }

  /// No more values come.
  func end() {
    self.run.take()?.finish()
  }

  /// The call that a value belongs to. If a test has given no request, begins a call whose request the interceptor does not
  /// see. The async form needs a request.
  private func openRun() -> Run? {
    if let run = self.run {
      if run.wasAbandoned { run.finish() }
      if run.hasRequest || !run.isOver { return run }
    }
    guard !self.isAsync else { return nil }
    let run = self.makeRun(hasRequest: false, nil)
    self.run = run
    let request = self.plan.isBytes ? Self.unseen(ByteBuffer()) : Self.unseen(())
    run.start(request.inPlace(of: nil, isUnary: self.verbs.isUnary), nil)
    return run
  }

  private static func unseen<Message: Sendable>(_ message: Message) -> RequestPart {
    HTTPRequest(
      url: RequestURL(origin: Origin(scheme: .https, host: "interceptor.test", port: 443), path: "/"),
      contentType: "application/proto",
      message: message
    ).part
  }

  private func makeRun(hasRequest: Bool, _ notes: Run.Notes?) -> Run {
    let run = Run(self.plan, isUnary: self.verbs.isUnary, hasRequest: hasRequest)
    run.prepare(self.makeLevel(run), notes)
    return run
  }
}
