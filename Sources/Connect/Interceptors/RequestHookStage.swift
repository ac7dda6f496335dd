/// The request side of a closure interceptor in a stream.
///
/// Messages wait until the hook for the head has proceeded. Confined to the call's executor.
final class RequestHookStage<Owner: StreamStageOwner>: LaneStage, @unchecked Sendable {
  typealias Hooks = StreamHooks<Owner.RequestMessage, Owner.ResponseMessage>
  typealias Element = RequestPart<Owner.RequestMessage>

  private let index: Int
  private var hooks: Hooks
  private unowned let owner: Owner
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

  init(index: Int, hooks: Hooks, owner: Owner, maximumWaiting: Int) {
    self.index = index
    self.hooks = hooks
    self.owner = owner
    self.call = owner.call
    self.inheritance = owner.call.inheritance
    self.maximumWaiting = maximumWaiting
  }

  var hasRoom: Bool { !self.isHeadWaiting && self.window.count < self.maximumWaiting }

  func wants(_ isWantedBehind: Bool) -> Bool { isWantedBehind }

  func accept(_ part: Element) {
    switch part {
    case .head(let request):
      guard let function = self.hooks.requestFunction else {
        self.hasPassedHead = true
        self.window.appendReady(part)
        return
      }
      let id = self.window.appendWaiting(part)
      self.isHeadWaiting = true
      let proceed = Hooks.RequestProceed { [call] verb in
        guard call.isOnExecutor else {
          call.hop { self.head(id, did: verb) }
          return
        }
        self.head(id, did: verb)
      }
      if let inheritance = self.inheritance {
        inheritance.bind(request.head.context) { function(request, proceed) }
      } else {
        function(request, proceed)
      }
    case .message(let message):
      guard let function = self.hooks.requestMessageFunction else {
        self.window.appendReady(part)
        return
      }
      let id = self.window.appendWaiting(part)
      let proceed = Hooks.DataProceed { [call] verb in
        guard call.isOnExecutor else {
          call.hop { self.message(id, did: verb) }
          return
        }
        self.message(id, did: verb)
      }
      if let inheritance = self.inheritance {
        inheritance.bind(nil) { function(message, proceed) }
      } else {
        function(message, proceed)
      }
    case .end:
      self.window.appendReady(part)
    }
  }

  private func head(
    _ id: Int,
    did verb: RequestVerb<HTTPRequest<Void>, StreamAnswer<Owner.ResponseMessage>>
  ) {
    guard case .head(let given)? = self.window.waiting(id) else {
      self.call.logIgnored("stream request hook \(self.index)")
      return
    }
    self.isHeadWaiting = false
    switch verb {
    case .proceed(.success(var request)):
      request.complete(from: given.head)
      self.hasPassedHead = true
      self.window.resolve(id, with: .head(request))
      self.owner.pump()
    case .proceed(.failure(var error)):
      error.isUnsent = true
      self.owner.answer(at: self.index, with: [.failed(error)])
    case .answer(let answer):
      self.owner.answer(at: self.index, with: answer.results)
    }
  }

  private func message(_ id: Int, did verb: StreamDataVerb<Owner.RequestMessage>) {
    guard self.window.waiting(id) != nil else {
      self.call.logIgnored("stream data hook \(self.index)")
      return
    }
    switch verb {
    case .proceed(let message): self.window.resolve(id, with: .message(message))
    case .drop: self.window.resolve(id, with: nil)
    }
    self.owner.pump()
  }

  func takeReady() -> Element? { self.window.takeReady() }

  func reset() {
    self.restart()
    self.hasPassedHead = false
  }

  /// Lets go of everything; a new attempt begins, and the interceptor still waits for results of the old one.
  func restart() {
    self.window.removeAll()
    self.isHeadWaiting = false
  }

  /// Lets go of the interceptor, which may hold on to a `proceed` and thereby to this stage.
  func release() {
    self.reset()
    self.hooks = Hooks()
  }
}
