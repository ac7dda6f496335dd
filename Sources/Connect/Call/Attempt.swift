internal import NIOCore

/// One attempt of a call on the wire: a request in the wire protocol, and the response that comes back for it.
///
/// Makes one transparent retry if the server certainly did not process the request. Confined to the call's executor.
final class Attempt: TalliedHandler, HTTPStreamHandler {
  enum Body {
    /// The whole request: one message, then the end.
    case message(ByteBuffer)
    /// A request that this or another attempt has already written in this protocol.
    case sent(SentRequest)
    /// A request that an attempt has written in another protocol; its messages are framed again.
    case given(SentRequest)
    /// Messages follow.
    case messages
  }

  /// What went to the network and came from there, and whether it may go there again.
  struct Traffic {
    var transparentRetry: TransparentRetry
    /// Nil if nothing went to the network.
    var method: HTTPStreamRequest.Method?
    var unwrittenBytes = 0
    var requestBodyBytes = 0
    var responseBodyBytes = 0
    /// The remote address of the connection; nil unless call hooks need it.
    var remoteAddress: String?

    /// Whether request messages can be written without piling up.
    var hasRoom: Bool { self.unwrittenBytes < SentRequest.maximumBytes }

    /// The attempt's summary for call hooks; nil if nothing went to the network.
    func summary(_ head: HTTPResponseHead?) -> CallOutcome.Exchange? {
      guard self.method != nil else { return nil }
      return CallOutcome.Exchange(
        httpStatus: head?.status,
        requestBodyBytes: self.requestBodyBytes,
        responseBodyBytes: self.responseBodyBytes,
        remoteAddress: self.remoteAddress
      )
    }
  }

  private enum Phase {
    case running
    /// The response has ended, or there will be none.
    case ended
    case cancelled
  }

  /// Keeps the call alive while the attempt is on the wire.
  private let call: Call
  private let attempts: Attempts
  /// The call, in the protocol of this attempt.
  let plan: CallPlan
  /// The request as it left the interceptors.
  let request: RequestHead
  let response: ResponseReader
  private var stream: (any HTTPStream)?
  private var phase = Phase.running

  /// What a resend would send; nil once a resend is unnecessary or impossible.
  private(set) var sent: SentRequest?
  private(set) var traffic: Traffic

  /// Tells interceptors what happens to the attempt; nil if none observes attempts.
  private let watch: AttemptWatch?
  /// Nil if no hook wants metrics, or once the hooks have received them.
  private var meter: AttemptMeter?

  /// - Parameters:
  ///   - isHedge: Whether it starts while earlier attempts run.
  ///   - replaced: The attempt that this one replaces. Hooks do not see the replacement.
  init(
    _ attempts: Attempts,
    _ plan: CallPlan,
    _ request: RequestHead,
    _ call: Call,
    isHedge: Bool,
    replacing replaced: Attempt?
  ) {
    self.call = call
    self.attempts = attempts
    self.plan = plan
    self.request = request
    self.traffic = Traffic(
      transparentRetry: replaced?.traffic.transparentRetry ?? (isHedge ? .own : .ofCall)
    )
    self.watch =
      attempts.observers == nil
      ? nil : AttemptWatch.make(attempts, plan, isHedge: isHedge, replacing: replaced?.watch)
    if let meter = replaced?.meter.take() {
      self.meter = meter
    } else if !attempts.metricsHooks.isEmpty {
      self.meter = AttemptMeter(attempts, on: call.executor)
    }
    let maximumMessageSize = plan.rules?.method.maximumResponseMessageSize ?? .max
    let response = plan.environment.makeDecoder(
      contentType: request.contentType,
      streamType: plan.info.streamType,
      maximumMessageSize: maximumMessageSize
    )
    self.response =
      plan.parser == nil || !plan.isUnary
      ? response
      : plan.environment.decoders.makeParsed(response, of: plan.info, maximumMessageSize)
    super.init()
  }

  // MARK: Request

  /// - Returns: Whether the attempt goes to the network.
  func start(_ body: consuming Body) -> Bool {
    let plan = self.plan
    let keepsGiven = plan.choices != nil
    do throws(ConnectError) {
      let endpoint = try plan.environment.endpoint(for: self.request.url.origin).get()
      switch consume body {
      case .message(let message):
        if let rules = plan.rules {
          try MessageFramer.check(message.readableBytes, limit: rules.method.maximumRequestMessageSize)
        }
        let given = keepsGiven ? [message] : nil
        var (head, rest) = try plan.writer.whole(self.request, message: message, timeout: plan.remainingTime)
        head.hasNoSideEffects =
          self.request.hasNoSideEffects(calling: plan.info) && !self.attempts.transparentRetries.isUsed
        if plan.waitsForReady { (head.waitsForReady, head.hasOtherProtocols) = (true, keepsGiven) }
        if let destination = self.call.timers.destination { head.follow(destination) }
        self.start(consume head, on: endpoint, given: given)
        if let rest {
          self.write(rest)
          self.finishRequest()
        }
      case .messages:
        var head = try plan.writer.head(of: self.request, timeout: plan.remainingTime)
        if plan.waitsForReady { (head.waitsForReady, head.hasOtherProtocols) = (true, keepsGiven) }
        if let destination = self.call.timers.destination { head.follow(destination) }
        self.start(consume head, on: endpoint, given: keepsGiven ? [] : nil)
      case .sent(let request):
        var head = request.head
        if let timeout = plan.remainingTime { plan.writer.renewTimeout(of: &head, to: timeout) }
        self.start(consume head, on: endpoint, given: request.given)
        for message in request.messages { self.write(message) }
        if request.isFinished { self.finishRequest() }
      case .given(let request):
        let given = request.given ?? []
        if plan.isUnary, let message = given.first { return self.start(.message(message)) }
        guard self.start(.messages) else { return false }
        for message in given { self.send(message) }
        if request.isFinished { self.finishRequest() }
      }
      return true
    } catch {
      self.end(with: error)
      return false
    }
  }

  private func start(_ head: consuming HTTPStreamRequest, on endpoint: any HTTPEndpoint, given: [ByteBuffer]?)
  {
    self.traffic.method = head.method
    self.traffic.unwrittenBytes = 0
    self.traffic.requestBodyBytes = head.body.completeSize
    self.traffic.remoteAddress = nil
    if let meter = self.meter { meter.willStart(head) }
    if let watch = self.watch {
      watch.start(sending: head.body, self.call)
      // An observer may have ended the call.
      guard !self.isOver else { return }
    }
    // An endpoint tells the handler nothing before it has returned.
    self.stream = endpoint.startStream(head, handler: self)
    self.sent = SentRequest(consume head, given: given)
  }

  /// Whether the response has ended, so that sending more is of no use.
  var isOver: Bool { self.phase != .running }

  /// - Parameter message: Framed in place if nobody else holds it.
  func send(_ message: consuming ByteBuffer) {
    guard !self.isOver else { return }
    let given = self.plan.choices == nil ? nil : message
    let bytes: ByteBuffer
    do throws(ConnectError) {
      if let rules = self.plan.rules {
        try MessageFramer.check(message.readableBytes, limit: rules.method.maximumRequestMessageSize)
      }
      bytes = try self.plan.writer.body(of: consume message)
    } catch {
      // The server cannot use the request without this message.
      self.endTally(isFailure: false)
      self.stream?.cancel()
      self.stream = nil
      self.end(with: error)
      return
    }
    self.write(bytes, given: given)
  }

  func finishRequest() {
    guard !self.isOver else { return }
    self.sent?.isFinished = true
    self.stream?.finish(trailers: self.request.trailers)
  }

  private func write(_ bytes: ByteBuffer, given: ByteBuffer? = nil) {
    // Moved out and back, so that each exclusive access to the variable ends at once.
    if var sent = self.sent {
      self.sent = nil
      if sent.append(bytes, given: given) { self.sent = sent }
    }
    self.traffic.unwrittenBytes += bytes.readableBytes
    self.traffic.requestBodyBytes += bytes.readableBytes
    if let watch = self.watch { watch.didSend(bytes) }
    self.stream?.write(bytes)
  }

  // MARK: Response

  /// The next result; nil if more has to arrive, for which the stream then makes room.
  func next() -> ResultPart? {
    if self.response.hasLent { self.plan.environment.decoders.reclaim(self.response, on: self.call.executor) }
    guard let result = self.response.next(from: self.stream) else { return nil }
    if result.isEnd, self.response.hasChangedText {
      self.response.noteReceivedText(in: self.plan.environment.logger, self.plan.info)
    }
    guard result.isFailure, case .end(let error?, let trailers) = result else {
      return result.isEnd && !self.watch.end(.ok, self.call) ? nil : result
    }
    guard let error = self.named(error), self.watch.end(error.code, self.call) else { return nil }
    return .end(error, trailers: trailers)
  }

  /// An error of the transport or the decoder, with the name of the request; nil if the call is over.
  private func named(_ error: ConnectError) -> ConnectError? {
    if self.call.endIfDeadlineHasPassed() { return nil }
    let named = error.naming(
      self.request.url,
      method: self.traffic.method ?? .post,
      answeredWith: self.response.head,
      over: self.plan.environment.wire
    )
    return self.attempts.search?.explain(named, error.unnamed, of: self) ?? named
  }

  /// The response of a unary call; nil until it is known.
  func takeResponse() -> SingleMessage? {
    guard var single = self.response.takeSingle(from: self.stream, of: self.plan.info) else {
      return nil
    }
    if self.response.hasChangedText {
      self.response.noteReceivedText(in: self.plan.environment.logger, self.plan.info)
    }
    if case .failure(let error) = single.result {
      guard let error = self.named(error) else { return nil }
      single.result = .failure(error)
      let isFailure = !self.response.isNotModified(for: self.request)
      return self.watch.end(isFailure ? error.code : .ok, self.call) ? single : nil
    }
    return self.watch.end(.ok, self.call) ? single : nil
  }

  // MARK: End

  /// Abandons the attempt on the wire. It delivers no further results.
  ///
  /// - Parameter cause: Why another attempt replaces this one, and goes on with its meter; nil if none does.
  func cancel(replacedAfter cause: ConnectError? = nil) {
    // An observer may end the call, which cancels this attempt without a replacement.
    if let cause, !self.watch.end(cause.code, self.call) { return }
    let wasRunning = self.phase == .running
    self.phase = .cancelled
    if wasRunning {
      let isTooLate = self.plan.remainingTime.isUsedUp
      self.endTally(isFailure: isTooLate)
      if isTooLate { self.stream?.expire() } else { self.stream?.cancel() }
      self.stream = nil
    }
    guard cause == nil else { return }
    // Hooks run later: a hook that ends the call would otherwise re-enter the caller of this function.
    if let watch = self.watch {
      let code: Code = self.plan.remainingTime.isUsedUp ? .deadlineExceeded : .canceled
      watch.endLater(code, self.attempts, self.call)
    }
    if wasRunning { self.meter.take()?.finishLater(self.traffic, self.attempts, self.call) }
  }

  /// Ends the attempt with an error that did not come from the transport.
  private func end(with error: ConnectError) {
    let here = Confined(self, to: self.call.executor)
    self.call.executor.execute {
      let attempt = here.value
      guard !attempt.isOver else { return }
      attempt.response.fail(error)
      attempt.endOnWire()
    }
  }

  private func endOnWire() {
    self.phase = .ended
    self.stream = nil
    if let watch = self.watch { watch.didEndOnWire(self.call) }
    self.meter.take()?.finish(self.traffic, self.call)
    if self.phase == .ended { self.call.pump() }
  }

  // MARK: HTTPStreamHandler

  func streamDidStart(on connection: HTTPConnectionInfo) {
    self.call.executor.assertIsCurrent()
    if self.attempts.keepsSummary { self.traffic.remoteAddress = connection.remoteAddress }
    if let meter = self.meter { meter.didStart(on: connection, self.call) }
  }

  func streamDidBecomeWritable() {
    self.call.executor.assertIsCurrent()
    guard !self.isOver else { return }
    self.traffic.unwrittenBytes = 0
    self.call.pump()
  }

  func streamDidReceive(_ head: HTTPResponseHead) {
    self.call.executor.assertIsCurrent()
    guard !self.isOver else { return }
    if self.plan.choices != nil, let search = self.attempts.search {
      if head.refuses(self.plan.environment.wire) {
        let error = ResponseRules.statusError(head)
        if search.goesOn(after: error, from: self, self.attempts, self.call) { return }
      } else {
        search.didReceive(head, to: self)
      }
    }
    self.sent = nil
    if let meter = self.meter { meter.didReceive(head, self.call) }
    if let watch = self.watch { watch.didReceive(head, to: self.request) }
    self.response.receive(head)
    if !self.response.awaitsEnd() { self.attempts.hasResults(self, self.call) }
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    self.call.executor.assertIsCurrent()
    guard !self.isOver else { return }
    self.traffic.responseBodyBytes += bytes.readableBytes
    if let watch = self.watch { watch.didReceive(bytes) }
    self.response.receive(bytes)
    if self.response.awaitsEnd() {
      self.response.consumeAll(from: self.stream)
    } else {
      self.attempts.hasResults(self, self.call)
      self.response.settle()
    }
  }

  func streamDidEnd(trailers: Headers) {
    self.call.executor.assertIsCurrent()
    self.endTally(self.response.head, trailers: trailers)
    guard !self.isOver else { return }
    self.response.receiveEnd(trailers: trailers)
    self.endOnWire()
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    self.call.executor.assertIsCurrent()
    self.endTally(isFailure: true)
    guard !self.isOver else { return }
    if self.call.endIfDeadlineHasPassed() { return }
    self.stream = nil
    if failure.isVersionMismatch,
      self.attempts.search?.goesOn(after: failure.error, from: self, self.attempts, self.call) == true
    {
      return
    }
    // Moved out and back, so that each exclusive access to the variable ends at once.
    var retry = self.traffic.transparentRetry
    if failure.isUnprocessed, var sent = self.sent,
      failure.keepsTransparentRetry || !failure.error.isFinal,
      retry.take(from: self.attempts, after: failure)
    {
      self.traffic.transparentRetry = retry
      guard self.watch.end(failure.error.code, self.call) else { return }
      // What a server did not take as early data must not be sent as early data again (RFC 8470, section 5.2).
      sent.head.hasNoSideEffects = false
      if self.start(.sent(sent)) { self.call.pump() }
      return
    }
    var error = failure.error
    if error.code == .unavailable { error.isConnectionLost = true }
    self.response.fail(error)
    self.endOnWire()
  }
}
