internal import Connect
internal import NIOCore

/// What moves in an exchange: the request, the response, and the room for both.
///
/// Pure: the call, the transport and the hooks put in what they do, and ``next()`` says what is to be done.
struct WireFlow {
  enum Action {
    /// Call a hook; ``WireFlow/take(_:from:)`` takes its answer.
    case ask(WireAsk, WirePart)
    /// Start the stream of the transport.
    case start(HTTPStreamRequest)
    /// Give bytes to the transport.
    case write(ByteBuffer)
    /// Tell the transport that the request has ended.
    case finish(Headers)
    /// Give bytes back to the window of the transport.
    case consume(Int)
    /// Abandon the stream of the transport, if it was started.
    case cancel
    /// Give a part of the response to the call. After an end or a failure nothing follows.
    case deliver(WirePart)
    /// Tell the call that it may write more.
    case tellWritable
  }

  private enum Transport {
    case idle, running
    /// It has ended or failed, or is to be cancelled.
    case over
  }

  /// The names of the interceptors.
  private let names: [String]
  private let limits: WireLimits
  private var request: WirePipe
  private var response: WirePipe
  private var ledger = WireLedger()
  /// The request as the call made it; nil once it has gone to the transport.
  private var original: HTTPStreamRequest?
  private var transport = Transport.idle
  private var mustCancel = false
  /// Interceptors from this one on have nothing more to say, since it has failed.
  private var firstFailed = Int.max
  /// Bytes given to the transport that it has not sent.
  private var unwrittenBytes = 0
  /// Whether the transport is going to say that all is sent.
  private var transportOwesWritable = false
  /// Whether the call waits to hear that it may write more.
  private var owesWritable = false
  private var isFinished: Bool

  init(_ request: HTTPStreamRequest, through functions: [WireFunction], names: [String], limits: WireLimits) {
    self.names = names
    self.limits = limits
    self.request = WirePipe(functions.map(\.requestKinds), .request, limits: limits)
    self.response = WirePipe(functions.reversed().map(\.responseKinds), .response, limits: limits)
    self.original = request
    self.isFinished = !request.isStreamed
    var given = request
    given.isGiven = true
    self.request.push(.request(given))
  }

  // MARK: The call

  mutating func write(_ bytes: ByteBuffer) {
    guard !self.isFinished else { return }
    self.owesWritable = true
    if bytes.readableBytes > 0 { self.request.push(.chunk(bytes, credit: 0)) }
  }

  mutating func finish(_ trailers: Headers) {
    guard !self.isFinished else { return }
    self.isFinished = true
    self.owesWritable = false
    self.request.push(.end(trailers))
  }

  /// - Returns: How many bytes are to be given back to the window of the transport.
  mutating func consume(_ count: Int) -> Int { self.ledger.consume(count) }

  /// Whether something of the response waits, perhaps for room.
  var hasWaitingResponse: Bool { self.response.waitingBytes > 0 }

  /// Ends the exchange for the call. Nothing moves any more.
  mutating func close() {
    self.transport = .over
    self.mustCancel = false
    self.owesWritable = false
    self.request.close()
    self.response.close()
  }

  // MARK: The transport

  var isTransportOver: Bool { self.transport == .over }

  mutating func transportDidSendAll() {
    self.unwrittenBytes = 0
    self.transportOwesWritable = false
  }

  mutating func receive(_ part: WirePart) {
    guard self.transport != .over else { return }
    if part.kind == .end || part.kind == .failure {
      self.transport = .over
      // The transport takes nothing more of the request, and will not say that it has sent all.
      self.request.close()
      self.transportDidSendAll()
    }
    self.response.push(part)
  }

  // MARK: The hooks

  /// The index of the interceptor that is asked. Stages of the response are in the reverse order.
  func interceptor(of ask: WireAsk) -> Int {
    ask.direction == .request ? ask.stage : self.names.count - 1 - ask.stage
  }

  mutating func take(_ answer: WireAnswer, from ask: WireAsk) {
    let awaits = ask.direction == .request ? self.request.awaits(ask) : self.response.awaits(ask)
    guard awaits else { return }
    switch answer {
    case .parts(let parts):
      let problem =
        ask.direction == .request
        ? self.request.answer(ask, with: parts) : self.response.answer(ask, with: parts)
      if let problem { self.blame(self.interceptor(of: ask), for: problem) }
    case .fail(let error): self.fail(error, by: self.interceptor(of: ask))
    case .released(let name):
      self.blame(
        self.interceptor(of: ask),
        for: WireProblem(.internalError, "has released the proceed of \(name) without calling it")
      )
    }
  }

  private mutating func blame(_ index: Int, for problem: WireProblem) {
    let message = "the wire interceptor \(self.names[index]) \(problem.predicate)"
    self.fail(ConnectError(code: problem.code, message: message), by: index)
  }

  /// Fails the exchange. The error goes out through the interceptors before the one that has failed.
  ///
  /// - Parameter index: The interceptor that has failed; their number if it was none of them.
  private mutating func fail(_ error: ConnectError, by index: Int) {
    guard index < self.firstFailed else { return }
    self.firstFailed = index
    var error = error
    // Nil once the request has gone to the transport.
    if self.original != nil { error.isUnsent = true }
    self.mustCancel = self.mustCancel || self.transport == .running
    self.transport = .over
    self.request.close()
    self.transportDidSendAll()
    self.response.cut(
      through: self.names.count - 1 - index,
      with: .failure(HTTPStreamFailure(error: error))
    )
  }

  // MARK: What is to be done

  /// - Returns: Nil if nothing can move.
  mutating func next() -> Action? {
    while true {
      // Once the transport is over, what is left is in memory anyway, and the call has to learn of the end.
      let responseRoom =
        self.transport == .over
        ? max(self.limits.waitingBytes, self.limits.addedBytes) : self.limits.waitingBytes
      if self.mustCancel {
        self.mustCancel = false
        return .cancel
      }
      if let action = self.request.next(hasRoom: self.unwrittenBytes < self.limits.waitingBytes) {
        if let next = self.follow(action) { return next }
      } else if let action = self.response.next(hasRoom: self.ledger.unconsumedBytes < responseRoom) {
        if let next = self.follow(action) { return next }
      } else {
        return self.settle()
      }
    }
  }

  /// What is to be done for an action of a pipe; nil if nothing is.
  private mutating func follow(_ action: WirePipe.Action) -> Action? {
    switch action {
    case .ask(let ask, let part): return .ask(ask, part)
    case .blame(let ask, let problem):
      self.blame(self.interceptor(of: ask), for: problem)
      return nil
    case .pass(.request, .request(let head)): return self.start(head)
    case .pass(.request, .chunk(let bytes, _)):
      self.unwrittenBytes += bytes.readableBytes
      self.transportOwesWritable = true
      return .write(bytes)
    case .pass(.request, .end(let trailers)):
      if let error = WireFields.problem(inTrailers: trailers) {
        self.fail(error, by: self.names.count)
        return nil
      }
      return .finish(trailers)
    case .pass(_, let part):
      if case .chunk(let bytes, let credit) = part {
        self.ledger.receive(bytes.readableBytes, credit: credit)
      }
      return .deliver(part)
    }
  }

  private mutating func start(_ head: HTTPStreamRequest) -> Action? {
    if let error = self.original.flatMap({ WireFields.problem(in: head, insteadOf: $0) }) {
      self.fail(error, by: self.names.count)
      return nil
    }
    self.original = nil
    self.transport = .running
    return .start(head)
  }

  /// Says that there is room.
  private mutating func settle() -> Action? {
    let released = self.response.takeReleasedBytes()
    if released > 0 { return .consume(released) }
    guard self.owesWritable, !self.transportOwesWritable, self.request.takesMore else { return nil }
    self.owesWritable = false
    return .tellWritable
  }
}

/// What an interceptor has done wrong.
struct WireProblem {
  let code: Code
  /// What follows the name of the interceptor.
  let predicate: String

  init(_ code: Code, _ predicate: String) {
    self.code = code
    self.predicate = predicate
  }
}
