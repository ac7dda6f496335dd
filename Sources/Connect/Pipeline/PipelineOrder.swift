internal import DequeModule

/// Decides in which order a call's parts pass its stages: where a new attempt starts, and what an answer or the end of a
/// stream gives up. What waits at one stage, the ``Stage`` decides.
///
/// It calls nobody and looks into no message. Stages are counted from the outermost one; the codec is a stage, too. A unary
/// call is a stream of one part in each direction.
///
/// Its parts are classes, each with one owner: exclusive access to a variable of a class need not be enforced at run time
/// where each access is over at once, unlike access to a structure that is changed as a whole.
final class PipelineOrder {
  /// What was there when the call was over, to be released by whoever gets it.
  struct Remains {
    let waiting: [Stage.Kept]
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
  /// What the levels were started with; nil until then, and if they have no hooks.
  private var firstMessage: RequestPart?
  private var firstBytes: RequestPart?
  /// Nil for unary calls, until an attempt is started again.
  private(set) var messages: Level?
  private(set) var bytes: Level?
  /// From this stage on, parts of the request are thrown away, and no result comes from there; nil if that is nowhere so.
  private(set) var cut: Int?
  /// The stage where results enter that another one gives in place of what is inside; nil if there are none.
  private(set) var answerEntry: Int?
  private var answer: Deque<ResultPart> = []
  /// Grows with each reset, so that a retry that waits knows whether it still counts.
  private(set) var epoch = 0
  /// Whether a stage may keep a part.
  var mayKeep = false

  init(isUnary: Bool, maximumWaiting: Int) {
    self.isUnary = isUnary
    self.maximumWaiting = max(maximumWaiting, 2)
  }

  /// Adds a stage at `index`, before anything flows.
  func insert(_ stage: Stage, at index: Int, isMessageStage: Bool) {
    // Taken out, so that each access to the variable is over at once.
    var stages: [Stage] = []
    swap(&stages, &self.stages)
    if stages.isEmpty {
      stages.reserveCapacity(8)
      stages.append(Stage(self.isUnary ? .response : .stream, of: NoInterceptor.self))
    }
    if index == stages.count { stages.append(stage) } else { stages.insert(stage, at: index) }
    self.stages = stages
    if isMessageStage { self.codec += 1 }
  }

  /// Whether nothing is kept anywhere: then parts pass in one go, and ``mayKeep`` is false until one is kept.
  func settle() {
    self.mayKeep = self.stages.contains {
      !HookWindow.isClear($0.requests) || !HookWindow.isClear($0.results)
    }
  }

  // MARK: Levels

  /// Whether a stage has message hooks; else it has byte hooks.
  func isMessageStage(_ index: Int) -> Bool { index < self.codec }

  /// Begins the level of messages, or of bytes, with the first part that comes to it.
  ///
  /// - Parameter log: What a stream is to keep for another attempt.
  func begin(atMessages: Bool, with first: RequestPart, _ log: @autoclosure () -> ReplayLog<RequestPart>) {
    let level = self.isUnary ? nil : Level(log: log())
    if atMessages {
      (self.firstMessage, self.messages) = (first, level)
    } else {
      (self.firstBytes, self.bytes) = (first, level)
    }
  }

  /// Whether a retry could still send all messages again.
  var canReplay: Bool { self.messages?.log.isComplete == true || self.bytes?.log.isComplete == true }

  /// Whether a retry waits for its time.
  var isWaitingToRetry: Bool {
    self.messages?.isWaitingToRetry == true || self.bytes?.isWaitingToRetry == true
  }

  /// Whether parts of the request that get there are thrown away.
  func isCut(at index: Int) -> Bool { self.cut.map { index >= $0 } ?? false }

  // MARK: Attempts

  /// The next result of an answer.
  func takeAnswer() -> ResultPart? { self.answer.popFirst() }

  /// Results take the place of what is inside of a stage. To be called once that is given up.
  func setAnswer(_ results: [ResultPart], at index: Int) {
    self.answerEntry = index - 1
    self.answer = Deque(results)
  }

  /// Prepares a retry that a hook has asked for: a new attempt at the first stage of its level.
  ///
  /// - Parameter request: What to start with; nil for what the level was first started with.
  /// - Returns: What to start with; nil if not all that was sent is still there.
  func retryHead(_ request: RequestPart?, at index: Int) -> RequestPart? {
    let isMessages = self.isMessageStage(index)
    guard let first = isMessages ? self.firstMessage : self.firstBytes else { return nil }
    if self.isUnary {
      let level = Level(log: ReplayLog(maximumBytes: 0))
      if isMessages { self.messages = level } else { self.bytes = level }
    }
    guard (isMessages ? self.messages : self.bytes)?.log.isComplete == true else { return nil }
    return request?.inPlace(of: first.head, isUnary: self.isUnary) ?? first
  }

  /// A new attempt at the first stage of the level of `index` begins after a delay.
  func waitToRetry(for index: Int) -> [Stage.Kept] {
    let isMessages = self.isMessageStage(index)
    let old = self.reset(from: isMessages ? 0 : self.codec + 1, keepingHeadsOutsideOf: index)
    if isMessages { self.messages?.restart() }
    (isMessages ? self.messages : self.bytes)?.isWaitingToRetry = true
    return old
  }

  /// The delay is over.
  ///
  /// - Returns: False if the retry does not count any more.
  func retry(for index: Int, with head: RequestPart, in epoch: Int) -> Bool {
    guard epoch == self.epoch else { return false }
    (self.isMessageStage(index) ? self.messages : self.bytes)?.replay(head)
    return true
  }

  /// What is inside of a stage is given up.
  ///
  /// - Parameter cut: From there on, parts of the request are thrown away; nil where a new attempt starts.
  func close(insideOf index: Int, cuttingAt cut: Int?) -> [Stage.Kept] {
    let old = self.reset(from: index + 1, keepingHeadsOutsideOf: 0)
    self.cut = cut
    return old
  }

  private func reset(from first: Int, keepingHeadsOutsideOf outer: Int) -> [Stage.Kept] {
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
    var kept: [Stage.Kept] = []
    for index in self.stages.indices.dropFirst(first) {
      let old = self.stages[index].reset(keepsHead: index < outer)
      if !HookWindow.isClear(old.requests) || !HookWindow.isClear(old.results) { kept.append(old) }
    }
    return kept
  }

  /// The call is over: nothing flows any more.
  ///
  /// - Returns: Which stages, from the outermost on, still wait for a result.
  func finish() -> [Bool] {
    self.epoch += 1
    self.cut = 0
    return self.stages.map { $0.finish() }
  }

  /// Nothing will flow any more: gives up the stages and all that is kept.
  func release() -> Remains? {
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
