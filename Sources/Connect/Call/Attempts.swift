internal import NIOCore

/// The attempts of a call: starts them, counts them, and says whether there may be another. Hook retries, repeated
/// `next` calls and hedges all start here, so that one place enforces the cap and the delay.
///
/// Confined to the call's executor.
final class Attempts {
  /// The call's plan, with the service's rules once they are known.
  var plan: CallPlan {
    didSet { self.search?.plan = self.plan }
  }
  /// The number of the attempt that was started last, from 1 on.
  private(set) var number = 1
  /// How many of the attempts are hedges.
  private(set) var hedgeCount = 0
  /// The running attempt of a call that does not hedge.
  private var only: Attempt?
  /// Holds the running attempts of a call that hedges.
  private var hedge: Hedge?
  /// Finds the protocol that gets through; nil if the client speaks one protocol.
  let search: ProtocolSearch?
  var transparentRetries = Attempt.TransparentRetries()
  private var retryTimer: (any CallTimer)?
  /// Whether hooks are being told of the call's end. They can neither retry nor end the call then.
  var isEnding = false

  /// The hooks for metrics, outermost first.
  var metricsHooks: [MetricsReport.Hook] = []
  /// The interceptors that observe attempts; nil if there are none.
  var observers: AttemptObservers?
  /// Abandoned attempts whose metrics hooks, or whose observers, have not run yet. The call's end is reported after
  /// these.
  var pendingMetrics = 0
  /// How many attempts went to the network.
  private var sentCount = 0
  /// Whether call hooks need the summary of the last attempt.
  var keepsSummary = false
  /// Summary of the last attempt whose outcome counts, for call hooks.
  private var summary: CallOutcome.Exchange?

  init(_ plan: CallPlan) {
    self.plan = plan
    self.search = plan.choices.map { ProtocolSearch($0, plan) }
  }

  // MARK: Starting

  func transmit(_ part: consuming RequestPart, _ call: Call) {
    switch consume part {
    case .wholeBytes(let head, let bytes): self.begin(head, .message(bytes), call)
    case .whole(let head, let message):
      self.begin(head, .message(MessageBox<ByteBuffer>.of(message).message), call)
    case .head(let head): self.begin(head, .messages, call)
    case .bytes(let bytes): self.only?.send(bytes)
    case .message(let message): self.only?.send(MessageBox<ByteBuffer>.of(message).message)
    case .end: self.only?.finishRequest()
    }
  }

  /// Starts the attempts for a request: one, or several if the call hedges.
  private func begin(_ request: RequestHead, _ body: consuming Attempt.Body, _ call: Call) {
    let request = self.search?.routed(request) ?? request
    guard let policy = self.plan.hedgingPolicy else {
      self.start(request, body, call)
      return
    }
    // The user's code that ran last may have ended the call.
    guard !call.isOver else { return }
    let hedge = Hedge(policy, request, self)
    self.hedge = hedge
    hedge.begin(after: self.start(request, body, call), call)
  }

  /// Starts an attempt. All attempts start here. One that the server certainly did not process starts itself again.
  ///
  /// - Parameters:
  ///   - isHedge: Whether earlier attempts run.
  ///   - replaced: The attempt that the new one replaces. The two count as one.
  @discardableResult
  func start(
    _ request: RequestHead,
    _ body: consuming Attempt.Body,
    _ call: Call,
    isHedge: Bool = false,
    replacing replaced: Attempt? = nil
  ) -> Attempt {
    let plan = self.search?.plan ?? self.plan
    let attempt = Attempt(self, plan, request, call, isHedge: isHedge, replacing: replaced)
    if let hedge = self.hedge { hedge.append(attempt, replacing: replaced) } else { self.only = attempt }
    let isSent = attempt.start(body)
    if replaced != nil { self.hedge?.didReplaceAttempt(by: attempt) } else if isSent { self.sentCount += 1 }
    return attempt
  }

  /// Starts a further attempt while earlier ones run.
  func startHedge(_ request: RequestHead, _ sent: consuming SentRequest, _ call: Call) {
    sent.head.headers["grpc-previous-rpc-attempts"] = ["\(self.number)"]
    self.number += 1
    self.hedgeCount += 1
    self.start(request, .sent(sent), call, isHedge: true)
  }

  /// Takes one retry from the cap. Returns false if the cap is reached or the delay would pass the deadline.
  func takeRetry(after delay: Duration, _ call: Call) -> Bool {
    guard !call.isOver, !self.isEnding else { return false }
    let limits = RetryLimits(
      maximumRetries: self.plan.environment.settings.maximumRetries,
      remainingTime: self.plan.remainingTime
    )
    guard limits.allowRetry(after: delay, count: self.number - self.hedgeCount - 1) else { return false }
    self.number += 1
    self.drop()
    return true
  }

  /// Runs `work` after a delay, unless the call is over by then.
  func afterDelay(_ delay: Duration, _ call: Call, _ work: @escaping () -> Void) {
    guard delay > .zero else {
      work()
      return
    }
    self.retryTimer?.cancel()
    let here = Confined((attempts: self, work: work), to: call.executor)
    self.retryTimer = call.executor.schedule(after: delay.clamped) {
      guard !call.isOver else { return }
      here.value.attempts.retryTimer = nil
      here.value.work()
    }
  }

  // MARK: What runs

  var running: Attempt? { self.only }

  var responseHead: HTTPResponseHead? { self.only?.response.head }

  /// An attempt may have results.
  func hasResults(_ attempt: Attempt, _ call: Call) {
    if attempt === self.only || self.hedge?.runs(attempt) == true { call.pump() }
  }

  func takeArrived(_ call: Call, forByteHooks: Bool) -> ResultPart? {
    guard self.plan.isUnary else { return self.only?.next() }
    let attempt: Attempt
    var collected: SingleMessage
    if let hedge = self.hedge {
      guard let decided = hedge.takeResponse(call) else { return nil }
      (collected, attempt) = decided
    } else {
      guard let only = self.only, let response = only.takeResponse() else { return nil }
      (collected, attempt) = (response, only)
    }
    self.drop()
    self.note(attempt)
    // Without byte hooks and a parser, no `HTTPResponse` is needed.
    if !forByteHooks, self.plan.parser == nil {
      if attempt.response.hasLent, let bytes = collected.takeBytes() {
        let response = self.plan.decode(consume bytes, collected.headers, collected.trailers, 200)
        self.plan.environment.decoders.reclaim(attempt.response, on: call.executor)
        return .whole(response)
      }
      if case .success(.bytes(let bytes)) = collected.result {
        return .whole(self.plan.decode(bytes, collected.headers, collected.trailers, 200))
      }
    }
    return .wholeBytes(attempt.response.makeResponse(collected, to: attempt.request))
  }

  /// Abandons the attempts on the wire, if any.
  func drop() {
    if let attempt = self.only {
      self.only = nil
      self.note(attempt)
      attempt.cancel()
    }
    if let hedge = self.hedge {
      self.hedge = nil
      if let last = hedge.last { self.note(last) }
      hedge.cancel()
    }
  }

  /// The call is over.
  func end() {
    if let timer = self.retryTimer {
      self.retryTimer = nil
      timer.cancel()
    }
    self.drop()
    self.metricsHooks = []
    if self.observers != nil { self.observers = nil }
  }

  // MARK: What hooks are told

  private func note(_ attempt: Attempt) {
    if self.keepsSummary, let summary = attempt.traffic.summary(attempt.response.head) {
      self.summary = summary
    }
  }

  /// What call hooks hear of a call that ends now.
  func facts(messagesSent: Int, messagesReceived: Int) -> CallOutcome.Facts {
    if let last = self.only ?? self.hedge?.last { self.note(last) }
    return CallOutcome.Facts(
      messagesSent: messagesSent,
      messagesReceived: messagesReceived,
      attempts: self.sentCount,
      exchange: self.summary
    )
  }
}
