internal import DequeModule
internal import NIOCore

/// A call with a stream of messages in at least one direction.
///
/// The caller asks for results by number (``request(_:)``), and nothing is read beyond that; it may send while
/// there is room. Confined to its executor like every ``Call``.
final class StreamCall<Input: Sendable, Output: Sendable>: Call, @unchecked Sendable {
  typealias SendCompletion = @Sendable (ConnectError?) -> Void

  /// What the caller wants to send next.
  private enum Outgoing: Sendable {
    case message(Input, SendCompletion)
    case end
  }

  private let spec: MethodSpec<Input, Output>
  /// Runs async interceptors where the call was made.
  private var outerRunner: Mailbox<Void>?
  private var onResult: (@Sendable (StreamResult<Output>) -> Void)?

  /// The interceptors' parts in the chains, until the request has passed the call hooks.
  private var messageParts: [StreamChain<Input, Output>.Part] = []
  private var byteParts: [StreamChain<ByteBuffer, ByteBuffer>.Part] = []
  private var messageChain: StreamChain<Input, Output>?
  private var byteChain: StreamChain<ByteBuffer, ByteBuffer>?
  /// What the call hooks are told at the end.
  private var receivedHeaders = Headers()
  private var sentCount = 0
  private var receivedCount = 0

  /// Whether any interceptor has hooks.
  private var hasChains: Bool { self.messageChain != nil || self.byteChain != nil }

  /// Whether the request has passed the call hooks. Nothing moves before.
  private var hasSentHead = false
  private var demand = 0
  /// An end that was found here, while nobody has asked for a result.
  private var pendingEnd: StreamResult<Output>?
  private var outgoing: Deque<Outgoing> = []
  private var isRequestFinished = false
  private var isPumping = false
  private var mustPumpAgain = false

  /// - Parameter onResult: Called on the executor with each result, the last of which is `.complete`.
  init(
    client: ProtocolClient,
    method: MethodSpec<Input, Output>,
    streamType: StreamType,
    options: CallOptions,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) {
    self.spec = method
    self.onResult = onResult
    super.init(client: client, method: method.info, streamType: streamType, options: options)
    if self.interceptors.indices.contains(where: {
      self.interceptors[$0].interceptor.asyncStreamForm != nil
    }) {
      self.outerRunner = client.makeRunner()
    }
  }

  /// Nobody is left who could go on with the call or end it. Hooks that wait are told, like at any other end.
  deinit {
    guard let onResult = self.onResult else { return }
    let error = ConnectError.abandoned(self.method)
    let ended = ConnectError.streamEnded(self.method)
    let byteChain = self.byteChain
    let messageChain = self.messageChain
    let endHooks = self.endHooks
    let callHooks = self.takeWaitingHooks()
    var outcome = self.outcome(.failed(error))
    self.addExchanges(to: &outcome)
    let end = outcome
    let outerRunner = self.outerRunner
    let outgoing = self.outgoing
    let taskExecutor = self.client.taskExecutor
    self.executor.execute {
      byteChain?.terminate(with: error, on: taskExecutor)
      messageChain?.terminate(with: error, on: taskExecutor)
      var outcome = end
      callHooks.pass(&outcome)
      byteChain?.release()
      messageChain?.release()
      endHooks.end(end)
      outerRunner?.post(.success(()))
      onResult(.failed(error))
      for case .message(_, let completion) in outgoing { completion(ended) }
    }
  }

  // MARK: The caller's side

  /// Asks for so many more results. `Int.max` asks for all; a number below 1 asks for nothing.
  func request(_ count: Int) {
    guard !self.isOver, count > 0 else { return }
    self.demand = self.demand > Int.max - count ? Int.max : self.demand + count
    self.pump()
  }

  /// Sends a message as soon as there is room.
  ///
  /// - Parameter completion: Called once, when the message was accepted or cannot be sent any more.
  func send(_ message: Input, completion: @escaping SendCompletion) {
    guard !self.isOver else {
      completion(.streamEnded(self.method))
      return
    }
    guard !self.isRequestFinished else {
      completion(.requestFinished(self.method))
      return
    }
    let maximum = max(self.client.config.limits.maximumQueuedMessages, 1)
    guard self.outgoing.count < maximum else {
      completion(.tooManyQueuedMessages(maximum, method: self.method))
      return
    }
    self.outgoing.append(.message(message, completion))
    self.pump()
  }

  /// The next result, if it is a message, is there, and passes the interceptors without waiting; else nil.
  func takeMessage() -> Output? {
    guard !self.isOver, self.demand == 0, self.pendingEnd == nil, !self.isPumping, self.isStraight,
      let bytes = self.exchange?.nextPlainMessage()
    else { return nil }
    self.isPumping = true
    let message = self.passUp(bytes)
    if message != nil { self.receivedCount += 1 }
    self.isPumping = false
    if self.mustPumpAgain { self.pump() }
    return message
  }

  /// - Returns: Nil if the message is kept, or is none.
  private func passUp(_ bytes: ByteBuffer) -> Output? {
    var bytes = bytes
    if let chain = self.byteChain {
      guard let passed = chain.passUp(bytes) else { return nil }
      bytes = passed
    }
    let message: Output
    do {
      message = try self.client.config.codec.decode(bytes, as: self.spec.output)
    } catch {
      self.failDecoding(error)
      return nil
    }
    if let chain = self.messageChain { return chain.passUp(message) }
    return message
  }

  /// Whether nothing waits at an interceptor.
  private var isStraight: Bool {
    self.messageChain?.isStraight != false && self.byteChain?.isStraight != false
  }

  /// Sends a message, if there is room. Returns false if nothing was done.
  func sendAtOnce(_ message: Input) -> Bool {
    guard !self.isOver, !self.isRequestFinished, self.outgoing.isEmpty, self.pendingEnd == nil,
      !self.isPumping, let exchange = self.exchange, !exchange.isOver, exchange.hasRoom, self.isStraight
    else { return false }
    self.isPumping = true
    self.sentCount += 1
    self.passDown(message)
    self.isPumping = false
    if self.mustPumpAgain { self.pump() }
    return true
  }

  private func passDown(_ message: Input) {
    var message = message
    if let chain = self.messageChain {
      guard let passed = chain.passDown(message) else { return }
      message = passed
    }
    guard let bytes = self.encode(message) else { return }
    guard let chain = self.byteChain else {
      self.exchange?.send(consume bytes)
      return
    }
    if let passed = chain.passDown(bytes) { self.exchange?.send(passed) }
  }

  /// Ends the request behind what was sent.
  func finishRequest() {
    guard !self.isOver, !self.isRequestFinished else { return }
    self.isRequestFinished = true
    self.outgoing.append(.end)
    self.pump()
  }

  // MARK: Start

  override func send(_ head: RequestHead) {
    self.hasSentHead = true
    if !self.byteParts.isEmpty { self.byteChain = self.makeByteChain(self.byteParts) }
    if !self.messageParts.isEmpty { self.messageChain = self.makeMessageChain(self.messageParts) }
    self.messageParts = []
    self.byteParts = []
    let head = HTTPRequest(head: head)
    // What hooks do goes on when they have returned, and nothing that was bound around them is bound any more.
    self.isPumping = true
    if let chain = self.messageChain { chain.start(head) } else { self.encode(.head(head)) }
    self.isPumping = false
    self.pump()
  }

  override func addHooks(of interceptor: any Interceptor, _ interceptorCount: Int) {
    let type = type(of: interceptor)
    switch interceptor.asyncStreamForm {
    case .messages(let form):
      let spec = self.spec
      self.messageParts.append(
        StreamChain.Part(
          .async { try await form.interceptStream($0, method: spec, next: StreamNext($1)) },
          of: type
        )
      )
    case .bytes(let form):
      let method = self.method
      self.byteParts.append(
        StreamChain.Part(
          .async { try await form.interceptStreamBytes($0, method: method, next: StreamNext($1)) },
          of: type
        )
      )
    case nil: break
    }
    let messageHooks = interceptor.streamMessageFunction(self.spec)
    if !messageHooks.isEmpty { self.messageParts.append(StreamChain.Part(.hooks(messageHooks), of: type)) }
    let byteHooks = interceptor.streamFunction()
    if !byteHooks.isEmpty { self.byteParts.append(StreamChain.Part(.hooks(byteHooks), of: type)) }
    if let function = byteHooks.responseMetricsFunction { self.addMetricsHook(function, of: type) }
  }

  private func makeMessageChain(_ parts: [StreamChain<Input, Output>.Part]) -> StreamChain<Input, Output> {
    StreamChain(
      call: self,
      parts: parts,
      isEncoded: false,
      surroundings: StreamChain.Surroundings(
        down: { [unowned self] in self.encode($0) },
        downHasRoom: { [unowned self] in self.bytesHaveRoom },
        up: { [unowned self] in self.deliver($0) },
        upHasRoom: { [unowned self] in self.demand > 0 },
        upWants: { [unowned self] in self.demand > 0 },
        abandon: { [unowned self] in
          self.byteChain?.giveUp()
          self.dropExchange()
        },
        pump: { [unowned self] in self.pump() },
        runner: { [unowned self] in self }
      )
    )
  }

  private func makeByteChain(
    _ parts: [StreamChain<ByteBuffer, ByteBuffer>.Part]
  ) -> StreamChain<ByteBuffer, ByteBuffer> {
    StreamChain(
      call: self,
      parts: parts,
      isEncoded: true,
      surroundings: StreamChain.Surroundings(
        down: { [unowned self] in self.transmit($0) },
        downHasRoom: { [unowned self] in self.exchangeHasRoomNow },
        up: { [unowned self] in self.decode($0) },
        upHasRoom: { [unowned self] in self.canDecode },
        upWants: { [unowned self] in self.wantsDecoded },
        abandon: { [unowned self] in self.dropExchange() },
        pump: { [unowned self] in self.pump() },
        runner: { [unowned self] in self.messageChain?.innerRunner ?? self }
      )
    )
  }

  // MARK: Down

  private func encode(_ part: RequestPart<Input>) {
    switch part {
    case .head(let head):
      if let chain = self.byteChain { chain.start(head) } else { self.transmit(.head(head)) }
    case .message(let message):
      guard let bytes = self.encode(message) else { return }
      if let chain = self.byteChain { chain.send(bytes) } else { self.exchange?.send(consume bytes) }
    case .end:
      if let chain = self.byteChain { chain.end() } else { self.transmit(.end) }
    }
  }

  /// The message's bytes; nil if it could not be encoded, which has ended the stream.
  private func encode(_ message: Input) -> ByteBuffer? {
    do {
      let bytes = try self.client.config.codec.encode(message, as: self.spec.input, deterministic: false)
      self.messageChain?.charge(bytes.readableBytes)
      self.byteChain?.charge(bytes.readableBytes)
      return bytes
    } catch {
      self.failInside(.encodingFailed(error, method: self.method))
      return nil
    }
  }

  private func transmit(_ part: RequestPart<ByteBuffer>) {
    switch part {
    case .head(let head): self.startExchange(head.head, body: .messages)
    case .message(let bytes): self.exchange?.send(bytes)
    case .end: self.exchange?.finishRequest()
    }
  }

  private var exchangeHasRoomNow: Bool { self.exchange?.hasRoom ?? true }

  private var bytesHaveRoom: Bool { self.byteChain?.hasRoom ?? self.exchangeHasRoomNow }

  /// Whether what the caller sends can go on.
  private var hasRoom: Bool { self.messageChain?.hasRoom ?? self.bytesHaveRoom }

  /// Whether sending is of no use: the response has ended, and nothing can start it anew.
  private var isRequestObsolete: Bool {
    if self.pendingEnd != nil { return true }
    let isAnswered = self.messageChain?.isAnswered == true || self.byteChain?.isAnswered == true
    guard isAnswered || self.exchange?.isOver == true else { return false }
    return self.messageChain?.canRetry != true && self.byteChain?.canRetry != true
  }

  // MARK: Up

  private var canDecode: Bool { self.messageChain?.canReceive ?? (self.demand > 0) }

  private var wantsDecoded: Bool { self.messageChain?.wants ?? (self.demand > 0 && self.pendingEnd == nil) }

  private func decode(_ result: StreamResult<ByteBuffer>) {
    let decoded: StreamResult<Output>
    do {
      decoded = try result.mapMessage { try self.client.config.codec.decode($0, as: self.spec.output) }
    } catch {
      self.failDecoding(error)
      return
    }
    if let chain = self.messageChain { chain.receive(decoded) } else { self.deliver(decoded) }
  }

  private func failDecoding(_ error: any Error) {
    var error = ConnectError.decodingFailed(error, method: self.method)
    if error.httpStatus == nil { error.httpStatus = self.exchange?.head?.status }
    self.failInside(error)
  }

  /// Ends the stream with an error found between the messages and their bytes.
  private func failInside(_ error: ConnectError) {
    self.byteChain?.giveUp()
    self.dropExchange()
    if let chain = self.messageChain {
      chain.fail(error)
    } else {
      self.pendingEnd = .failed(error)
      self.pump()
    }
  }

  private func deliver(_ result: StreamResult<Output>) {
    switch result {
    case .headers(let headers): self.receivedHeaders = headers
    case .message: self.receivedCount += 1
    case .complete:
      self.finish(with: result)
      return
    }
    if self.demand != Int.max { self.demand -= 1 }
    self.onResult?(result)
  }

  override func exchangeHasResults(_ exchange: Exchange) {
    // What nobody has asked for stays where it is.
    if self.demand > 0 || self.hasChains { self.pump() }
  }

  override func exchangeHasRoom() { self.pump() }

  override var holder: HookHolder? { self.messageChain?.holder ?? self.byteChain?.holder }

  override func run(_ job: Job) {
    if let runner = self.outerRunner { runner.run(job) } else { super.run(job) }
  }

  // MARK: Movement

  /// Moves everything that can move: results up, as far as they were asked for, and messages down, as far as
  /// there is room.
  private func pump() {
    guard !self.isPumping else {
      self.mustPumpAgain = true
      return
    }
    guard self.hasSentHead else { return }
    self.isPumping = true
    defer { self.isPumping = false }
    repeat {
      self.mustPumpAgain = false
      if self.pumpUp() { self.mustPumpAgain = true }
      if !self.isOver, self.pumpDown() { self.mustPumpAgain = true }
    } while self.mustPumpAgain && !self.isOver
  }

  private func pumpUp() -> Bool {
    var hasMoved = false
    // Each result goes as far as it can before the next is brought, so that none is brought in vain.
    while !self.isOver,
      self.messageChain?.pumpUp() == true || self.byteChain?.pumpUp() == true || self.takeArrived()
    {
      hasMoved = true
    }
    if !self.isOver, self.demand > 0, let end = self.pendingEnd {
      self.finish(with: end)
    }
    return hasMoved
  }

  /// Brings the next result from the wire, if it is wanted and there.
  private func takeArrived() -> Bool {
    guard !self.isOver, self.byteChain?.wants ?? self.wantsDecoded, let result = self.exchange?.next() else {
      return false
    }
    if let chain = self.byteChain { chain.receive(result) } else { self.decode(result) }
    return true
  }

  private func pumpDown() -> Bool {
    var hasMoved = self.byteChain?.pumpDown() ?? false
    if self.messageChain?.pumpDown() == true { hasMoved = true }
    while !self.isOver, self.hasRoom, let next = self.outgoing.popFirst() {
      hasMoved = true
      switch next {
      case .message(let message, let completion):
        guard !self.isRequestObsolete else {
          completion(.streamEnded(self.method))
          continue
        }
        self.sentCount += 1
        if let chain = self.messageChain { chain.send(message) } else { self.encode(.message(message)) }
        completion(nil)
      case .end:
        if let chain = self.messageChain { chain.end() } else { self.encode(.end) }
      }
    }
    return hasMoved
  }

  // MARK: End

  /// Takes the end that has passed all message hooks.
  private func finish(with end: StreamResult<Output>) {
    guard self.hasWaitingHooks, !self.isOver else {
      self.complete(with: end)
      return
    }
    let changed = self.passUp(self.outcome(end))
    self.complete(
      with: changed.map { .complete(code: $0.code, error: $0.error, trailers: $0.trailers) } ?? end
    )
  }

  override func finish(with error: ConnectError) {
    self.finish(with: .failed(error))
  }

  /// What call hooks are told of an end.
  private func outcome(_ end: StreamResult<Output>) -> CallOutcome {
    guard case .complete(let code, let error, let trailers) = end else { return CallOutcome() }
    return CallOutcome(
      headers: self.receivedHeaders,
      trailers: trailers,
      error: error ?? ConnectError(code, metadata: trailers),
      messagesSent: self.sentCount,
      messagesReceived: self.receivedCount
    )
  }

  private func complete(with end: StreamResult<Output>) {
    guard self.markOver(self.outcome(end)) else { return }
    let onResult = self.onResult
    self.onResult = nil
    onResult?(end)
  }

  override func fail(with error: ConnectError) {
    var error = error
    if self.isAtCallHook || self.messageChain?.holdsHead == true || self.byteChain?.holdsHead == true {
      error.isUnsent = true
    }
    self.byteChain?.terminate(with: error, on: self.client.taskExecutor)
    self.messageChain?.terminate(with: error, on: self.client.taskExecutor)
    if self.hasWaitingHooks {
      _ = self.passUp(self.outcome(.failed(error)))
    }
    self.complete(with: .failed(error))
  }

  override func release() {
    self.messageChain?.release()
    self.byteChain?.release()
    self.messageChain = nil
    self.byteChain = nil
    self.messageParts = []
    self.byteParts = []
    self.pendingEnd = nil
    self.outerRunner?.post(.success(()))
    let outgoing = self.outgoing
    self.outgoing = []
    for case .message(_, let completion) in outgoing { completion(.streamEnded(self.method)) }
  }
}
