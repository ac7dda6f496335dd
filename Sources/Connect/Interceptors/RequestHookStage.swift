/// The request side of a closure interceptor in a stream.
///
/// Messages wait until the hook for the head has proceeded. Confined to the call's executor.
final class RequestHookStage<RequestMessage: Sendable, ResponseMessage: Sendable>: LaneStage<
  RequestPart<RequestMessage>
>, @unchecked Sendable
{
  typealias Hooks = StreamHooks<RequestMessage, ResponseMessage>
  typealias Element = RequestPart<RequestMessage>
  typealias Verb = StreamDataVerb<RequestMessage>
  private typealias HeadVerb = RequestVerb<HTTPRequest<Void>, StreamAnswer<ResponseMessage>>

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
  /// Whether the hook has the request's head and has not passed it on.
  private(set) var isHeadWaiting = false
  /// Whether the request's head went on inwards, so that the interceptor waits for results.
  private(set) var hasPassedHead = false

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

  override var hasRoom: Bool { !self.isHeadWaiting && self.window.count < self.maximumWaiting }

  override var isEmpty: Bool { self.window.isEmpty }

  override func wants(_ isWantedBehind: Bool) -> Bool { isWantedBehind }

  override func accept(_ part: Element, mayPass: Bool) -> Element? {
    let mayPass = mayPass && self.window.isEmpty
    switch part {
    case .head(let request):
      if let function = self.hooks.requestFunction {
        let id = self.takeID()
        self.window.appendWaiting(part, as: id)
        self.call(function, with: request, id)
        return mayPass ? self.takeReady() : nil
      }
      self.hasPassedHead = true
    case .message(let message):
      if let function = self.hooks.requestMessageFunction {
        if mayPass { return self.pass(message, function).map { .message($0) } }
        let id = self.takeID()
        self.window.appendWaiting(part, as: id)
        self.call(function, with: message, .armed(self, visit: id, of: self.call))
        if self.window.waiting(id) != nil { self.call.hookWaits() }
        return nil
      }
    case .end:
      break
    }
    if mayPass { return part }
    self.window.appendReady(part, as: self.takeID())
    return nil
  }

  private func call(
    _ function: (HTTPRequest<Void>, Hooks.RequestProceed) -> Void,
    with request: HTTPRequest<Void>,
    _ id: Int
  ) {
    self.isHeadWaiting = true
    let proceed = Hooks.RequestProceed.armed(self, visit: id, of: self.call)
    self.inheritance.bind(request.head.context, of: self.interceptor) { function(request, proceed) }
    if self.isHeadWaiting { self.call.hookWaits() }
  }

  /// Calls the hook with a message that need not be kept if the hook proceeds before it returns.
  ///
  /// - Returns: What goes on. Nil if the message is kept here or was dropped.
  @inline(__always)
  private func pass(
    _ message: RequestMessage,
    _ function: (RequestMessage, Hooks.DataProceed) -> Void
  ) -> RequestMessage? {
    let id = self.takeID()
    return self.visit(id, of: self.call) { (proceed: Proceed<Verb>) in
      self.call(function, with: message, proceed)
    } did: { (verb: consuming Verb) -> RequestMessage? in
      switch consume verb {
      case .proceed(let passed): passed
      case .drop: nil
      }
    } waits: {
      self.window.appendWaiting(.message(message), as: id)
      self.call.hookWaits()
    }
  }

  /// Passes a message on that nothing waits in front of.
  @inline(__always)
  func pass(_ message: RequestMessage) -> RequestMessage? {
    guard let function = self.hooks.requestMessageFunction else { return message }
    return self.pass(message, function)
  }

  @inline(__always)
  private func call(
    _ function: (RequestMessage, Hooks.DataProceed) -> Void,
    with message: RequestMessage,
    _ proceed: Proceed<Verb>
  ) {
    self.inheritance.bind(nil, of: self.interceptor) { function(message, proceed) }
  }

  private func head(_ id: Int, _ given: HTTPRequest<Void>, did verb: HeadVerb) {
    self.isHeadWaiting = false
    switch verb {
    case .proceed(.success(var request)):
      request.complete(from: given.head)
      self.hasPassedHead = true
      self.window.resolve(id, with: .head(request))
      self.chain.pump()
    case .proceed(.failure(var error)):
      error.isUnsent = true
      self.chain.answer(at: self.index, with: [.failed(error)])
    case .answer(let answer):
      self.chain.answer(at: self.index, with: answer.results)
    }
  }

  override func goOn(_ id: Int, with verb: UnsafeRawPointer) {
    switch self.window.waiting(id) {
    case .head(let given): self.head(id, given, did: verb.assumingMemoryBound(to: HeadVerb.self).pointee)
    case .message: self.message(id, did: verb.assumingMemoryBound(to: Verb.self).pointee)
    case .end, nil: self.call.logIgnored("stream request hook \(self.index)")
    }
  }

  private func message(_ id: Int, did verb: Verb) {
    switch verb {
    case .proceed(let message): self.window.resolve(id, with: .message(message))
    case .drop: self.window.resolve(id, with: nil)
    }
    self.chain.pump()
  }

  override func hookWasDropped(_ id: Int) {
    if self.window.waiting(id) != nil, let holder = self.holder { self.call.abandon(by: holder) }
  }

  /// The interceptor, if it has something that it has not passed on.
  var holder: HookHolder? {
    guard self.window.hasWaiting else { return nil }
    return HookHolder(interceptor: self.interceptor, held: self.isHeadWaiting ? .request : .requestMessage)
  }

  override func takeReady() -> Element? { self.window.takeReady() }

  func reset() {
    self.restart()
    self.hasPassedHead = false
  }

  /// Lets go of everything; a new attempt begins, and the interceptor still waits for results of the old one.
  func restart() {
    self.window.removeAll()
    self.abandon()
    self.isHeadWaiting = false
  }

  /// Lets go of the interceptor, which may hold on to a `proceed` and thereby to this stage.
  func release() {
    self.reset()
    self.hooks = Hooks()
  }
}
