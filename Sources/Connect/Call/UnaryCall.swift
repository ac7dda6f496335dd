internal import NIOCore

/// A call with one request message and one response message.
///
/// Confined to its executor like every ``Call``. Its outcome goes to a completion handler, or else to the one task that
/// waits for it, which also runs the call's async interceptors.
final class UnaryCall<Input: Sendable, Output: Sendable>: Call, @unchecked Sendable {
  private let spec: MethodSpec<Input, Output>
  private let input: Input
  /// Called once, on the executor.
  private var completion: (@Sendable (ResponseMessage<Output>) -> Void)?
  /// Runs async interceptors where the call was made, if there is a completion handler.
  private var detachedRunner: Mailbox<Void>?

  private var waitingTask: UnsafeContinuation<UnaryCallWakeup, Never>?
  private var jobs: [Job] = []
  /// The outcome for the waiting task.
  private var outcome: ResponseMessage<Output>?

  private var messageChain: UnaryMessageChain<Input, Output>?
  private var byteChain: UnaryByteChain?
  /// It calls nobody back.
  @exclusivity(unchecked) private var collector: SingleMessageCollector<ByteBuffer>
  /// Runs the attempts instead of the exchange that the call would have, if it hedges.
  private var hedge: Hedge?
  private var acceptsNotModified = false

  /// - Parameter completion: Called once, on the executor. Without it, ``run()`` is to be called.
  init(
    client: ProtocolClient,
    method: MethodSpec<Input, Output>,
    input: Input,
    options: consuming CallOptions,
    completion: (@Sendable (ResponseMessage<Output>) -> Void)? = nil
  ) {
    self.spec = method
    self.input = input
    self.completion = completion
    self.collector = SingleMessageCollector(method: method.info)
    super.init(client: client, method: method.info, streamType: .unary, options: options)
    if completion != nil,
      self.interceptors.indices.contains(where: {
        self.interceptors[$0].interceptor.asyncUnaryForm != nil
      })
    {
      self.detachedRunner = client.makeRunner()
    }
  }

  /// Nobody is left who could go on with the call or end it. Hooks that wait are told, like at any other end.
  deinit {
    guard let completion = self.completion else { return }
    let error = ConnectError.abandoned(self.method)
    let byteChain = self.byteChain
    let messageChain = self.messageChain
    let endHooks = self.endHooks
    let callHooks = self.takeWaitingHooks()
    var outcome = self.outcome(of: ResponseMessage(error: error))
    self.addExchanges(to: &outcome)
    let end = outcome
    let detachedRunner = self.detachedRunner
    let taskExecutor = self.client.taskExecutor
    self.executor.execute {
      byteChain?.terminate(with: error, on: taskExecutor)
      messageChain?.terminate(with: error, on: taskExecutor)
      var outcome = end
      callHooks.pass(&outcome)
      byteChain?.release()
      messageChain?.release()
      endHooks.end(end)
      detachedRunner?.post(.success(()))
      completion(ResponseMessage(error: error))
    }
  }

  // MARK: The waiting task

  /// Starts the call and waits for its end, after which there is a ``response``. To be called once, by one task.
  ///
  /// It returns nothing, since to wait for a response, whose type has to be looked up, costs more than to read it.
  func run() async {
    var wakeup: UnaryCallWakeup = await withUnsafeContinuation { continuation in
      if self.executor.isCurrent {
        self.start(waking: continuation)
      } else {
        self.executor.execute { self.start(waking: continuation) }
      }
    }
    while case .run(let job) = wakeup {
      job.start(on: self.executor)
      wakeup = await withUnsafeContinuation { continuation in
        self.executor.run { self.wait(continuation) }
      }
    }
  }

  /// The outcome, once ``run()`` has returned: then nothing touches it any more.
  var response: ResponseMessage<Output> {
    self.outcome ?? ResponseMessage(error: .abandoned(self.method))
  }

  private func start(waking continuation: UnsafeContinuation<UnaryCallWakeup, Never>) {
    self.startOnExecutor()
    self.wait(continuation)
  }

  private func wait(_ continuation: UnsafeContinuation<UnaryCallWakeup, Never>) {
    if !self.jobs.isEmpty {
      continuation.resume(returning: .run(self.jobs.removeFirst()))
    } else if self.isOver {
      continuation.resume(returning: .finish)
    } else {
      self.waitingTask = continuation
    }
  }

  override var holder: HookHolder? { self.messageChain?.holder ?? self.byteChain?.holder }

  override var byteRunner: any JobRunner { self.messageChain?.innerRunner ?? self }

  override func run(_ job: Job) {
    if let runner = self.detachedRunner {
      runner.run(job)
    } else if let waitingTask = self.waitingTask.take() {
      waitingTask.resume(returning: .run(job))
    } else {
      self.jobs.append(job)
    }
  }

  // MARK: Down

  override func send(_ head: RequestHead) {
    if let chain = self.messageChain { self.start(chain, head) } else { self.send(self.input, head) }
  }

  @inline(never)
  private func start(_ chain: UnaryMessageChain<Input, Output>, _ head: RequestHead) {
    chain.start(HTTPRequest(head: head, message: self.input))
  }

  override func addHooks(of interceptor: any Interceptor, _ interceptorCount: Int) {
    if let form = interceptor.asyncUnaryForm {
      self.addAsyncStage(form, of: type(of: interceptor), interceptorCount)
    }
    self.addMessageHooks(interceptor.unaryMessageFunction(self.spec), of: interceptor, interceptorCount)
    let byteHooks = interceptor.unaryFunction()
    guard !byteHooks.isEmpty else { return }
    let type = type(of: interceptor)
    if let function = byteHooks.responseMetricsFunction { self.addMetricsHook(function, of: type) }
    self.makeByteChain(interceptorCount).append(byteHooks, of: type)
  }

  @inline(__always)
  private func addMessageHooks(
    _ hooks: consuming UnaryMessageFunction<Input, Output>,
    of interceptor: any Interceptor,
    _ interceptorCount: Int
  ) {
    guard !hooks.isEmpty else { return }
    self.makeMessageChain(interceptorCount).append(hooks, of: type(of: interceptor))
  }

  private func addAsyncStage(_ form: AsyncUnaryForm, of type: any Interceptor.Type, _ interceptorCount: Int) {
    let spec = self.spec
    switch form {
    case .messages(let form):
      self.makeMessageChain(interceptorCount).append(
        { try await form.interceptUnary($0, method: spec, next: UnaryNext($1)) },
        of: type
      )
    case .bytes(let form):
      let method = spec.info
      self.makeByteChain(interceptorCount).append(
        { try await form.interceptUnaryBytes($0, method: method, next: UnaryByteNext($1)) },
        of: type
      )
    }
  }

  /// The chain, which is made for the first interceptor that has something for it.
  @inline(__always)
  private func makeByteChain(_ capacity: Int) -> UnaryByteChain {
    if let chain = self.byteChain { return chain }
    let chain = UnaryByteChain(call: self, capacity: capacity)
    self.byteChain = chain
    return chain
  }

  private func makeMessageChain(_ capacity: Int) -> UnaryMessageChain<Input, Output> {
    if let chain = self.messageChain { return chain }
    let chain = UnaryMessageChain(call: self, capacity: capacity)
    self.messageChain = chain
    return chain
  }

  /// Encodes the message and sends the request on.
  func send(_ input: Input, _ head: RequestHead) {
    let bytes: ByteBuffer
    do {
      bytes = try self.client.config.codec.encode(
        input,
        as: self.spec.input,
        deterministic: head.encodesDeterministically || head.isGET == true
      )
    } catch {
      let error = ConnectError.encodingFailed(error, method: self.method)
      self.pass(error, trailers: error.metadata)
      return
    }
    guard let chain = self.byteChain else {
      self.startExchange(with: bytes, head)
      return
    }
    var encoded = HTTPRequest(head: head, message: bytes)
    if encoded.isGET { encoded.isGET = self.writer.goesAsGET(encoded) }
    chain.start(encoded)
  }

  override func sendBytes(_ request: HTTPRequest<ByteBuffer>) {
    self.startExchange(with: request.message, request.head)
  }

  private func startExchange(with message: consuming ByteBuffer, _ head: RequestHead) {
    self.acceptsNotModified = head.headers.contains("if-none-match")
    if let policy = self.client.hedgingPolicy(for: self.method, options: self.options) {
      guard !self.isOver else { return }
      let hedge = Hedge(call: self, policy: policy, request: head)
      self.hedge = hedge
      hedge.start(message)
      return
    }
    self.collector = SingleMessageCollector(method: self.method)
    self.startExchange(head, body: .message(message))
  }

  // MARK: Up

  override func exchangeHasResults(_ exchange: Exchange) {
    if let hedge = self.hedge {
      self.exchangeHasResults(exchange, of: hedge)
      return
    }
    guard exchange === self.exchange else { return }
    while let result = exchange.next() {
      guard let collected = self.collector.receive(result) else { continue }
      if self.byteChain == nil, case .success(let message) = collected.result {
        self.dropExchange()
        self.decode(message, headers: collected.headers, trailers: collected.trailers)
        return
      }
      let response = self.makeResponse(collected, of: exchange)
      self.dropExchange()
      if let chain = self.byteChain { chain.receive(response) } else { self.receiveBytes(response) }
      return
    }
  }

  private func exchangeHasResults(_ exchange: Exchange, of hedge: Hedge) {
    guard let collected = hedge.outcome(of: exchange) else { return }
    let response = self.makeResponse(collected, of: exchange)
    guard !hedge.goesOn(after: response, to: exchange) else { return }
    self.dropExchange()
    self.note(exchange)
    if let chain = self.byteChain { chain.receive(response) } else { self.receiveBytes(response) }
  }

  private func makeResponse(_ collected: SingleMessage<ByteBuffer>, of exchange: Exchange) -> HTTPResponse {
    let head = exchange.head
    var message = ByteBuffer()
    var error: ConnectError?
    switch collected.result {
    case .success(let received): message = received
    case .failure(let failure): error = failure
    }
    var response = HTTPResponse(
      headers: collected.headers,
      message: message,
      trailers: collected.trailers,
      error: error,
      httpStatus: head?.status,
      httpHeaders: head?.headers ?? Headers(),
      request: exchange.request
    )
    if response.error != nil, response.error?.httpStatus == nil { response.error?.httpStatus = head?.status }
    if head?.status == 304, self.acceptsNotModified {
      response.error = nil
    }
    return response
  }

  override func receiveBytes(_ response: HTTPResponse) {
    if let error = response.error {
      self.pass(error, headers: response.headers, trailers: response.trailers)
      return
    }
    if response.httpStatus == 304, response.message.readableBytes == 0 {
      let error = ConnectError.unansweredNotModified(response)
      self.pass(error, headers: response.headers, trailers: error.metadata)
      return
    }
    self.decode(
      response.message,
      headers: response.headers,
      trailers: response.trailers,
      httpStatus: response.httpStatus
    )
  }

  private func decode(_ bytes: ByteBuffer, headers: Headers, trailers: Headers, httpStatus: Int? = 200) {
    let message: Output
    do {
      message = try self.client.config.codec.decode(bytes, as: self.spec.output)
    } catch {
      var error = ConnectError.decodingFailed(error, method: self.method)
      if error.httpStatus == nil { error.httpStatus = httpStatus }
      if error.metadata.isEmpty {
        error.metadata = headers
        error.metadata.append(contentsOf: trailers)
      }
      self.pass(error, headers: headers, trailers: trailers)
      return
    }
    self.pass(ResponseMessage(message: message, headers: headers, trailers: trailers))
  }

  // What responses pass from here to the completion is inline, since each function that is called looks up their type anew.

  /// Out of line, so that only calls that fail look up the types of an error's response.
  @inline(never)
  private func pass(_ error: ConnectError, headers: Headers = Headers(), trailers: Headers) {
    self.pass(ResponseMessage(error: error, headers: headers, trailers: trailers))
  }

  @inline(__always)
  private func pass(_ response: ResponseMessage<Output>) {
    if let chain = self.messageChain { chain.receive(response) } else { self.finish(with: response) }
  }

  /// Takes the response that has passed all message hooks.
  @inline(__always)
  func finish(with response: ResponseMessage<Output>) {
    if self.hasWaitingHooks, let outcome = self.passUp(self.outcome(of: response)) {
      self.complete(with: response, changedTo: outcome)
    } else {
      self.complete(with: response)
    }
  }

  /// What call hooks are told of a response.
  @inline(__always)
  private func outcome(of response: ResponseMessage<Output>) -> CallOutcome {
    let error = response.error
    return CallOutcome(
      headers: response.headers,
      trailers: response.trailers,
      error: error,
      messagesSent: 1,
      messagesReceived: error == nil ? 1 : 0
    )
  }

  @inline(never)
  private func complete(with response: ResponseMessage<Output>, changedTo outcome: CallOutcome) {
    var response = response
    response.take(outcome)
    self.complete(with: response, outcome)
  }

  override func finish(with error: ConnectError) {
    self.finish(with: ResponseMessage(error: error))
  }

  // MARK: End

  @inline(__always)
  private func complete(with response: ResponseMessage<Output>, _ changed: CallOutcome? = nil) {
    guard self.markOver(changed ?? self.outcome(of: response)) else { return }
    if let completion = self.completion {
      self.completion = nil
      self.detachedRunner?.post(.success(()))
      completion(response)
    } else {
      self.hand(response)
    }
  }

  /// Gives the outcome to the waiting task.
  @inline(never)
  private func hand(_ response: ResponseMessage<Output>) {
    self.outcome = response
    self.waitingTask.take()?.resume(returning: .finish)
  }

  override func fail(with error: ConnectError) {
    var error = error
    if self.isAtCallHook || self.messageChain?.holdsRequest == true
      || self.byteChain?.holdsRequest == true
    {
      error.isUnsent = true
    }
    self.byteChain?.terminate(with: error, on: self.client.taskExecutor)
    self.messageChain?.terminate(with: error, on: self.client.taskExecutor)
    let response = ResponseMessage<Output>(error: error)
    if self.hasWaitingHooks {
      _ = self.passUp(self.outcome(of: response))
    }
    self.complete(with: response)
  }

  override func dropExchange() {
    if let hedge = self.hedge.take() {
      if let exchange = hedge.lastExchange { self.note(exchange) }
      hedge.cancel()
    }
    super.dropExchange()
  }

  override func takeTransparentRetry(of exchange: Exchange) -> Bool {
    self.hedge?.takeTransparentRetry(of: exchange) ?? super.takeTransparentRetry(of: exchange)
  }

  /// Gives up what goes on below the message hooks.
  func abandonBytes() {
    self.byteChain?.reset()
    self.dropExchange()
  }

  override func release() {
    self.messageChain?.release()
    self.byteChain?.release()
    self.messageChain = nil
    self.byteChain = nil
  }
}

/// What the task that waits for a unary call is to do next. Outside of the call, which is generic: types in it are looked up
/// at run time.
private enum UnaryCallWakeup: Sendable {
  case run(Job)
  case finish
}
