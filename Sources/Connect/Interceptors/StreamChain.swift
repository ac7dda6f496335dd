internal import DequeModule

/// The hooks of one level (messages or bytes) of a stream: a lane down, a lane up, and what concerns both,
/// which is failing, answering and repeating.
///
/// Confined to the call's executor, which makes it `Sendable`.
final class StreamChain<RequestMessage: Sendable, ResponseMessage: Sendable>: @unchecked Sendable {
  typealias Hooks = StreamHooks<RequestMessage, ResponseMessage>
  typealias AsyncBody = AsyncStreamStage<RequestMessage, ResponseMessage>.Body

  /// An interceptor's part in this level.
  struct Part {
    enum Form {
      case hooks(Hooks)
      case async(AsyncBody)
    }

    let form: Form
    /// For messages.
    let interceptor: any Interceptor.Type

    init(_ form: Form, of interceptor: any Interceptor.Type) {
      self.form = form
      self.interceptor = interceptor
    }
  }

  private typealias DownLane = Lane<RequestPart<RequestMessage>>
  private typealias UpLane = Lane<StreamResult<ResponseMessage>>

  private enum Stage {
    case hooks(
      RequestHookStage<RequestMessage, ResponseMessage>,
      ResultHookStage<RequestMessage, ResponseMessage>
    )
    case async(AsyncStreamStage<RequestMessage, ResponseMessage>)

    func reset() {
      switch self {
      case .hooks(let request, let result):
        request.reset()
        result.reset()
      case .async(let stage):
        stage.reset()
      }
    }

    /// A new attempt begins, and this stage has had no end of the old one.
    func restart() {
      switch self {
      case .hooks(let request, let result):
        request.restart()
        result.reset()
      case .async(let stage):
        stage.reset()
      }
    }

    func release() {
      switch self {
      case .hooks(let request, let result):
        request.release()
        result.release()
      case .async(let stage):
        stage.reset()
      }
    }
  }

  /// What is around the chain. All of it is dropped when the call is over.
  struct Surroundings {
    /// Takes a part of the request that has passed all stages.
    var down: (RequestPart<RequestMessage>) -> Void
    var downHasRoom: () -> Bool
    /// Takes a result that has passed all stages.
    var up: (StreamResult<ResponseMessage>) -> Void
    var upHasRoom: () -> Bool
    var upWants: () -> Bool
    /// Gives up whatever goes on below.
    var abandon: () -> Void
    var pump: () -> Void
    /// Runs jobs where no `next` of this level is pending.
    var runner: () -> any JobRunner
  }

  /// Not retained, since the call owns the chain; see ``UnaryChain``.
  unowned let call: Call
  /// Whether messages are bytes. Then they are counted once, since a retry here does not encode them again.
  let isEncoded: Bool
  private var surroundings: Surroundings?
  private var hooks: [Hooks?]
  private var stages: [Stage] = []
  /// Cut where a stage has answered or ended the stream, or where what is inside was given up.
  private var downLane: DownLane
  private var upLane: UpLane

  private var head: HTTPRequest<Void>?
  private var log: ReplayLog<RequestMessage>
  private var hasEnded = false
  /// Parts to send again before new ones.
  private var replay: Deque<RequestPart<RequestMessage>> = []
  /// Results that a stage gives in place of what is inside, and where they enter the lane up.
  private var answer: (entry: Int, results: Deque<StreamResult<ResponseMessage>>)?
  private var isWaitingToRetry = false
  /// Grows with each attempt that is started here.
  private var epoch = 0

  init(
    call: Call,
    parts: [Part],
    isEncoded: Bool,
    surroundings: Surroundings
  ) {
    self.call = call
    self.isEncoded = isEncoded
    self.surroundings = surroundings
    self.log = ReplayLog(maximumBytes: 0)
    self.hooks = parts.map { if case .hooks(let hooks) = $0.form { hooks } else { nil } }
    self.downLane = Lane(stages: [], sink: surroundings.down, sinkHasRoom: surroundings.downHasRoom)
    self.upLane = Lane(stages: [], sink: surroundings.up, sinkHasRoom: surroundings.upHasRoom)
    let maximumWaiting = max(call.client.config.limits.maximumWaitingValues, 2)
    for (index, part) in parts.enumerated() {
      switch part.form {
      case .hooks(let hooks):
        self.stages.append(
          .hooks(
            RequestHookStage(
              index: index,
              hooks: hooks,
              interceptor: part.interceptor,
              chain: self,
              maximumWaiting: maximumWaiting
            ),
            ResultHookStage(
              index: index,
              hooks: hooks,
              interceptor: part.interceptor,
              chain: self,
              maximumWaiting: maximumWaiting
            )
          )
        )
      case .async(let body):
        self.stages.append(
          .async(AsyncStreamStage(index: index, interceptor: part.interceptor, chain: self, body: body))
        )
      }
    }
    self.downLane = Lane(
      stages: self.stages.map { stage -> DownLane.Stage in
        switch stage {
        case .hooks(let request, _): request
        case .async(let stage): stage.requestSide
        }
      },
      sink: surroundings.down,
      sinkHasRoom: surroundings.downHasRoom
    )
    self.upLane = Lane(
      stages: self.stages.reversed().map { stage -> UpLane.Stage in
        switch stage {
        case .hooks(_, let result): result
        case .async(let stage): stage.resultSide
        }
      },
      sink: surroundings.up,
      sinkHasRoom: surroundings.upHasRoom
    )
  }

  // MARK: Down

  /// Starts the first attempt.
  func start(_ head: HTTPRequest<Void>) {
    self.reset()
    self.head = head
    self.log = ReplayLog(maximumBytes: self.call.client.config.retries.maximumReplayBytes)
    // Without a hook that could ask for a retry nothing is kept.
    if !self.hooks.contains(where: { $0?.streamResultFunction != nil }) { self.log.drop() }
    self.hasEnded = false
    self.downLane.accept(.head(head))
  }

  /// Whether a message, or the end, can be sent down now.
  var hasRoom: Bool {
    !self.isWaitingToRetry && self.replay.isEmpty && self.downLane.hasRoom()
  }

  func send(_ message: RequestMessage) {
    self.log.append(message)
    self.downLane.accept(.message(message))
  }

  /// Sends a message if nothing waits in front of it, as far as ``Surroundings/down``.
  ///
  /// - Returns: What is to go down there; nil if the message is kept here or was dropped.
  func passDown(_ message: RequestMessage) -> RequestMessage? {
    self.log.append(message)
    var message = message
    for stage in self.stages {
      guard case .hooks(let hooks, _) = stage, let passed = hooks.pass(message) else {
        self.downLane.didKeep()
        return nil
      }
      message = passed
    }
    return message
  }

  func end() {
    self.hasEnded = true
    self.downLane.accept(.end)
  }

  /// Counts the bytes that messages turned out to have against what may be kept of them.
  func charge(_ byteCount: Int) {
    self.log.charge(byteCount)
    for case .async(let stage) in self.stages { stage.charge(byteCount) }
  }

  // MARK: Up

  /// Whether what comes from inside is of no interest any more.
  private var isInsideClosed: Bool { self.downLane.cut != nil || self.isWaitingToRetry }

  /// Whether a stage has ended the stream for all that is inside it.
  var isAnswered: Bool { self.downLane.cut != nil }

  /// Whether results should be brought from inside.
  var wants: Bool {
    guard !self.isInsideClosed, let isWanted = self.surroundings?.upWants() else { return false }
    return self.upLane.wants(isWantedBehind: isWanted)
  }

  /// Whether a result from inside can be taken.
  var canReceive: Bool { self.isInsideClosed || self.upLane.hasRoom() }

  /// Takes a result from inside.
  func receive(_ result: StreamResult<ResponseMessage>) {
    guard !self.isInsideClosed else { return }
    self.upLane.accept(result)
  }

  /// Whether nothing waits in this level, and messages may pass with ``passDown(_:)`` and ``passUp(_:)``.
  var isStraight: Bool {
    !self.upLane.mayKeep && !self.downLane.mayKeep && self.answer == nil && self.replay.isEmpty
      && !self.isInsideClosed
  }

  /// Takes a message from inside.
  ///
  /// - Returns: What is to go up; nil if the message is kept here or was dropped.
  func passUp(_ message: ResponseMessage) -> ResponseMessage? {
    var message = message
    for stage in self.stages.reversed() {
      guard case .hooks(_, let hooks) = stage, let passed = hooks.pass(message) else {
        self.upLane.didKeep()
        return nil
      }
      message = passed
    }
    return message
  }

  /// Takes an end that what is below has found, out of order.
  func fail(_ error: ConnectError) {
    self.answer(at: self.stages.count, with: [.failed(error)])
  }

  // MARK: Movement

  func pump() {
    self.surroundings?.pump()
  }

  /// Moves what can move up.
  func pumpUp() -> Bool {
    guard let isWanted = self.surroundings?.upWants() else { return false }
    if self.upLane.pump(isWantedBehind: isWanted) { return true }
    guard let answer = self.answer, self.upLane.wants(at: answer.entry, isWantedBehind: isWanted),
      let result = self.answer?.results.popFirst()
    else { return false }
    self.upLane.accept(result, at: answer.entry)
    return true
  }

  /// Moves what can move down.
  func pumpDown() -> Bool {
    guard !self.isWaitingToRetry else { return false }
    var hasMoved = self.downLane.pump(isWantedBehind: true)
    while !self.replay.isEmpty, self.downLane.hasRoom() {
      self.downLane.accept(self.replay.removeFirst())
      hasMoved = true
    }
    return hasMoved
  }

  // MARK: For stages

  func answer(at stage: Int, with results: [StreamResult<ResponseMessage>]) {
    self.closeInside(of: stage - 1, cuttingAt: stage)
    self.answer = (entry: self.stages.count - stage, results: Deque(results))
    self.pump()
  }

  func closeInside(of stage: Int) {
    self.closeInside(of: stage, cuttingAt: stage)
  }

  /// Gives up what is inside for a stage that may start a new attempt there.
  func giveUpInside(of stage: Int) {
    self.closeInside(of: stage, cuttingAt: stage + 1)
  }

  /// Opens the inside again for a stage that starts a new attempt there.
  func reopenInside(of stage: Int) {
    self.giveUpInside(of: stage)
    self.downLane.mend()
  }

  private func closeInside(of stage: Int, cuttingAt cut: Int) {
    self.answer = nil
    self.downLane.cut(at: cut)
    for index in self.stages.indices where index > stage { self.stages[index].reset() }
    self.surroundings?.abandon()
  }

  func retry(at stage: Int, _ request: HTTPRequest<Void>?, after delay: Duration) -> Bool {
    guard var head = request ?? self.head, self.log.isComplete, self.call.takeRetry(after: delay) else {
      return false
    }
    head.complete(from: self.head?.head)
    let restarted = head
    self.reset(restarting: stage)
    self.surroundings?.abandon()
    if !self.isEncoded { self.log.restart() }
    self.isWaitingToRetry = true
    let epoch = self.epoch
    self.call.afterDelay(delay) {
      guard epoch == self.epoch else { return }
      self.isWaitingToRetry = false
      self.replay = [.head(restarted)]
      self.replay.append(contentsOf: self.log.elements.map { .message($0) })
      if self.hasEnded { self.replay.append(.end) }
      self.pump()
    }
    return true
  }

  /// Whether a retry could still send all messages again.
  var canRetry: Bool {
    self.log.isComplete || self.stages.contains { if case .async = $0 { true } else { false } }
  }

  /// Runs jobs of the stage at `index` where the nearest `next` outside of it was called.
  func runner(around index: Int) -> any JobRunner {
    for outer in stride(from: index - 1, through: 0, by: -1) {
      if case .async(let stage) = self.stages[outer], let runner = stage.innerRunner { return runner }
    }
    return self.surroundings?.runner() ?? self.call
  }

  /// Runs jobs of what is inside of this level, where the innermost `next` was called.
  var innerRunner: any JobRunner { self.runner(around: self.stages.count) }

  // MARK: End

  /// The outermost interceptor that has something and has not passed it on.
  var holder: HookHolder? {
    for stage in self.stages {
      let holder =
        switch stage {
        case .hooks(let request, let result): request.holder ?? result.holder
        case .async(let stage): stage.holder
        }
      if let holder { return holder }
    }
    return nil
  }

  /// Whether a hook has the request's head and has not passed it on.
  var holdsHead: Bool {
    self.stages.contains { if case .hooks(let request, _) = $0 { request.isHeadWaiting } else { false } }
  }

  /// Gives up what goes on in this level; ``start(_:)`` begins anew.
  func giveUp() {
    self.reset()
    self.downLane.cut(at: 0)
  }

  /// - Parameter outerCount: How many stages, from the outermost on, still wait for an end.
  private func reset(restarting outerCount: Int = 0) {
    self.epoch += 1
    self.answer = nil
    self.replay.removeAll()
    self.downLane.mend()
    self.isWaitingToRetry = false
    for (index, stage) in self.stages.enumerated() {
      if index < outerCount { stage.restart() } else { stage.reset() }
    }
  }

  /// Tells the stages that wait for results that `error` ends the call. They cannot change that.
  ///
  /// - Parameter executor: Where hooks may run tasks; that of the call, which may be gone.
  func terminate(with error: ConnectError, on executor: any TaskExecutor) {
    self.epoch += 1
    self.answer = nil
    self.replay.removeAll()
    self.downLane.cut(at: 0)
    for stage in self.stages.reversed() {
      switch stage {
      case .hooks(let request, let result):
        if request.hasPassedHead { result.observe(error, on: executor) }
      case .async(let stage):
        stage.end(with: error)
      }
    }
  }

  /// Lets go of the surroundings and of what async interceptors run.
  func release() {
    self.giveUp()
    self.surroundings = nil
    self.hooks = []
    for stage in self.stages { stage.release() }
  }
}
