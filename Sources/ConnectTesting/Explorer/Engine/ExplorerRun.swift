internal import Connect
internal import Foundation
internal import Logging

/// One schedule, with real calls in virtual time.
///
/// `@unchecked Sendable`: made and used on the thread of the exploration alone. Code under test reaches it from its
/// tasks, which run there; ``step(_:canFail:)`` and ``note(_:)`` go through the executor if they do not.
final class ExplorerRun: @unchecked Sendable {
  let executor = ExplorerExecutor()
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
  /// Since the last call began.
  private var pieces = 0
  private var allPieces = 0
  /// How many timers have fired since all calls ended.
  private var lateTimers = 0

  init(_ settings: ExplorerSettings, _ method: StreamType, _ chooser: Chooser, isTelling: Bool) {
    self.settings = settings
    self.method = method
    self.chooser = chooser
    self.callers = RunCallers(method, settings.idempotency)
    self.rules = OnlineRules(settings)
    let executor = self.executor
    self.log = RunLog(isTelling: isTelling) { [unowned executor] in executor.now }
  }

  // MARK: For the world

  func step(_ name: String, canFail: Bool) async throws {
    try Task.checkCancellation()
    let here = Confined(self)
    let number = await withCheckedContinuation { continuation in
      self.executor.run {
        continuation.resume(returning: here.value.steps.begin(name, canFail: canFail, in: here.value))
      }
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
    config.compression = Compression(responses: [])
    config.logger = IgnoredProceedHandler.logger(for: self)
    config.interceptors = self.chain(factories)
    self.callers.prepare(ProtocolClient(httpClient: ExplorerTransport(self), config: config), in: self)
    while self.log.finding == nil, self.goOn() {}
  }

  private func chain(_ factories: [InterceptorFactory]) -> [InterceptorFactory] {
    let here = Confined(self)
    let watched = factories.map { factory -> InterceptorFactory in
      { config in
        let interceptor = factory(config)
        here.value.instances.note(interceptor)
        return interceptor
      }
    }
    func neighbour(isOuter: Bool) -> InterceptorFactory {
      { _ in NeighbourInterceptor(here.value, isOuter: isOuter, number: here.value.callers.beginning) }
    }
    return [neighbour(isOuter: true)] + watched + [neighbour(isOuter: false)]
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
      return self.executor.ready.isEmpty ? self.letTimePass() : true
    }
    return self.letTimePass()
  }

  private func runPiece() {
    self.allPieces += 1
    guard self.allPieces < RunLimits.pieces else {
      self.log.find(
        "work ends",
        "the interceptors go on working without end and without waiting for anything"
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

  private func letTimePass() -> Bool {
    guard !self.callers.areAllOver else { return self.letRestPass() }
    if self.executor.reasonCount > 0 {
      guard let next = self.executor.nextTime, next < RunLimits.call else {
        self.endWaitingCalls("call %@ has not ended after an hour: an interceptor goes on and on")
        return true
      }
      self.executor.advance()
      return true
    }
    if self.server.keepsSomebodyWaiting {
      let waiting = self.server.callsKeptWaiting
      // Its deadline ends the call, or its caller gives up.
      if self.callers.callers.contains(where: {
        waiting.contains($0.call.number) && $0.timeout != nil && $0.isOpen
      }) {
        self.executor.advance()
        return true
      }
      if let call = waiting.first(where: { self.callers.open.contains($0) }) {
        self.callers.cancel(call, ": its caller has waited long enough", in: self)
        return true
      }
    }
    if self.waitForOtherThreads() { return true }
    self.endWaitingCalls(
      "nobody can end call %@ any more but its deadline or its caller: nothing else is left to wait for"
    )
    return true
  }

  /// Calls wait for nothing: an interceptor holds them.
  private func endWaitingCalls(_ reason: String) {
    guard let call = self.callers.open.first(where: { self.callers.callers[$0 - 1].call.cancelTime == nil })
    else {
      let call = self.callers.open.first.map { "\($0)" } ?? "?"
      self.log.find("each call ends", "call \(call) was cancelled and has not ended")
      return
    }
    guard self.settings.allowance.contains(.endlessCalls) else {
      self.log.find("each call ends", reason.replacingOccurrences(of: "%@", with: "\(call)"))
      return
    }
    self.callers.cancel(call, ": its caller has waited long enough", in: self)
  }

  /// All calls are over.
  private func letRestPass() -> Bool {
    guard let next = self.executor.nextTime else { return false }
    if next > self.callers.lastEnd + RunLimits.rest || self.lateTimers > 500 {
      if self.lateTimers >= 10, !self.settings.allowance.contains(.backgroundWork) {
        self.log.find(
          "background work ends",
          "something still wakes up 10 minutes after the last call has ended, as it did \(self.lateTimers) times before"
        )
      }
      return false
    }
    self.lateTimers += 1
    self.executor.advance()
    return true
  }

  /// - Returns: Whether another thread has brought work.
  private func waitForOtherThreads() -> Bool {
    let end = ContinuousClock.now + self.settings.patience
    while ContinuousClock.now < end {
      Thread.sleep(forTimeInterval: 0.001)
      self.executor.takeInbox()
      if !self.executor.ready.isEmpty { return true }
    }
    return false
  }

  /// Ends what is left: waits, calls, and what they hold.
  func end() {
    self.chooser.freeze()
    for call in self.callers.open { self.callers.cancel(call, "", in: self) }
    self.server.end()
    self.callers.release()
    for _ in 0..<200 {
      self.steps.endAll(in: self)
      var count = 0
      while !self.executor.ready.isEmpty || self.executor.ready.restorePostponed(), count < RunLimits.pieces {
        self.executor.runPiece(at: 0)
        count += 1
      }
      guard self.executor.nextTime != nil else { break }
      self.executor.advance()
    }
    self.executor.end()
  }
}

/// What no run needs.
private enum RunLimits {
  /// Pieces of work.
  static let pieces = 20_000
  /// How long a run may go on after its calls.
  static let rest = Duration.seconds(600)
  /// How long a call without deadline may take.
  static let call = Duration.seconds(3_600)
}

/// Notices what the library ignores: `proceed` that comes too late, or for the second time.
private struct IgnoredProceedHandler: LogHandler {
  let run: Confined<ExplorerRun>
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.debug

  static func logger(for run: ExplorerRun) -> Logger {
    let run = Confined(run)
    return Logger(label: "explorer") { _ in IgnoredProceedHandler(run: run) }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { self.metadata[key] }
    set { self.metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    guard let hook = event.metadata?["hook"], "\(event.message)".hasPrefix("ignored") else { return }
    let run = self.run
    let text = "\(hook)"
    run.value.executor.run { run.value.rules.proceedWasIgnored(text, in: run.value) }
  }
}
