internal import NIOCore

/// The attempts of a call that hedges, as its ``HedgingPolicy`` says: a request that goes out several times, until one
/// attempt decides the outcome.
///
/// Owned by the call, and confined to its executor, which makes it `Sendable`.
final class Hedge: @unchecked Sendable {
  private struct Attempt {
    let exchange: Exchange
    /// Whether it is not the first one.
    let isHedge: Bool
    var collector: SingleMessageCollector<ByteBuffer>
    var hasRetriedTransparently = false
  }

  /// Not retained, since the call owns this: exchanges and the timer retain it.
  private unowned let call: Call
  private let policy: HedgingPolicy
  private let request: RequestHead
  /// What each attempt sends; nil once no other will start.
  private var written: Exchange.Written?
  /// Those that run.
  private var attempts: [Attempt] = []
  /// Will start the next attempt.
  private var timer: (any CallTimer)?

  init(call: Call, policy: HedgingPolicy, request: RequestHead) {
    self.call = call
    self.policy = policy
    self.request = request
  }

  // MARK: Starting attempts

  func start(_ message: consuming ByteBuffer) {
    self.written = self.startAttempt(.message(message), isHedge: false)
    self.scheduleNext(after: self.policy.delay)
  }

  @discardableResult
  private func startAttempt(_ body: consuming Exchange.Body, isHedge: Bool) -> Exchange.Written? {
    let exchange = Exchange(call: self.call, request: self.request)
    let collector = SingleMessageCollector<ByteBuffer>(method: self.call.method)
    self.attempts.append(Attempt(exchange: exchange, isHedge: isHedge, collector: collector))
    exchange.start(body)
    return exchange.written
  }

  private func startNext() {
    guard var written = self.written else { return }
    self.call.countHedge()
    written.head.headers["grpc-previous-rpc-attempts"] = ["\(self.call.attempt - 1)"]
    self.startAttempt(.written(written), isHedge: true)
    self.scheduleNext(after: self.policy.delay)
  }

  /// Replaces what was scheduled.
  private func scheduleNext(after delay: Duration) {
    let isInTime = self.call.remainingTime.map { delay < $0 } ?? true
    guard self.written != nil, isInTime, self.call.hedgeCount + 1 < self.policy.attemptLimit else {
      self.startNoMore()
      return
    }
    self.timer?.cancel()
    self.timer = self.call.executor.schedule(after: delay.clamped) { [call] in
      self.timer = nil
      if !call.endIfDeadlineHasPassed() { self.startDue() }
    }
  }

  private func startDue() {
    // Where none runs, the server has said when to come again, and the budget has been asked then.
    guard self.attempts.isEmpty || self.budgetAllowsMore else {
      self.startNoMore()
      return
    }
    self.startNext()
  }

  private func startNoMore() {
    self.written = nil
    self.timer?.cancel()
    self.timer = nil
  }

  private var budgetAllowsMore: Bool { self.policy.budget?.allowsRetry ?? true }

  // MARK: Ends of attempts

  /// What has become of an attempt, once that is known.
  func outcome(of exchange: Exchange) -> SingleMessage<ByteBuffer>? {
    guard let index = self.attempts.firstIndex(where: { $0.exchange === exchange }) else { return nil }
    while let result = exchange.next() {
      if let outcome = self.attempts[index].collector.receive(result) { return outcome }
    }
    return nil
  }

  /// Whether other attempts decide the call's outcome, since the one that ended with `response` did not.
  func goesOn(after response: HTTPResponse, to exchange: Exchange) -> Bool {
    self.attempts.removeAll { $0.exchange === exchange }
    exchange.cancel()
    guard let error = response.error else {
      self.policy.budget?.recordSuccess()
      return false
    }
    let isFinal = !self.policy.codes.contains(error.code)
    let pushback = Pushback(error)
    if !isFinal || pushback == .never { self.policy.budget?.recordFailure() }
    guard !isFinal else { return false }
    self.continueSchedule(pushback)
    return !self.attempts.isEmpty || self.timer != nil
  }

  private func continueSchedule(_ pushback: Pushback?) {
    guard self.written != nil, self.budgetAllowsMore else {
      self.startNoMore()
      return
    }
    switch pushback {
    case nil: self.startNext()
    case .after(let delay) where delay <= self.policy.longestServerDelay: self.scheduleNext(after: delay)
    case .after, .never: self.startNoMore()
    }
  }

  /// The exchange of the attempt that was started last, of those that still run.
  var lastExchange: Exchange? { self.attempts.last?.exchange }

  /// Gives up all attempts.
  func cancel() {
    self.startNoMore()
    let attempts = self.attempts
    self.attempts = []
    for attempt in attempts { attempt.exchange.cancel() }
  }

  // MARK: Transparent retries

  /// Whether a hedge that the server certainly did not process may be sent again: true once. Nil for the first attempt,
  /// which uses that of the call.
  func takeTransparentRetry(of exchange: Exchange) -> Bool? {
    guard let index = self.attempts.firstIndex(where: { $0.exchange === exchange && $0.isHedge }) else {
      return nil
    }
    guard !self.attempts[index].hasRetriedTransparently else { return false }
    self.attempts[index].hasRetriedTransparently = true
    return true
  }
}
