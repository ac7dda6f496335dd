internal import Connect
internal import NIOCore
internal import SwiftProtobuf

/// One attempt at the server: reads the request, and answers as the run chooses.
///
/// Confined to the thread of the exploration.
final class ExplorerExchange: HTTPStream {
  private(set) var attempt: ExploredAttempt
  /// The texts of the messages that have gone to the client.
  private(set) var replies: [String] = []
  /// Whether the server never ends the answer.
  private(set) var isSilent = false
  /// Whether the request is complete.
  private(set) var isHalfClosed = false
  /// Whether the client has made the attempt with the message of a GET request, which is not read.
  private let isGET: Bool
  private let isUnary: Bool
  private var handler: (any HTTPStreamHandler)?
  private unowned let run: ExplorerRun
  private var envelopes = EnvelopeDecoder(maximumMessageSize: 1 << 20)
  private var hasSentHead = false
  private var hasChosen = false
  private var plan = AnswerPlan(answer: .ok, headDelay: nil, restDelay: nil)

  init(
    _ attempt: ExploredAttempt,
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    _ run: ExplorerRun
  ) {
    self.attempt = attempt
    self.handler = handler
    self.run = run
    self.isGET = request.method == .get
    self.isUnary = run.method == .unary
    if case .complete(let body) = request.body {
      self.isHalfClosed = true
      if !self.isUnary { self.read(body) } else if !self.isGET { self.take(body) }
    }
  }

  /// Unique among all attempts.
  var id: String { "canary-\(self.attempt.call)-\(self.attempt.number)" }
  var isOpen: Bool { self.handler != nil }
  private var lane: Int { 100 + self.attempt.order }

  func start() {
    self.later {
      $0.handler?.streamDidStart(on: HTTPConnectionInfo(version: .http2, isReused: true))
      $0.proceed()
    }
  }

  // MARK: The request

  private func read(_ bytes: ByteBuffer) {
    self.envelopes.receive(bytes)
    while let envelope = try? self.envelopes.next() { self.take(envelope.message) }
  }

  private func take(_ message: ByteBuffer) {
    let value = try? Google_Protobuf_StringValue(serializedBytes: Array(message.readableBytesView))
    self.attempt.messages.append(value?.value ?? "(\(message.readableBytes) unknown bytes)")
  }

  func write(_ bytes: ByteBuffer) {
    self.later { exchange in
      let count = exchange.attempt.messages.count
      exchange.read(bytes)
      for text in exchange.attempt.messages.dropFirst(count) {
        exchange.tell("message", "the server receives “\(text)”")
      }
      exchange.handler?.streamDidBecomeWritable()
      exchange.proceed()
    }
  }

  func finish(trailers: Headers) {
    self.later { exchange in
      exchange.isHalfClosed = true
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
    self.tell(
      "attempt is cancelled",
      "attempt \(self.attempt.number) of call \(self.attempt.call) is cancelled"
    )
  }

  /// The run is over.
  func abandon() { self.handler = nil }

  // MARK: The answer

  private func tell(_ kind: StaticString, _ text: @autoclosure () -> String) {
    self.run.log.tell(kind, self.attempt.call, text())
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
      self.run.executor.add(.closure(piece), lane: self.lane)
    }
  }

  /// Answers, if it is time to.
  private func proceed() {
    guard self.isOpen else { return }
    let isReady =
      switch self.run.method {
      case .unary, .serverStream: self.isHalfClosed
      case .clientStream: self.isHalfClosed
      case .bidirectionalStream: !self.attempt.messages.isEmpty || self.isHalfClosed
      }
    guard isReady else { return }
    guard !self.hasChosen else {
      self.echo()
      return
    }
    self.hasChosen = true
    self.plan = self.run.chooseAnswer(to: self.attempt)
    self.attempt.answer = self.plan.answer
    if let delay = self.plan.headDelay {
      self.later(after: delay) { $0.answer() }
    } else {
      self.answer()
    }
  }

  private func answer() {
    let answer = self.plan.answer
    switch answer.kind {
    case .reset:
      self.told(answer)
      let error = ConnectError(code: .unavailable, message: "the connection was reset (\(self.id))")
      self.end { $0.streamDidFail(HTTPStreamFailure(error: error)) }
    case .nothing:
      self.told(answer)
      self.isSilent = true
    case .headersThenNothing:
      self.told(answer)
      self.sendHead(200)
      self.isSilent = true
    case .ok, .failure, .messagesThenFailure:
      if self.isUnary, let code = answer.code, code != .ok {
        self.told(answer)
        self.failUnary(code)
        return
      }
      self.sendHead(200)
      if let delay = self.plan.restDelay {
        self.tell("headers", "the server sends headers to call \(self.attempt.call)")
        self.later(after: delay) { $0.answerRest() }
      } else {
        self.answerRest()
      }
    }
  }

  private func told(_ answer: ExplorerAnswer) {
    self.tell(
      "answer",
      "the server answers attempt \(self.attempt.number) of call \(self.attempt.call): \(answer)"
    )
  }

  private func answerRest() {
    switch self.plan.answer.kind {
    case .ok: self.answerWell()
    case .messagesThenFailure(let code):
      self.told(self.plan.answer)
      self.send(self.text(1))
      self.later { $0.endStream(code) }
    case .failure(let code):
      self.told(self.plan.answer)
      self.endStream(code)
    case .headersThenNothing, .reset, .nothing: break
    }
  }

  private func answerWell() {
    switch self.run.method {
    case .unary:
      self.told(.ok)
      self.replies = [self.text(1)]
      self.end { handler in
        handler.streamDidReceive(Self.bytes(of: self.replies[0]))
        if self.isOpen { handler.streamDidEnd(trailers: Headers()) }
      }
    case .clientStream:
      self.told(.ok)
      self.send(self.text(1))
      self.later { $0.endStream(.ok) }
    case .serverStream:
      self.told(.ok)
      for number in 1...3 { self.later { $0.send($0.text(number)) } }
      self.later { $0.endStream(.ok) }
    case .bidirectionalStream:
      self.echo()
    }
  }

  /// Answers each message of a bidirectional stream, and its end.
  private func echo() {
    guard self.run.method == .bidirectionalStream, self.hasSentHead, self.plan.answer.kind == .ok else {
      return
    }
    while self.isOpen, self.replies.count < self.attempt.messages.count {
      self.send(self.text(self.replies.count + 1))
    }
    guard self.isHalfClosed, self.isOpen else { return }
    self.told(.ok)
    self.endStream(.ok)
  }

  private func text(_ number: Int) -> String {
    let message = self.run.method == .bidirectionalStream ? self.attempt.messages[number - 1] : nil
    return "\(self.id): answer \(number) to \(message ?? self.attempt.messages.first ?? "nothing")"
  }

  private func sendHead(_ status: Int) {
    guard !self.hasSentHead else { return }
    self.hasSentHead = true
    var headers: Headers = [
      "content-type": [self.isUnary ? "application/proto" : "application/connect+proto"],
      "x-answer": [self.id],
    ]
    if self.isUnary { headers["trailer-x-answer-trailer"] = [self.id] }
    self.handler?.streamDidReceive(HTTPResponseHead(status: status, headers: headers))
  }

  private func failUnary(_ code: Code) {
    let headers: Headers = [
      "content-type": ["application/json"], "x-answer": [self.id], "trailer-x-answer-trailer": [self.id],
    ]
    self.handler?.streamDidReceive(HTTPResponseHead(status: code.serverHTTPStatus, headers: headers))
    let body = ByteBuffer(string: self.errorText(code))
    self.end { handler in
      handler.streamDidReceive(body)
      if self.isOpen { handler.streamDidEnd(trailers: Headers()) }
    }
  }

  private func errorText(_ code: Code) -> String {
    #"{"code":"\#(code.name)","message":"\#(self.errorMessage(code))"}"#
  }

  /// Whether its end has trailers.
  var hasMetadata: Bool { self.plan.answer != .reset }

  /// The message of the server's errors.
  private func errorMessage(_ code: Code) -> String { "the server says \(code.name) (\(self.id))" }

  /// A message of a stream.
  private func send(_ text: String) {
    guard self.isOpen else { return }
    self.replies.append(text)
    self.tell("reply", "the server sends “\(text)”")
    self.handler?.streamDidReceive(Self.envelope(0, Self.bytes(of: text)))
  }

  private func endStream(_ code: Code) {
    let metadata = #""metadata":{"x-answer-trailer":["\#(self.id)"]}"#
    let text = code == .ok ? "{\(metadata)}" : #"{"error":\#(self.errorText(code)),\#(metadata)}"#
    self.end { handler in
      handler.streamDidReceive(Self.envelope(2, ByteBuffer(string: text)))
      if self.isOpen { handler.streamDidEnd(trailers: Headers()) }
    }
  }

  /// Sends the end of the answer. The client may cancel while it takes the last bytes.
  private func end(_ send: (any HTTPStreamHandler) -> Void) {
    guard let handler = self.handler else { return }
    self.attempt.isAnswered = true
    send(handler)
    guard self.isOpen else { return }
    self.handler = nil
    self.attempt.endTime = self.run.executor.now
  }

  private static func envelope(_ flags: UInt8, _ message: ByteBuffer) -> ByteBuffer {
    var bytes = ByteBuffer()
    bytes.writeInteger(flags)
    bytes.writeInteger(UInt32(message.readableBytes))
    bytes.writeImmutableBuffer(message)
    return bytes
  }

  private static func bytes(of text: String) -> ByteBuffer {
    let value = Google_Protobuf_StringValue(text)
    let bytes: [UInt8] = (try? value.serializedBytes()) ?? []
    return ByteBuffer(bytes: bytes)
  }
}

/// What the server answers, and when.
struct AnswerPlan {
  let answer: ExplorerAnswer
  /// Nil for at once.
  let headDelay: Duration?
  /// Between the headers and the rest; nil for nothing.
  let restDelay: Duration?
}
