internal import DequeModule

/// The caller of a stream. It asks for a number of results, and nothing is read beyond that number. It may send while
/// there is room.
final class StreamSide: CallSide {
  typealias SendCompletion = @Sendable (ConnectError?) -> Void

  /// What the caller wants to send next.
  private enum Outgoing {
    /// Nil if the message is known to be accepted at once.
    case message(any AnyMessage, SendCompletion?)
    case end
  }

  private let method: MethodInfo
  private let maximumQueued: Int
  /// Called with each result, the last of which is an end.
  private var onResult: (@Sendable (ResultPart) -> Void)?
  /// Runs async interceptors where the call was made.
  private var runner: Mailbox<Void>?
  private(set) var demand = 0
  private(set) var hasDelivered = false
  private var outgoing: Deque<Outgoing> = []
  /// Whether `outgoing` has elements: a cheaper check than the queue itself.
  private(set) var hasOutgoing = false
  /// Called when the message that was taken last is accepted.
  private var acceptance: SendCompletion?
  private var isRequestFinished = false
  /// For the outcome that call hooks receive.
  private var receivedHeaders = Headers()
  private var sentCount = 0
  private var receivedCount = 0

  /// - Parameter maximumQueued: How many messages may wait to be sent.
  init(of method: MethodInfo, maximumQueued: Int, onResult: @escaping @Sendable (ResultPart) -> Void) {
    self.method = method
    self.maximumQueued = max(maximumQueued, 1)
    self.onResult = onResult
  }

  // MARK: From the caller, on the executor

  /// Asks for `count` more results. `Int.max` asks for all; a number below 1 asks for nothing.
  func request(_ count: Int, _ call: Call) {
    guard !call.isOver, count > 0 else { return }
    self.demand = self.demand > Int.max - count ? Int.max : self.demand + count
    call.pump()
  }

  /// Sends a message as soon as there is room.
  ///
  /// - Parameter completion: Called once, when the message was accepted or cannot be sent any more.
  func send(_ message: any AnyMessage, _ call: Call, completion: @escaping SendCompletion) {
    guard !call.isOver else {
      completion(.streamEnded(self.method))
      return
    }
    guard !self.isRequestFinished else {
      completion(.requestFinished(self.method))
      return
    }
    guard self.outgoing.count < self.maximumQueued else {
      completion(.tooManyQueuedMessages(self.maximumQueued, method: self.method))
      return
    }
    self.outgoing.append(.message(message, completion))
    self.hasOutgoing = true
    call.pump()
  }

  /// Sends a message, if it is accepted at once.
  ///
  /// - Returns: False if nothing was done.
  func sendAtOnce(_ message: any AnyMessage, _ call: Call) -> Bool {
    guard !call.isOver, !self.isRequestFinished, self.outgoing.isEmpty,
      RequestFlow(pipeline: call.pipeline, call: call).acceptsMessage
    else {
      return false
    }
    self.outgoing.append(.message(message, nil))
    self.hasOutgoing = true
    call.pump()
    return true
  }

  /// Ends the request after the messages sent so far.
  func finishRequest(_ call: Call) {
    guard !call.isOver, !self.isRequestFinished else { return }
    self.isRequestFinished = true
    self.outgoing.append(.end)
    self.hasOutgoing = true
    call.pump()
  }

  // MARK: CallSide

  var runsJobsApart: Bool { true }

  func prepareForJobs(on executor: any CallExecutor) {
    self.runner = Mailbox.detached(on: executor)
  }

  func run(_ job: Job, on executor: any CallExecutor) {
    if let runner = self.runner { runner.run(job) } else { job.start(on: executor) }
  }

  func makeRequest(_ head: RequestHead) -> RequestPart { .head(head) }

  func takeOutgoing(isObsolete: @autoclosure () -> Bool) -> RequestPart? {
    defer { self.hasOutgoing = !self.outgoing.isEmpty }
    while let next = self.outgoing.popFirst() {
      switch next {
      case .end:
        return .end
      case .message(let message, let completion):
        guard !isObsolete() else {
          completion?(.streamEnded(self.method))
          continue
        }
        self.sentCount += 1
        self.acceptance = completion
        return .message(message)
      }
    }
    return nil
  }

  func outgoingWasTaken() {
    guard let acceptance = self.acceptance else { return }
    self.acceptance = nil
    acceptance(nil)
  }

  func deliver(_ result: ResultPart) {
    if case .headers(let headers) = result { self.receivedHeaders = headers } else { self.receivedCount += 1 }
    self.hasDelivered = true
    if self.demand != Int.max { self.demand -= 1 }
    self.onResult?(result)
  }

  func complete(with end: ResultPart) {
    self.onResult.take()?(end)
  }

  func release() {
    self.runner?.post(.success(()))
    let outgoing = self.outgoing
    self.outgoing = []
    self.hasOutgoing = false
    for case .message(_, let completion) in outgoing { completion?(.streamEnded(self.method)) }
  }

  func end(of error: ConnectError) -> ResultPart { .failed(error) }

  func outcome(of end: ResultPart, after attempts: Attempts) -> CallOutcome {
    guard case .end(let error, let trailers) = end else { return CallOutcome() }
    return CallOutcome(
      headers: self.receivedHeaders,
      trailers: trailers,
      error: error,
      facts: attempts.facts(messagesSent: self.sentCount, messagesReceived: self.receivedCount)
    )
  }

  func end(_ end: ResultPart, changedTo outcome: CallOutcome) -> ResultPart {
    .end(outcome.error, trailers: outcome.trailers)
  }
}
