internal import Connect
internal import Foundation
internal import Logging

/// One schedule, with real calls in virtual time.
///
/// `@unchecked Sendable`: made and used on the thread of the exploration alone. Code under test may reach it from other threads:
/// ``step(_:canFail:)`` and ``note(_:)`` go through the executor.
final class ExplorerRun: @unchecked Sendable {
  let executor: ExplorerExecutor
  let supervisor: RunSupervisor
  let settings: ExplorerSettings
  let method: StreamType
  let log: RunLog
  let steps = RunSteps()
  let server = RunServer()
  let callers: RunCallers
  let rules: OnlineRules
  let instances = InstanceWatch()
  private(set) var chooser: Chooser
  /// When time has last moved on while work was ready, so that some ends came late; nil if it never has.
  private(set) var lastJump: Duration?
  let watch: ExplorationWatch
  /// Since the last call began.
  private var pieces = 0
  private var timeOfPiece = Duration.zero
  /// How many pieces of work have run at that time.
  private var piecesAtOnce = 0
  private(set) var allPieces = 0
  /// What wakes up since all calls ended.
  private var lateWakes = LateWakes()

  init(
    _ settings: ExplorerSettings,
    _ method: StreamType,
    _ chooser: Chooser,
    _ watch: ExplorationWatch,
    isTelling: Bool
  ) {
    self.settings = settings
    self.method = method
    self.chooser = chooser
    self.chooser.watch = watch
    self.watch = watch
    let executor = ExplorerExecutor(watch)
    self.executor = executor
    self.supervisor = RunSupervisor(executor)
    self.callers = RunCallers(method, settings.idempotency)
    self.rules = OnlineRules(settings)
    self.log = RunLog(isTelling: isTelling, watch) { [unowned executor] in executor.now }
  }

  // MARK: For the world

  func step(_ name: String, canFail: Bool) async throws {
    let here = Confined(self)
    let number: Int? =
      if Task.isCancelled || self.supervisor.endsTasks {
        nil
      } else {
        await withCheckedContinuation { continuation in
          self.executor.run {
            continuation.resume(returning: here.value.steps.begin(name, canFail: canFail, in: here.value))
          }
        }
      }
    guard let number else {
      if self.supervisor.endsTasks { cancelCurrentTask() }
      await self.supervisor.pause()
      throw CancellationError()
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        self.executor.run { here.value.steps.wait(for: number, continuation) }
      }
    } onCancel: {
      self.executor.run { here.value.steps.cancel(number, in: here.value) }
    }
  }

  func makeToken() -> String { self.steps.makeToken() }

  func note(_ text: String) {
    let here = Confined(self)
    self.executor.run { here.value.log.tell("note", nil, text) }
  }

  // MARK: Choices

  func choose(_ kind: ChoiceKind, among count: Int) -> Int {
    self.chooser.choose(kind, among: count)
  }

  // MARK: Running

  /// Makes the calls, and runs until nothing is left to do or a rule is broken.
  ///
  /// - Parameter factories: Of the interceptors under test.
  func runCalls(_ factories: [InterceptorFactory]) {
    var config = ProtocolClientConfig(host: "https://explorer.test", hookWarnings: .init())
    config.retries.maximumRetries = 15
    self.settings.changeConfig?(&config)
    config.host = "https://explorer.test"
    config.networkProtocol = .connect
    config.codec = ProtoCodec()
    config.methodFormats = nil
    config.compression = Compression(responses: [])
    config.interceptors = self.chain(factories)
    let transport = ExplorerTransport.make(for: self)
    // One client for each call: what the library logs does not say which call it is about.
    self.callers.prepare(timeout: config.timeout, in: self) { [unowned self] call in
      config.logger = IgnoredProceedHandler.logger(for: self, call)
      return ProtocolClient(httpClient: transport, config: config)
    }
    while self.log.finding == nil, self.goOn() {}
  }

  private func chain(_ factories: [InterceptorFactory]) -> [InterceptorFactory] {
    let here = Confined(self)
    func neighbour(isOuter: Bool) -> InterceptorFactory {
      { _ in NeighbourInterceptor(here.value, isOuter: isOuter, number: here.value.callers.beginning) }
    }
    return [neighbour(isOuter: true)] + self.instances.watched(factories) + [neighbour(isOuter: false)]
  }

  /// Does one thing.
  ///
  /// - Returns: Whether there was one.
  private func goOn() -> Bool {
    self.executor.takeInbox()
    if self.callers.beginNext(after: self.pieces, isIdle: false, in: self) {
      self.pieces = 0
      return true
    }
    if !self.executor.ready.isEmpty {
      self.runPiece()
      return true
    }
    if self.executor.ready.restorePostponed() { return true }
    if self.callers.beginNext(after: self.pieces, isIdle: true, in: self) {
      self.pieces = 0
      return self.executor.ready.isEmpty ? TimePassing(run: self).letTimePass() : true
    }
    return TimePassing(run: self).letTimePass()
  }

  private func runPiece() {
    self.allPieces += 1
    let now = self.executor.now
    self.piecesAtOnce = now == self.timeOfPiece ? self.piecesAtOnce + 1 : 1
    self.timeOfPiece = now
    guard self.piecesAtOnce < RunLimits.piecesAtOnce else {
      self.log.find(
        "work ends",
        "the interceptors go on working without end and without waiting for anything"
      )
      return
    }
    guard self.allPieces < RunLimits.pieces else {
      self.log.find(
        "work ends",
        "the schedule is not over after \(RunLimits.pieces) pieces of work and \(self.executor.now) of virtual time: "
          + "something wakes up on and on, or far too often"
      )
      return
    }
    let candidates = self.executor.ready.candidates(limit: 5)
    let open = self.callers.callers.filter { $0.isOpen && $0.call.cancelTime == nil }.map(\.call)
    var kinds: [ChoiceKind] = []
    for _ in candidates.dropFirst() { kinds.append(.order) }
    if candidates.count > 1 { kinds.append(.postponement) }
    for _ in open { kinds.append(.cancellation) }
    let next = open.filter { $0.deadline.map { $0 > self.executor.now } ?? false }
      .min { $0.deadline ?? .zero < $1.deadline ?? .zero }
    if next != nil { kinds.append(.deadline) }
    var option = self.chooser.choose(kinds)
    if option < candidates.count {
      if option > 0 { self.log.cover("work in another order") }
      self.pieces += 1
      self.executor.runPiece(at: candidates[option])
      return
    }
    option -= candidates.count
    if candidates.count > 1 {
      if option == 0 {
        self.log.cover("work that waited for all other work")
        self.executor.ready.postponeFirst()
        return
      }
      option -= 1
    }
    if option < open.count {
      self.log.cover("cancellations")
      self.callers.cancel(open[option].number, "", in: self)
      return
    }
    guard let call = next else { return }
    self.log.cover("deadlines that passed during work")
    self.log.tell("deadline", call.number, "the deadline of call \(call.number) passes")
    self.executor.jump(to: call.deadline ?? .zero)
    self.lastJump = self.executor.now
  }

  // MARK: Time

  /// All calls are over.
  func letRestPass() -> Bool {
    let end = self.callers.lastEnd
    let isContinuing = self.rules.isContinuing(self) || self.executor.usedOtherThreads
    self.lateWakes.rest(
      at: self.executor.now - end,
      pieces: self.pieces,
      timers: self.executor.reasons.timerCount,
      isContinuing: isContinuing
    )
    let mayWorkOn = self.settings.allowance.contains(.backgroundWork)
    if let next = self.executor.nextTime, self.lateWakes.goesOn(until: next - end, mayWorkOn: mayWorkOn) {
      self.executor.advance()
      self.lateWakes.advance(
        pieces: self.pieces,
        timers: self.executor.reasons.timerCount,
        ready: self.executor.ready
      )
      return true
    }
    if !mayWorkOn, let finding = self.lateWakes.finding { self.log.find(finding) }
    return false
  }

  /// Ends what is left: waits, calls, and what they hold.
  func end() {
    self.chooser.freeze()
    self.supervisor.beginEnd()
    for call in self.callers.open { self.callers.cancel(call, "", in: self) }
    self.server.end()
    self.callers.release()
    var pieces = 0
    for _ in 0..<RunLimits.roundsAtEnd {
      self.executor.takeInbox()
      self.steps.endAll(in: self)
      while pieces < RunLimits.piecesAtEnd,
        !self.executor.ready.isEmpty || self.executor.ready.restorePostponed()
      {
        self.executor.runPiece(at: 0)
        pieces += 1
      }
      guard pieces < RunLimits.piecesAtEnd, self.executor.nextTime != nil else { break }
      self.executor.advance()
    }
    // What is left belongs to tasks that ignore that they are cancelled, or that cannot be cancelled from here.
    self.executor.abandonWork()
  }

  /// Nothing is read of the run any more. What other threads still do with it is late.
  func close() { self.executor.end() }
}

/// What no run needs.
enum RunLimits {
  /// Pieces of work while time stands still.
  static let piecesAtOnce = 20_000
  /// Pieces of work in all.
  static let pieces = 200_000
  static let piecesAtEnd = 5_000
  static let roundsAtEnd = 200
  /// The longest timeout of a call: ten years.
  static let timeout = Duration.seconds(3_650 * 86_400)
  /// How long a call without deadline may take.
  static let call = Duration.seconds(3_600)
  /// How long a caller without deadline waits for a server that does not answer.
  static let patience = Duration.seconds(600)
  /// In real time, for work that other threads may be about to bring before time moves on.
  static let glance = Duration.milliseconds(2)
}

/// Notices what the library ignores: `proceed` that comes too late, or for the second time.
private struct IgnoredProceedHandler: LogHandler {
  let run: Confined<ExplorerRun>
  let call: Int
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.debug

  static func logger(for run: ExplorerRun, _ call: Int) -> Logger {
    let run = Confined(run)
    return Logger(label: "explorer") { _ in IgnoredProceedHandler(run: run, call: call) }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { self.metadata[key] }
    set { self.metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    guard let hook = event.metadata?["hook"], "\(event.message)".hasPrefix("ignored") else { return }
    let (run, call) = (self.run, self.call)
    let text = "\(hook)"
    run.value.executor.run { run.value.rules.proceedWasIgnored(text, of: call, in: run.value) }
  }
}
