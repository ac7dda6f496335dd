/// The response side of a closure interceptor in a stream. Confined to the call's executor.
final class ResultHookStage<Owner: StreamStageOwner>: LaneStage, @unchecked Sendable {
  typealias Hooks = StreamHooks<Owner.RequestMessage, Owner.ResponseMessage>
  typealias Element = StreamResult<Owner.ResponseMessage>

  private let index: Int
  private var hooks: Hooks
  private unowned let owner: Owner
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

  init(index: Int, hooks: Hooks, owner: Owner, maximumWaiting: Int) {
    self.index = index
    self.hooks = hooks
    self.owner = owner
    self.call = owner.call
    self.inheritance = owner.call.inheritance
    self.maximumWaiting = maximumWaiting
  }

  var hasRoom: Bool { self.window.count < self.maximumWaiting }

  func wants(_ isWantedBehind: Bool) -> Bool { isWantedBehind && self.hasRoom }

  func accept(_ result: Element) {
    guard !self.isClosed else { return }
    if case .complete = result { self.isClosed = true }
    guard let function = self.hooks.streamResultFunction else {
      self.window.appendReady(result)
      return
    }
    let id = self.window.appendWaiting(result)
    let proceed = Hooks.ResultProceed { [call] verb in
      guard call.isOnExecutor else {
        call.hop { self.result(id, did: verb) }
        return
      }
      self.result(id, did: verb)
    }
    if let inheritance = self.inheritance {
      inheritance.bind(nil) { function(result, proceed) }
    } else {
      function(result, proceed)
    }
  }

  private func result(_ id: Int, did verb: StreamResultVerb<Owner.ResponseMessage>) {
    guard let given = self.window.waiting(id) else {
      self.call.logIgnored("stream result hook \(self.index)")
      return
    }
    switch verb {
    case .proceed(let result):
      self.pass(result.consistent, inPlaceOf: given, id)
    case .drop:
      if case .message = given {
        self.window.resolve(id, with: nil)
      } else {
        self.window.resolve(id, with: given)
      }
    case .retry(let request, let delay):
      if !self.hasPassedOut, self.owner.retry(at: self.index, request, after: delay) { return }
      self.window.resolve(id, with: given)
    }
    self.owner.pump()
  }

  private func pass(_ result: Element, inPlaceOf given: Element, _ id: Int) {
    self.window.resolve(id, with: result)
    switch (given, result) {
    case (.complete, .complete):
      break
    case (.complete, _):
      self.window.appendReady(.complete(code: .ok, error: nil, trailers: Headers()))
    case (_, .complete):
      self.isClosed = true
      self.window.removeAll(behind: id)
      self.owner.closeInside(of: self.index)
    default:
      break
    }
  }

  func takeReady() -> Element? {
    guard let result = self.window.takeReady() else { return nil }
    self.hasPassedOut = true
    return result
  }

  func reset() {
    self.window.removeAll()
    self.isClosed = false
    self.hasPassedOut = false
  }

  /// Tells the hook of an end that it cannot change, unless it has seen one.
  func observe(_ error: ConnectError) {
    guard !self.isClosed else { return }
    self.isClosed = true
    self.window.removeAll()
    guard let function = self.hooks.streamResultFunction else { return }
    if let inheritance = self.inheritance {
      inheritance.bind(nil) { function(.failed(error), Proceed(isOver: true) { _ in }) }
    } else {
      function(.failed(error), Proceed(isOver: true) { _ in })
    }
  }

  /// Lets go of the interceptor, which may hold on to a `proceed` and thereby to this stage.
  func release() {
    self.reset()
    self.hooks = Hooks()
  }
}
