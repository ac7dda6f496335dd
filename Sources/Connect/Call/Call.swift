internal import Logging
internal import NIOCore
internal import Synchronization

/// One call, from its start to its end: it owns the deadline, cancellation, attempts, and the rule that a call
/// completes exactly once. ``UnaryCall`` and ``StreamCall`` add what flows.
///
/// Confined to ``executor``, which makes it `Sendable`: state is touched only there; `start` and `cancel` may
/// be called from anywhere and hop.
class Call: JobRunner, @unchecked Sendable {
  let client: ProtocolClient
  let executor: any CallExecutor
  let method: MethodInfo
  let options: CallOptions
  /// What is bound around hooks; nil if nothing was there to be inherited.
  let inheritance: Inheritance?
  let writer: RequestWriter
  /// The interceptors of this call, outermost first; until it is over. Only replaced as a whole: so it does not matter that
  /// those which go away may come back here.
  @exclusivity(unchecked) private(set) var interceptors: [ResolvedInterceptor]
  /// Among how many of them, from the outermost on, are those whose call hooks wait for the outcome.
  private var waitingCount = 0
  /// Whether one of them wants to be told when the call is over.
  private var hasEndHooks = false
  /// Whether one of them has the request.
  private(set) var isAtCallHook = false
  /// The hooks for metrics, outermost first.
  private var metricsHooks: [ExchangeMeter.Hook] = []
  /// How the caller calls the method.
  private let streamType: StreamType
  /// On the executor's clock.
  private let deadline: Duration?

  private(set) var isOver = false
  /// The same, for other threads.
  let hasEnded = Atomic(false)
  /// Whether interceptors are, or were, asked for their hooks.
  private var hasAskedForHooks = false
  /// Whether they are just being asked.
  private var isAskingForHooks = false
  /// The outcome, if the call has ended while they were asked.
  private var outcomeInAsking: CallOutcome?
  /// Whether a hook may be on the stack while the call ends, which is to return before the end hooks are called.
  private var mayEndInHook = false
  /// How many attempts were given up whose metrics hooks are still to be called.
  private var pendingMetrics = 0
  /// Whether hooks are being told of the end, which they must not start again.
  private var isEnding = false
  /// The attempt that was started last, counted from 1.
  private(set) var attempt = 1
  /// How many of the attempts are hedges.
  private(set) var hedgeCount = 0
  private var hasRetriedTransparently = false
  private var deadlineTimer: (any CallTimer)?
  private var retryTimer: (any CallTimer)?
  /// One that nobody holds, for the next visit of a hook. Read and written at once, never for longer.
  @exclusivity(unchecked) final var spareTicket: ProceedTicket?
  /// Will look whether an interceptor still holds the call up.
  private var holdTimer: (any CallTimer)?
  /// How often an interceptor began to hold the call up.
  private var holdCount = 0
  /// The error of the last attempt that a hook has retried.
  final var retryCause: ConnectError?
  private(set) var exchange: Exchange?
  private var exchangeCount = 0
  /// The last one whose outcome counts, for call hooks.
  private var lastExchange: CallOutcome.Exchange?

  init(client: ProtocolClient, method: MethodInfo, streamType: StreamType, options: consuming CallOptions) {
    self.streamType = streamType
    self.client = client
    self.executor = client.executor
    self.method = method
    self.inheritance = client.inherit(into: &options, method: method)
    self.writer = client.writer(isUnary: streamType == .unary, requestCompression: options.requestCompression)
    self.interceptors = client.makeInterceptors(for: method, options: options)
    let timeout = options.timeout ?? client.config.timeout
    self.options = consume options
    self.deadline = timeout.map { client.executor.now + $0.clamped }
  }

  // MARK: For subclasses

  /// Asks an interceptor for its message and byte hooks.
  func addHooks(of interceptor: any Interceptor, _ interceptorCount: Int) {}
  /// Sends the request down that has passed all call hooks.
  func send(_ head: RequestHead) {}
  /// Completes the call with an error of a call hook, once those outside of it have seen that.
  func finish(with error: ConnectError) {}
  /// Tells the hooks of `error`, which they cannot change, and completes the call with it.
  func fail(with error: ConnectError) {}
  /// An exchange may have results.
  func exchangeHasResults(_ exchange: Exchange) {}
  /// The exchange has room for request messages.
  func exchangeHasRoom() {}
  /// Lets go of interceptors and of whatever waits; called once the call is over.
  func release() {}
  /// Runs a job of an async interceptor where the call was made.
  func run(_ job: Job) { job.start(on: self.executor) }
  /// A unary request has passed all byte hooks.
  func sendBytes(_ request: HTTPRequest<ByteBuffer>) {}
  /// A unary response has passed all byte hooks.
  func receiveBytes(_ response: HTTPResponse) {}
  /// The interceptor that holds the call up.
  var holder: HookHolder? { nil }
  /// Runs the jobs of byte hooks where no byte hook's own `next` is pending.
  var byteRunner: any JobRunner { self }

  // MARK: On the executor

  /// Whether the caller is on the executor. What is not there goes there with ``hop(_:)``.
  final var isOnExecutor: Bool { self.executor.isCurrent }

  /// Runs `work` on the executor, later. The call lives until it has run.
  final func hop(_ work: @escaping @Sendable () -> Void) {
    self.executor.execute {
      work()
      withExtendedLifetime(self) {}
    }
  }

  // MARK: Start

  /// Starts the call on its executor.
  final func start() {
    self.executor.run { self.startOnExecutor() }
  }

  final func startOnExecutor() {
    guard !self.isOver else { return }
    if let error = self.client.hostError {
      self.terminate(with: error)
      return
    }
    guard self.method.streamType == self.streamType else {
      self.terminate(
        with: ConnectError(
          code: .invalidArgument,
          message: "\(self.method.path) is \(self.method.streamType), and was called as \(self.streamType)"
        )
      )
      return
    }
    if !self.options.context.isEmpty, let cancellation = self.options.context.cancellation {
      cancellation.add(self)
      guard !self.isOver else { return }
    }
    if let remaining = self.remainingTime {
      guard remaining > .zero else {
        self.deadlineDidPass()
        return
      }
      self.deadlineTimer = self.executor.schedule(after: remaining) { self.deadlineDidPass() }
    }
    let head = self.makeRequestHead()
    guard !self.interceptors.isEmpty else {
      self.send(head)
      return
    }
    let hasCallHooks = self.askForHooks(sendsRequest: true)
    guard !self.isOver else {
      self.releaseAll()
      return
    }
    if hasCallHooks { self.passDown(head) } else { self.send(head) }
  }

  /// Asks the interceptors for their hooks.
  ///
  /// - Parameter sendsRequest: Whether the call begins; else it ends before, and there are call hooks alone.
  /// - Returns: Whether there are hooks for the request or its outcome.
  private func askForHooks(sendsRequest: Bool) -> Bool {
    self.hasAskedForHooks = true
    self.isAskingForHooks = true
    defer { self.isAskingForHooks = false }
    var interceptors = self.interceptors
    self.interceptors = []
    var hasCallHooks = false
    for index in interceptors.indices {
      let interceptor = interceptors[index].interceptor
      let function = interceptor.callFunction(self.method)
      if function.endFunction != nil { self.hasEndHooks = true }
      if !function.isTransparent { hasCallHooks = true }
      if !function.isEmpty { interceptors[index].function = consume function }
      if sendsRequest { self.addHooks(of: interceptor, interceptors.count) }
      // What an interceptor is asked for may end the call. Those behind it are not asked, and hear of nothing.
      if self.isOver {
        if let outcome = self.outcomeInAsking.take() {
          CallHooks(interceptors[...index], self.inheritance).end(outcome)
        }
        return false
      }
    }
    self.interceptors = interceptors
    return hasCallHooks
  }

  // MARK: Call hooks

  private func passDown(_ head: consuming RequestHead) {
    // The one reference to the head: what hooks change, they change in place.
    var request = HTTPRequest(head: head)
    for index in self.interceptors.indices {
      if let function = self.interceptors[index].function.requestFunction {
        self.isAtCallHook = true
        let given = request.head.callPart
        do {
          let interceptor = self.interceptors[index].interceptor
          try self.inheritance.bind(given.context, of: type(of: interceptor)) { try function(&request) }
        } catch {
          self.fail(atCallHookWith: error)
          return
        }
        self.isAtCallHook = false
        guard !self.isOver else { return }
        request.complete(from: given)
        request.complete(with: self.method)
      }
      if self.interceptors[index].function.outcomeFunction != nil { self.waitingCount = index + 1 }
    }
    self.send(request.head)
  }

  private func fail(atCallHookWith error: any Error) {
    guard !self.isOver else { return }
    var error = ConnectError(error)
    error.isUnsent = true
    self.finish(with: error)
  }

  /// Whether there are call hooks that are to be told of the outcome.
  final var hasWaitingHooks: Bool { self.waitingCount > 0 }

  /// Lets call hooks see and change the outcome.
  ///
  /// - Returns: What they have made of it; nil if it is as it was.
  final func passUp(_ outcome: consuming CallOutcome) -> CallOutcome? {
    self.isEnding = true
    if let exchange = self.exchange { self.note(exchange) }
    self.addExchanges(to: &outcome)
    return self.takeWaitingHooks().pass(&outcome) ? outcome : nil
  }

  /// Says in an outcome what went to the network.
  final func addExchanges(to outcome: inout CallOutcome) {
    outcome.attempts = self.exchangeCount
    outcome.exchange = self.lastExchange
  }

  /// The call hooks that are to be told that the call is over.
  final var endHooks: CallHooks { CallHooks(self.interceptors[...], self.inheritance) }

  final func takeWaitingHooks() -> CallHooks {
    let hooks = CallHooks(self.interceptors[..<self.waitingCount], self.inheritance)
    self.waitingCount = 0
    return hooks
  }

  /// Remembers what call hooks are told of an exchange.
  final func note(_ exchange: Exchange) {
    if self.hasWaitingHooks || self.hasEndHooks, let summary = exchange.summary {
      self.lastExchange = summary
    }
  }

  // MARK: Hooks that wait

  /// A hook has returned and not proceeded, or an async interceptor goes on with what it was given.
  final func hookWaits() {
    guard let patience = self.client.config.hookWarnings.holding else { return }
    self.holdCount += 1
    if self.holdTimer == nil { self.watchHolder(patience) }
  }

  /// Not one that has headers alone: most of these wait for what the server sends behind them.
  private var blockingHolder: HookHolder? {
    self.holder.flatMap { $0.held == .headers ? nil : $0 }
  }

  private func watchHolder(_ patience: Duration) {
    let count = self.holdCount
    self.holdTimer = self.executor.schedule(after: patience) { [weak self] in
      guard let self, !self.isOver else { return }
      self.holdTimer = nil
      guard let holder = self.blockingHolder else { return }
      guard count == self.holdCount else {
        self.watchHolder(patience)
        return
      }
      self.logger.warning(
        "an interceptor holds a call up",
        metadata: [
          "rpc.method": "\(self.method.path)",
          "interceptor": "\(holder.interceptor)",
          "since": "more than \(patience)",
        ]
      )
    }
  }

  /// Ends the call, since a hook has let go of what it would have had to proceed with.
  final func abandon(by holder: HookHolder) {
    self.terminate(with: .abandoned(self.method, by: holder))
  }

  /// A ticket for a visit of a hook.
  final func takeTicket() -> ProceedTicket {
    self.spareTicket.take() ?? ProceedTicket()
  }

  // MARK: Metrics

  final func addMetricsHook(
    _ function: @escaping (HTTPMetrics, Proceed<HTTPMetrics>) -> Void,
    of interceptor: any Interceptor.Type
  ) {
    self.metricsHooks.append(ExchangeMeter.Hook(function: function, interceptor: interceptor))
  }

  /// The metrics of an attempt are given to hooks later, and before the end.
  final func metricsArePending() { self.pendingMetrics += 1 }

  final func metricsWereGiven() { self.pendingMetrics -= 1 }

  /// A new one for an exchange; nil if nobody wants to know its metrics.
  final func makeMeter() -> ExchangeMeter? {
    self.metricsHooks.isEmpty ? nil : ExchangeMeter(call: self, hooks: self.metricsHooks)
  }

  // MARK: End

  /// Cancels the call, also on the wire. Does nothing once it is over. From any thread.
  final func cancel() {
    self.executor.run {
      self.terminate(with: ConnectError(code: .canceled, message: "the call was cancelled"))
    }
  }

  /// Ends the call with `deadline_exceeded` if its time is up, although the timer has not run yet: then no error
  /// of the peer counts any more.
  final func endIfDeadlineHasPassed() -> Bool {
    guard let remaining = self.remainingTime, remaining <= .zero else { return false }
    self.deadlineDidPass()
    return true
  }

  private func deadlineDidPass() {
    let timeout = self.timeout ?? .zero
    let holder = self.blockingHolder.map { "; \($0) and has not passed it on" } ?? ""
    self.terminate(
      with: ConnectError(
        code: .deadlineExceeded,
        message: "\(self.method.path) did not complete within \(timeout)\(holder)"
      )
    )
  }

  /// Ends the call with an error of its own.
  final func terminate(with error: ConnectError) {
    guard !self.isOver, !self.isEnding else { return }
    self.isEnding = true
    if self.hasAskedForHooks {
      self.mayEndInHook = true
    } else if !self.interceptors.isEmpty {
      _ = self.askForHooks(sendsRequest: false)
    }
    self.dropExchange()
    self.fail(with: error)
  }

  /// Marks the call as over. Returns false if it already was: then the caller must not complete it.
  ///
  /// - Parameter outcome: For end hooks, what the caller gets.
  final func markOver(_ outcome: @autoclosure () -> CallOutcome) -> Bool {
    guard !self.isOver else { return false }
    self.isOver = true
    self.hasEnded.store(true, ordering: .relaxed)
    self.deadlineTimer?.cancel()
    self.deadlineTimer = nil
    self.retryTimer?.cancel()
    self.retryTimer = nil
    self.holdTimer?.cancel()
    self.holdTimer = nil
    self.dropExchange()
    if self.hasEndHooks || self.isAskingForHooks {
      self.end(outcome())
    } else {
      self.releaseAll()
    }
    return true
  }

  /// Lets go of the interceptors, and tells them that the call is over.
  private func end(_ outcome: consuming CallOutcome) {
    self.addExchanges(to: &outcome)
    if self.isAskingForHooks { self.outcomeInAsking = outcome }
    let hooks = self.endHooks
    let comesLater = self.mayEndInHook || self.pendingMetrics > 0
    self.releaseAll()
    if comesLater {
      let end = outcome
      self.executor.execute { hooks.end(end) }
    } else {
      hooks.end(outcome)
    }
  }

  private func releaseAll() {
    self.interceptors = []
    self.metricsHooks = []
    self.release()
  }

  // MARK: Deadline

  final var timeout: Duration? { (self.options.timeout ?? self.client.config.timeout)?.clamped }

  /// What is left until the deadline; nil if there is none. May be less than zero.
  final var remainingTime: Duration? {
    self.deadline.map { $0 - self.executor.now }
  }

  // MARK: Attempts

  /// Takes one retry from the cap. Returns false if the cap is reached or the delay would pass the deadline.
  final func takeRetry(after delay: Duration = .zero) -> Bool {
    guard !self.isOver, !self.isEnding,
      self.attempt - self.hedgeCount <= self.client.config.retries.maximumRetries
    else { return false }
    if let remaining = self.remainingTime, delay >= remaining { return false }
    self.attempt += 1
    self.dropExchange()
    return true
  }

  /// Runs `work` after a delay, unless the call is over by then.
  final func afterDelay(_ delay: Duration, _ work: @escaping @Sendable () -> Void) {
    guard delay > .zero else {
      work()
      return
    }
    self.retryTimer?.cancel()
    self.retryTimer = self.executor.schedule(after: delay.clamped) {
      guard !self.isOver else { return }
      self.retryTimer = nil
      work()
    }
  }

  /// Counts an exchange that goes to the network.
  final func countExchange() {
    self.exchangeCount += 1
  }

  /// Counts an attempt that starts beside others.
  final func countHedge() {
    self.attempt += 1
    self.hedgeCount += 1
  }

  /// Whether a request that the server certainly did not process may be sent again. True once per call.
  func takeTransparentRetry(of exchange: Exchange) -> Bool {
    guard !self.isOver, !self.hasRetriedTransparently else { return false }
    self.hasRetriedTransparently = true
    return true
  }

  final func startExchange(_ request: RequestHead, body: consuming Exchange.Body) {
    // The user's code that ran last may have ended the call.
    guard !self.isOver else { return }
    let exchange = Exchange(call: self, request: request)
    self.exchange = exchange
    exchange.start(body)
  }

  /// Gives up what is on the wire, if anything is.
  func dropExchange() {
    guard let exchange = self.exchange else { return }
    self.exchange = nil
    self.note(exchange)
    exchange.cancel()
  }

  // MARK: The request

  /// The request that the caller made, but for its message.
  final func makeRequestHead() -> RequestHead {
    RequestHead(
      url: self.client.url(for: self.method),
      contentType: self.client.contentType(for: self.method.streamType),
      headers: self.options.headers,
      trailers: Headers(),
      context: self.options.context,
      isGET: self.client.mayUseGET(for: self.method),
      timeout: self.timeout,
      method: self.method,
      clientIdentity: self.client.clientIdentity
    )
  }

  final var logger: Logger { self.client.config.logger }

  final func logIgnored(_ what: String) {
    self.logger.debug(
      "ignored: the call or the attempt is over, or the hook has proceeded before",
      metadata: ["rpc.method": "\(self.method.path)", "hook": "\(what)"]
    )
  }
}

extension Call: Cancellable {}
