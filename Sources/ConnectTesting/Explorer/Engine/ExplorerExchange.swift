internal import Connect
internal import NIOCore

/// One attempt at the server: reads the request, and answers as the run chooses.
///
/// Confined to the thread of the exploration.
final class ExplorerExchange: HTTPStream {
  private(set) var attempt: ExploredAttempt
  private(set) var request: ReceivedRequest
  /// The texts of the messages that have gone to the client.
  private(set) var replies: [String] = []
  /// Whether the server never ends the answer.
  private(set) var isSilent = false
  private let format: AnswerFormat
  private var handler: (any HTTPStreamHandler)?
  private unowned let run: ExplorerRun
  /// Nil until the answer is chosen.
  private var plan: AnswerPlan?

  init(
    _ attempt: ExploredAttempt,
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    _ run: ExplorerRun
  ) {
    self.attempt = attempt
    self.handler = handler
    self.run = run
    self.format = AnswerFormat(id: "canary-\(attempt.call)-\(attempt.number)", method: run.method)
    self.request = ReceivedRequest(request, isUnary: run.method == .unary)
    self.attempt.messages = self.request.messages
  }

  /// Unique among all attempts.
  var id: String { self.format.id }
  var isOpen: Bool { self.handler != nil }

  func start() {
    self.later {
      $0.handler?.streamDidStart(on: HTTPConnectionInfo(version: .http2, isReused: true))
      $0.proceed()
    }
  }

  // MARK: The request

  func write(_ bytes: ByteBuffer) {
    self.later { exchange in
      let count = exchange.request.messages.count
      exchange.request.read(bytes)
      exchange.attempt.messages = exchange.request.messages
      for text in exchange.request.messages.dropFirst(count) {
        exchange.tell("message", "the server receives “\(shortened(text))”")
      }
      exchange.handler?.streamDidBecomeWritable()
      exchange.proceed()
    }
  }

  func finish(trailers: Headers) {
    self.later { exchange in
      exchange.request.isComplete = true
      exchange.tell("half-close", "the server receives the end of the request")
      exchange.proceed()
    }
  }

  func consume(_ count: Int) {}

  func cancel() {
    guard self.handler != nil else { return }
    self.handler = nil
    self.attempt.isCancelled = true
    self.attempt.endTime = self.run.executor.now
    let name = "attempt \(self.attempt.number) of call \(self.attempt.call)"
    self.tell("attempt is cancelled", "\(name) is cancelled")
  }

  /// The run is over.
  func abandon() { self.handler = nil }

  // MARK: The answer

  private func tell(_ kind: StaticString, _ text: @autoclosure () -> String) {
    self.run.log.tell(kind, self.attempt.call, text())
  }

  private func tellAnswer() {
    let name = "attempt \(self.attempt.number) of call \(self.attempt.call)"
    let answer = self.attempt.answer ?? .ok
    self.tell("answer", "the server answers \(name): \(answer)")
  }

  /// Runs `work` later, in the order of the attempt, unless the client has gone away.
  private func later(after delay: Duration? = nil, _ work: @escaping (ExplorerExchange) -> Void) {
    let here = Confined((exchange: self, work: work))
    let piece: @Sendable () -> Void = {
      let (exchange, work) = here.value
      if exchange.isOpen { work(exchange) }
    }
    if let delay {
      _ = self.run.executor.schedule(after: delay, piece)
    } else {
      self.run.executor.add(.closure(piece), lane: 100 + self.attempt.order)
    }
  }

  /// Answers, if it is time to.
  private func proceed() {
    guard self.isOpen else { return }
    guard self.request.isComplete || self.answersEarly else { return }
    guard self.plan == nil else {
      self.echo()
      return
    }
    let plan = self.run.server.chooseAnswer(to: self.attempt, in: self.run)
    self.plan = plan
    self.attempt.answer = plan.answer
    if let delay = plan.headDelay {
      self.later(after: delay) { $0.answer(plan) }
    } else {
      self.answer(plan)
    }
  }

  /// Whether the answer begins while the request goes on. Servers may end a stream of requests after any message.
  private var answersEarly: Bool {
    switch self.run.method {
    case .bidirectionalStream: !self.request.messages.isEmpty
    case .clientStream:
      self.plan == nil && self.request.messages.count == 1 && self.run.choose(.answerTime, among: 2) == 1
    case .unary, .serverStream: false
    }
  }

  private func answer(_ plan: AnswerPlan) {
    switch plan.answer.kind {
    case .reset:
      self.tellAnswer()
      let error = ConnectError(code: .unavailable, message: "the connection was reset (\(self.id))")
      self.end { $0.streamDidFail(HTTPStreamFailure(error: error)) }
      return
    case .nothing, .headersThenNothing:
      self.tellAnswer()
      self.isSilent = true
      if plan.answer == .headersThenNothing { self.sendHead(.ok) }
      return
    case .ok, .failure, .messagesThenFailure: break
    }
    self.sendHead(plan.answer.code ?? .ok)
    if let delay = plan.restDelay {
      self.tell("headers", "the server sends headers to call \(self.attempt.call)")
      self.later(after: delay) { $0.answerRest(plan) }
    } else {
      self.answerRest(plan)
    }
  }

  private func answerRest(_ plan: AnswerPlan) {
    let code = plan.answer.code ?? .ok
    guard self.run.method != .bidirectionalStream || code != .ok else {
      self.echo()
      return
    }
    self.tellAnswer()
    guard !self.format.isUnary else {
      if code == .ok { self.replies = [self.format.text(1, to: self.request.messages)] }
      self.end(with: code == .ok ? self.format.message(self.replies[0]) : self.format.failure(code))
      return
    }
    let count =
      switch plan.answer.kind {
      case .ok: self.run.method == .serverStream ? 3 : 1
      case .messagesThenFailure: 1
      default: 0
      }
    for number in 1..<(count + 1) { self.later { $0.send(number) } }
    self.later { $0.end(with: $0.format.end(code)) }
  }

  /// Answers each message of a bidirectional stream, and its end.
  private func echo() {
    guard self.run.method == .bidirectionalStream, self.attempt.headersTime != nil, self.attempt.answer == .ok
    else {
      return
    }
    while self.isOpen, self.replies.count < self.request.messages.count { self.send(self.replies.count + 1) }
    guard self.request.isComplete, self.isOpen else { return }
    self.tellAnswer()
    self.end(with: self.format.end(.ok))
  }

  private func sendHead(_ code: Code) {
    guard self.attempt.headersTime == nil else { return }
    self.attempt.headersTime = self.run.executor.now
    self.handler?.streamDidReceive(self.format.head(code))
  }

  /// Sends a message of a stream.
  private func send(_ number: Int) {
    guard self.isOpen else { return }
    let text = self.format.text(number, to: self.request.messages)
    self.replies.append(text)
    self.tell("reply", "the server sends “\(shortened(text))”")
    self.handler?.streamDidReceive(self.format.message(text))
  }

  private func end(with bytes: ByteBuffer) {
    self.end { handler in
      handler.streamDidReceive(bytes)
      if self.isOpen { handler.streamDidEnd(trailers: Headers()) }
    }
  }

  /// Sends the end of the answer. The client may cancel while it takes the last bytes.
  private func end(_ send: (any HTTPStreamHandler) -> Void) {
    guard let handler = self.handler else { return }
    self.attempt.answerOrder = self.run.server.countAnswer()
    send(handler)
    guard self.isOpen else { return }
    self.handler = nil
    self.attempt.endTime = self.run.executor.now
  }
}
