/// The response side of a closure interceptor in a stream. Confined to the call's executor.
final class ResultHookStage<RequestMessage: Sendable, ResponseMessage: Sendable>: LaneStage<
  StreamResult<ResponseMessage>
>, @unchecked Sendable
{
  typealias Hooks = StreamHooks<RequestMessage, ResponseMessage>
  typealias Element = StreamResult<ResponseMessage>
  typealias Verb = StreamResultVerb<ResponseMessage>

  private let index: Int
  private let interceptor: any Interceptor.Type
  private var hooks: Hooks
  private unowned let chain: StreamChain<RequestMessage, ResponseMessage>
  /// Retained by every `proceed` that is handed out; see ``UnaryChain``.
  private unowned let call: Call
  /// Of the call, which may be gone when hooks are told of that.
  private let inheritance: Inheritance?
  private let maximumWaiting: Int
  private var window = HookWindow<Element>()
  /// Whether the end has come here, or was put here by the hook.
  private var isClosed = false
  /// Whether a result of this attempt has gone on outwards.
  private var hasPassedOut = false

  init(
    index: Int,
    hooks: Hooks,
    interceptor: any Interceptor.Type,
    chain: StreamChain<RequestMessage, ResponseMessage>,
    maximumWaiting: Int
  ) {
    self.index = index
    self.interceptor = interceptor
    self.hooks = hooks
    self.chain = chain
    self.call = chain.call
    self.inheritance = chain.call.inheritance
    self.maximumWaiting = maximumWaiting
  }

  override var hasRoom: Bool { self.window.count < self.maximumWaiting }
  override var isEmpty: Bool { self.window.isEmpty }

  override func accept(_ result: Element, mayPass: Bool) -> Element? {
    guard !self.isClosed else { return nil }
    let mayPass = mayPass && self.window.isEmpty
    guard let function = self.hooks.streamResultFunction else {
      if case .complete = result { self.isClosed = true }
      guard mayPass else {
        self.window.appendReady(result, as: self.takeID())
        return nil
      }
      self.hasPassedOut = true
      return result
    }
    if mayPass, case .message = result { return self.pass(result, function).map { .message($0) } }
    if case .complete = result { self.isClosed = true }
    let id = self.takeID()
    self.window.appendWaiting(result, as: id)
    self.call(function, with: result, .armed(self, visit: id, of: self.call))
    if mayPass, let passed = self.takeReady() { return passed }
    if self.window.hasWaiting { self.call.hookWaits() }
    return nil
  }

  /// Calls the hook with a message that need not be kept if the hook proceeds before it returns.
  ///
  /// - Returns: What goes on. Nil if the message is kept here or was dropped.
  @inline(__always)
  private func pass(_ message: Element, _ function: (Element, Hooks.ResultProceed) -> Void)
    -> ResponseMessage?
  {
    let id = self.takeID()
    return self.visit(id, of: self.call) { (proceed: Proceed<Verb>) in
      self.call(function, with: message, proceed)
    } did: { (verb: consuming Verb) -> ResponseMessage? in
      switch consume verb {
      case .proceed(.message(let passed)):
        self.hasPassedOut = true
        return passed
      case .drop:
        return nil
      case let verb:
        self.window.appendWaiting(message, as: id)
        self.result(id, did: verb)
        return nil
      }
    } waits: {
      self.window.appendWaiting(message, as: id)
      self.call.hookWaits()
    }
  }

  /// Passes a message on that nothing waits in front of.
  @inline(__always)
  func pass(_ message: ResponseMessage) -> ResponseMessage? {
    guard let function = self.hooks.streamResultFunction else { return message }
    return self.pass(.message(message), function)
  }

  @inline(__always)
  private func call(
    _ function: (Element, Hooks.ResultProceed) -> Void,
    with result: Element,
    _ proceed: Proceed<Verb>
  ) {
    self.inheritance.bind(nil, of: self.interceptor) { function(result, proceed) }
  }

  override func hookWasDropped(_ id: Int) {
    if self.window.waiting(id) != nil, let holder = self.holder { self.call.abandon(by: holder) }
  }

  /// The interceptor, if it has something that it has not passed on.
  var holder: HookHolder? {
    guard self.window.hasWaiting else { return nil }
    return HookHolder(interceptor: self.interceptor, held: self.hasHeadersAlone ? .headers : .response)
  }

  private var hasHeadersAlone: Bool {
    guard self.window.count == 1, case .headers? = self.window.firstWaiting else { return false }
    return true
  }

  override func goOn(_ id: Int, with verb: UnsafeRawPointer) {
    self.result(id, did: verb.assumingMemoryBound(to: Verb.self).pointee)
  }

  private func result(_ id: Int, did verb: consuming Verb) {
    guard let given = self.window.waiting(id) else {
      self.call.logIgnored("stream result hook \(self.index)")
      return
    }
    switch consume verb {
    case .proceed(let result):
      self.pass(result.consistent, inPlaceOf: given, id)
    case .drop:
      if case .message = given {
        self.window.resolve(id, with: nil)
      } else {
        self.window.resolve(id, with: given)
      }
    case .retry(let request, let delay):
      if case .complete(_, let error, _) = given { self.call.retryCause = error }
      if !self.hasPassedOut, self.chain.retry(at: self.index, request, after: delay) { return }
      // A hook that asks for a retry keeps nothing of this attempt back.
      self.window.passAll(before: id)
      self.window.resolve(id, with: given)
    }
    self.chain.pump()
  }

  private func pass(_ result: Element, inPlaceOf given: Element, _ id: Int) {
    self.window.resolve(id, with: result)
    switch (given, result) {
    case (.complete, .complete):
      break
    case (.complete, _):
      self.window.appendReady(.complete(code: .ok, error: nil, trailers: Headers()), as: self.takeID())
    case (_, .complete):
      self.isClosed = true
      self.window.removeAll(behind: id)
      self.chain.closeInside(of: self.index)
    default:
      break
    }
  }

  override func takeReady() -> Element? {
    guard let result = self.window.takeReady() else { return nil }
    self.hasPassedOut = true
    return result
  }

  func reset() {
    self.window.removeAll()
    self.abandon()
    self.isClosed = false
    self.hasPassedOut = false
  }

  /// Tells the hook of an end that it cannot change, unless it has seen one.
  func observe(_ error: ConnectError, on executor: any TaskExecutor) {
    guard !self.isClosed else { return }
    self.isClosed = true
    self.window.removeAll()
    guard let function = self.hooks.streamResultFunction else { return }
    self.inheritance.bind(nil, of: self.interceptor) {
      function(.failed(error), .over(on: executor))
    }
  }

  /// Lets go of the interceptor, which may hold on to a `proceed` and thereby to this stage.
  func release() {
    self.reset()
    self.hooks = Hooks()
  }
}
