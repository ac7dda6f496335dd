internal import DequeModule

/// Decides in which order a call's parts pass its interceptors: what waits at which stage, what a `proceed` counts for,
/// where a new attempt starts, and what an answer or the end of a stream gives up.
///
/// It calls nobody and looks into no message. Stages are counted from the outermost one; the codec is a stage, too. A unary
/// call is a stream of one part in each direction.
///
/// Its parts are classes, each with one owner: exclusive access to a variable of a class need not be enforced at run time
/// where each access is over at once, unlike access to a structure that is changed as a whole.
final class PipelineOrder {
  /// How the pipeline continues after a request hook.
  enum RequestStep {
    /// The part goes to the stage behind.
    case pass(RequestPart)
    /// The part stays here, for now or for good.
    case stay
    /// These results take the place of what is inside.
    case answer([ResultPart])
  }

  /// How the pipeline continues after a response hook.
  enum ResultStep {
    /// The result goes to the stage outside.
    case pass(ResultPart)
    /// The result stays here, for now or for good.
    case stay
    /// The hook has ended the stream: what is inside is to be given up.
    case end
    /// The hook asks for a new attempt; if there is to be none, ``PipelineOrder/retryWasRefused(_:at:)``.
    case retry(RequestPart?, after: Duration)
  }

  private(set) var codec = 0
  let isUnary: Bool
  private let maximumWaiting: Int
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
  private var lastNumber = 0

  /// - Parameter maximumWaiting: How many parts wait at one stage, at most.
  init(isUnary: Bool, maximumWaiting: Int) {
    self.isUnary = isUnary
    self.maximumWaiting = max(maximumWaiting, 2)
  }

  /// Adds a stage at `index`, before anything flows.
  func insert(_ stage: Stage, at index: Int, isMessageStage: Bool) {
    // Taken out, so that each access to the variable is over at once.
    var stages = self.stages
    self.stages = []
    if stages.isEmpty {
      stages.reserveCapacity(8)
      stages.append(Stage(.codec, of: NoInterceptor.self))
    }
    stages.insert(stage, at: index)
    self.stages = stages
    if isMessageStage { self.codec += 1 }
  }

  /// A number for a visit, which is never used again.
  func takeNumber() -> Int {
    self.lastNumber += 1
    return self.lastNumber
  }

  // MARK: Levels

  /// Whether a stage has message hooks; else it has byte hooks.
  func isMessageStage(_ index: Int) -> Bool { index < self.codec }

  /// Begins the level of messages, or of bytes, with the first part that comes to it.
  ///
  /// - Parameter keepsMessages: Whether a hook of the level could ask for them again.
  func begin(atMessages: Bool, with first: RequestPart, maximumReplayBytes: Int, keepsMessages: Bool) {
    if atMessages {
      self.firstMessage = first
      self.messages = nil
    } else {
      self.firstBytes = first
      self.bytes = nil
    }
    guard !self.isUnary else { return }
    var log = ReplayLog<RequestPart>(maximumBytes: maximumReplayBytes)
    if !keepsMessages { log.drop() }
    self.setLevel(Level(log: log), atMessages: atMessages)
  }

  private func setLevel(_ level: Level, atMessages: Bool) {
    if atMessages { self.messages = level } else { self.bytes = level }
  }

  /// A part that follows the first one has come to the level.
  func note(_ part: RequestPart, atMessages: Bool) {
    (atMessages ? self.messages : self.bytes)?.note(part)
  }

  /// Counts the bytes that a message turned out to have against what may be kept.
  func charge(_ byteCount: Int) {
    self.messages?.log.charge(byteCount)
    self.bytes?.log.charge(byteCount)
  }

  /// Whether a retry could still send all messages again.
  var canReplay: Bool { self.messages?.log.isComplete == true || self.bytes?.log.isComplete == true }

  /// The next part to send again into a level.
  func takeReplay(atMessages: Bool) -> RequestPart? {
    (atMessages ? self.messages : self.bytes)?.takeReplay()
  }

  private func level(of index: Int) -> Level? { self.isMessageStage(index) ? self.messages : self.bytes }

  /// Whether a retry waits for its time.
  var isWaitingToRetry: Bool {
    self.messages?.isWaitingToRetry == true || self.bytes?.isWaitingToRetry == true
  }

  // MARK: Room

  /// Whether parts of the request that get there are thrown away.
  func isCut(at index: Int) -> Bool { self.cut.map { index >= $0 } ?? false }

  /// Whether a hook's stage takes another part of the request.
  func hasRoomForRequest(at index: Int) -> Bool {
    let stage = self.stages[index]
    return !stage.keepsRequests || (!stage.holdsHead && stage.requests.count < self.maximumWaiting)
  }

  /// Whether a hook's stage takes another result.
  func hasRoomForResult(at index: Int) -> Bool {
    let stage = self.stages[index]
    return !stage.keepsResults || stage.results.count < self.maximumWaiting
  }

  // MARK: The request

  func isRequestStraight(at index: Int) -> Bool { !self.stages[index].keepsRequests }

  /// A part passes a stage that has no hook for it.
  ///
  /// - Parameter mayPass: Whether there is room behind, and nothing waits in front.
  func pass(_ part: RequestPart, at index: Int, mayPass: Bool) -> RequestStep {
    if part.head != nil {
      self.stages[index].holdsHead = false
      self.stages[index].hasPassedHead = true
    }
    return self.goOn(part, from: index, mayPass)
  }

  private func goOn(_ part: RequestPart, from index: Int, _ mayPass: Bool) -> RequestStep {
    if mayPass { return .pass(part) }
    self.mayKeep = true
    self.stages[index].keepsRequests = true
    self.stages[index].requests.appendReady(part, as: self.takeNumber())
    return .stay
  }

  /// A hook is called with a part. It has the head until it has passed the head on.
  func willVisit(_ head: RequestHead?, at index: Int) {
    if head != nil { self.stages[index].holdsHead = true }
  }

  /// The hook has returned and not proceeded.
  func wait(_ part: RequestPart, at index: Int, as number: Int) {
    self.mayKeep = true
    if part.head != nil { self.stages[index].holdsHead = true }
    self.stages[index].keepsRequests = true
    self.stages[index].requests.appendWaiting(part, as: number)
  }

  /// The hook has proceeded before it returned.
  func didReturn(_ action: HookAction, at index: Int, given: RequestHead?, mayPass: Bool) -> RequestStep {
    if given != nil { self.stages[index].holdsHead = false }
    let step = self.step(action, at: index, given)
    guard case .pass(let part) = step else { return step }
    return self.goOn(part, from: index, mayPass)
  }

  /// The hook has proceeded later.
  ///
  /// - Returns: Nil if the visit does not count any more.
  func didRequest(_ action: HookAction, at index: Int, _ number: Int) -> RequestStep? {
    guard let given = self.stages[index].requests.waiting(number) else { return nil }
    if given.head != nil { self.stages[index].holdsHead = false }
    let step = self.step(action, at: index, given.head)
    switch step {
    case .pass(let part): self.stages[index].requests.resolve(number, with: part)
    case .stay: self.stages[index].requests.resolve(number, with: nil)
    case .answer: return step
    }
    // Released here, where nothing is accessed.
    withExtendedLifetime(given) {}
    return .stay
  }

  private func step(_ action: HookAction, at index: Int, _ given: RequestHead?) -> RequestStep {
    switch action {
    case .send(let part):
      if given != nil { self.stages[index].hasPassedHead = true }
      return .pass(part.inPlace(of: given, isUnary: self.isUnary))
    case .fail(let error): return self.fail(with: error, at: index)
    case .answer(let results): return .answer(results)
    case .drop, .receive, .retry, .metrics: return .stay
    }
  }

  /// A request hook fails the call.
  func fail(with error: ConnectError, at index: Int) -> RequestStep {
    var error = error
    error.isUnsent = true
    return .answer([self.failure(error, at: index)])
  }

  /// An error as a stage's results say it.
  func failure(_ error: ConnectError, at index: Int) -> ResultPart {
    guard self.isUnary else { return .failed(error) }
    return self.isMessageStage(index)
      ? .whole(AnyResponse(error: error)) : .wholeBytes(HTTPResponse(error: error))
  }

  /// The next part that can go on from a stage.
  func takeReadyRequest(at index: Int) -> RequestPart? {
    let stage = self.stages[index]
    guard stage.keepsRequests else { return nil }
    defer { stage.keepsRequests = !stage.requests.isEmpty }
    return stage.requests.takeReady()
  }

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
    if self.isUnary { self.setLevel(Level(log: ReplayLog(maximumBytes: 0)), atMessages: isMessages) }
    guard self.level(of: index)?.log.isComplete == true else { return nil }
    return request?.inPlace(of: first.head, isUnary: self.isUnary) ?? first
  }

  /// A new attempt at the first stage of the level of `index` begins after a delay.
  func waitToRetry(for index: Int) -> [Kept] {
    let isMessages = self.isMessageStage(index)
    let old = self.reset(from: isMessages ? 0 : self.codec + 1, keepingHeadsOutsideOf: index)
    if isMessages { self.messages?.log.restart() }
    self.level(of: index)?.isWaitingToRetry = true
    return old
  }

  /// The delay is over.
  ///
  /// - Returns: False if the retry does not count any more.
  func retry(for index: Int, with head: RequestPart, in epoch: Int) -> Bool {
    guard epoch == self.epoch else { return false }
    self.level(of: index)?.replay(head)
    return true
  }

  /// What is inside of a stage is given up, and parts of the request are thrown away from `cut` on.
  func close(insideOf index: Int, cuttingAt cut: Int) -> [Kept] {
    let old = self.reset(from: index + 1, keepingHeadsOutsideOf: 0)
    self.cut = cut
    return old
  }

  /// A stage starts a new attempt inside of itself.
  func reopen(insideOf index: Int) -> [Kept] {
    self.reset(from: index + 1, keepingHeadsOutsideOf: 0)
  }

  private func reset(from first: Int, keepingHeadsOutsideOf outer: Int) -> [Kept] {
    self.epoch += 1
    self.cut = nil
    let answer = self.answer
    if self.answerEntry != nil {
      self.answerEntry = nil
      self.answer = []
    }
    withExtendedLifetime(answer) {}
    if first == 0 { self.messages?.reset() }
    if first <= self.codec + 1 { self.bytes?.reset() }
    var kept: [Kept] = []
    for index in self.stages.indices.dropFirst(first) {
      if let part = self.stages[index].reset(keepsHead: index < outer) { kept.append(part) }
    }
    return kept
  }

  /// The call is over: nothing flows any more.
  ///
  /// - Returns: Which stages, from the outermost on, still wait for a result.
  func finish() -> [Bool] {
    self.epoch += 1
    self.cut = 0
    let waiting = self.stages.map { $0.hasPassedHead && !$0.isClosed }
    for index in self.stages.indices { self.stages[index].isClosed = true }
    return waiting
  }

  /// Nothing will flow any more: gives up the stages and all that is kept.
  func release() -> Remains? {
    let waiting = self.close(insideOf: -1, cuttingAt: 0)
    guard !self.stages.isEmpty else { return nil }
    let remains = Remains(
      waiting: waiting,
      stages: self.stages,
      messages: (self.firstMessage, self.messages),
      bytes: (self.firstBytes, self.bytes)
    )
    self.stages = []
    self.codec = 0
    self.messages = nil
    self.bytes = nil
    self.firstMessage = nil
    self.firstBytes = nil
    return remains
  }

  /// Whether nothing is kept anywhere: then parts pass in one go, and ``mayKeep`` is false until one is kept.
  func settle() {
    self.mayKeep = false
    for stage in self.stages {
      stage.settle()
      if !stage.isEmpty { self.mayKeep = true }
    }
  }
}
