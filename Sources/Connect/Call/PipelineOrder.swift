internal import DequeModule

/// Decides in which order a call's parts pass its stages. It also decides where a new attempt starts, and what an
/// answer or the end of a stream abandons. ``HookStates`` decide which parts wait at a stage.
///
/// It is the call's ``HookStates``, too, which saves an object. It calls no hooks, and does not look into messages.
/// Stages are counted from the outermost one; the codec is a stage, too. A unary call is a stream of one part in each
/// direction.
///
/// Its parts are classes, each with one owner. Accesses to variables of these classes end at once, and need no
/// exclusivity check at run time. A structure that is changed as a whole would need one.
class PipelineOrder: HookStates {
  /// What was left when the call was over. The caller of ``PipelineOrder/takeRemains()`` releases it.
  struct Remains {
    let waiting: [HookStates.Waiting]
    let stages: [Stage]
    let messages: (first: RequestPart?, level: Level?)
    let bytes: (first: RequestPart?, level: Level?)
  }

  private(set) var codec = 0
  let isUnary: Bool
  /// How many parts wait at one stage, at most.
  let maximumWaiting: Int
  /// Empty without interceptors; then there is not even a codec.
  private(set) var stages: [Stage] = []
  /// The first part of each level; nil until it arrives, and if the level has no hooks.
  private(set) var firstMessage: RequestPart?
  private(set) var firstBytes: RequestPart?
  /// Nil for unary calls, until the first retry.
  private(set) var messages: Level?
  private(set) var bytes: Level?
  /// From this stage on, parts of the request are dropped, and no result arrives; nil if there is no such stage.
  private(set) var cut: Int?
  /// The stage where the results of an answer enter; nil if there is no answer.
  private(set) var answerEntry: Int?
  private var answer: Deque<ResultPart> = []
  /// Grows with each reset, so that a waiting retry knows whether it is obsolete.
  private(set) var epoch = 0
  /// The stages that may have something to do.
  var active = ActiveStages()

  init(isUnary: Bool, maximumWaiting: Int) {
    self.isUnary = isUnary
    self.maximumWaiting = max(maximumWaiting, 2)
  }

  /// Sets the stages, before anything flows.
  ///
  /// - Parameter codec: The index of the codec among them.
  func begin(with stages: [Stage], codec: Int) {
    self.begin(withStages: stages.count)
    self.stages = stages
    self.codec = codec
  }

  /// Whether a stage may keep a part. If none does, parts pass in one go until one is kept.
  var mayKeep: Bool {
    get { !self.active.keepers.isEmpty }
    set { self.active.mayKeep(in: newValue ? self.stages.indices : 0..<0) }
  }

  /// Updates ``mayKeep``.
  func settle() {
    // Taken out and put back, so that each exclusive access to the variable ends at once.
    var active = self.active
    active.settle(self.stages.count) { self.stages[$0].keepsPart(at: $0, in: self) }
    self.active = active
  }

  // MARK: Levels

  /// Begins the level of messages, or of bytes, with the first part that comes to it.
  ///
  /// - Parameter log: The log in which a stream keeps messages for another attempt.
  func begin(atMessages: Bool, with first: RequestPart, _ log: @autoclosure () -> ReplayLog<RequestPart>) {
    let level = self.isUnary ? nil : Level(log: log())
    if atMessages {
      level?.isForRestart = !self.stages.prefix(self.codec).contains(where: \.seesResult)
      (self.firstMessage, self.messages) = (first, level)
    } else {
      (self.firstBytes, self.bytes) = (first, level)
    }
  }

  /// Whether a retry could still send all messages again.
  var canReplay: Bool { self.messages?.log.isComplete == true || self.bytes?.log.isComplete == true }

  /// Whether a retry waits for its delay to end.
  var isWaitingToRetry: Bool {
    self.messages?.isWaitingToRetry == true || self.bytes?.isWaitingToRetry == true
  }

  /// Whether parts of the request that reach this stage are dropped.
  func isCut(at index: Int) -> Bool { self.cut.map { index >= $0 } ?? false }

  // MARK: Attempts

  /// The next result of an answer.
  func takeAnswer() -> ResultPart? { self.answer.popFirst() }

  /// Lets results replace everything inside of a stage, which must be closed before.
  func setAnswer(_ results: [ResultPart], at index: Int) {
    self.answerEntry = index - 1
    self.answer = Deque(results)
  }

  /// Prepares a retry that a hook has asked for: a new attempt at the first stage of its level.
  ///
  /// - Parameter request: The request to start with; nil for the level's first part.
  /// - Returns: The part to start with; nil if the messages that were sent are no longer complete.
  func retryHead(_ request: RequestPart?, at index: Int) -> RequestPart? {
    let isMessages = index < self.codec
    guard let first = isMessages ? self.firstMessage : self.firstBytes else { return nil }
    if self.isUnary {
      let level = Level(log: ReplayLog(maximumBytes: 0))
      if isMessages { self.messages = level } else { self.bytes = level }
    }
    guard (isMessages ? self.messages : self.bytes)?.log.isComplete == true else { return nil }
    return request?.inPlace(of: first.head, isUnary: self.isUnary).withMessage(of: first) ?? first
  }

  /// A new attempt at the first stage of the level of `index`, or of the call, begins after a delay.
  ///
  /// - Parameters:
  ///   - index: The stage of the interceptor that asks for it; -1 for a call hook. Interceptors outside of it still wait for
  ///     a result.
  ///   - log: For a retry from the start, if nothing was sent yet, or nothing follows what was sent.
  func waitToRetry(
    for index: Int,
    from start: RetryStart = .level,
    _ log: @autoclosure () -> ReplayLog<RequestPart> = ReplayLog(maximumBytes: 0)
  ) -> [HookStates.Waiting] {
    let isMessages = index < self.codec || start == .start
    let old = self.reset(from: isMessages ? 0 : self.codec + 1, keepingHeadsOutsideOf: max(index, 0))
    if start == .start, self.messages == nil { self.messages = Level(log: log()) }
    if isMessages { self.messages?.restart() }
    (isMessages ? self.messages : self.bytes)?.isWaitingToRetry = true
    return old
  }

  /// The delay is over.
  ///
  /// - Returns: False if the retry is obsolete.
  func retry(
    for index: Int,
    from start: RetryStart = .level,
    with head: RequestPart,
    in epoch: Int
  ) -> Bool {
    guard epoch == self.epoch else { return false }
    if start == .start, self.codec > 0 { self.firstMessage = head }
    (index < self.codec || start == .start ? self.messages : self.bytes)?.replay(head)
    return true
  }

  /// Abandons everything inside of a stage.
  ///
  /// - Parameter cut: From this stage on, parts of the request are dropped; nil if a new attempt starts.
  func close(insideOf index: Int, cuttingAt cut: Int?) -> [HookStates.Waiting] {
    let old = self.reset(from: index + 1, keepingHeadsOutsideOf: 0)
    self.cut = cut
    // Parts of the request do not get behind the cut, and there is no attempt inside.
    self.active.firstIdle = cut.map { max($0, index + 1) } ?? .max
    return old
  }

  private func reset(from first: Int, keepingHeadsOutsideOf outer: Int) -> [HookStates.Waiting] {
    self.epoch += 1
    self.cut = nil
    if self.answerEntry != nil {
      let answer = self.answer
      self.answerEntry = nil
      self.answer = []
      withExtendedLifetime(answer) {}
    }
    if first == 0 { self.messages?.reset() }
    if first <= self.codec + 1 { self.bytes?.reset() }
    let busy = self.active.busy(insideOf: first - 1, of: self.stages.count)
    self.active.firstIdle = .max
    return self.reset(busy, keepingHeadsOutsideOf: outer)
  }

  /// The call is over: nothing flows any more.
  ///
  /// - Returns: Which stages, from the outermost on, still wait for a result.
  func finish() -> [Bool] {
    self.epoch += 1
    self.cut = 0
    return self.finishStages()
  }

  /// Nothing will flow any more: returns the stages, and all parts that are kept.
  func takeRemains() -> Remains? {
    let waiting = self.close(insideOf: -1, cuttingAt: 0)
    guard !self.stages.isEmpty else { return nil }
    var stages: [Stage] = []
    swap(&stages, &self.stages)
    self.codec = 0
    return Remains(
      waiting: waiting,
      stages: stages,
      messages: (self.firstMessage.take(), self.messages.take()),
      bytes: (self.firstBytes.take(), self.bytes.take())
    )
  }
}
