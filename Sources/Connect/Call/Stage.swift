/// An interceptor at one level of a call, or the codec between the levels. It decides which parts wait, and what a
/// `proceed` does.
///
/// It calls no other code, and does not look into messages. It returns the parts that it gives up. They are to be
/// released where no access is in progress, since a release may run user code that re-enters this object. Subclasses
/// add the hooks that the ``Pipeline`` calls.
class Stage {
  /// How the pipeline continues after a request hook.
  enum RequestStep {
    /// The part goes to the next stage inwards.
    case pass(RequestPart)
    /// The part stays here, for now or for good.
    case stay
    /// These results replace everything inside.
    case answer([ResultPart])

    /// A request hook fails the call.
    static func failed(_ error: ConnectError, as form: Form) -> RequestStep {
      var error = error
      error.isUnsent = true
      return .answer([form.failure(error)])
    }
  }

  /// How the pipeline continues after a response hook.
  enum ResultStep {
    /// The result goes to the next stage outwards.
    case pass(ResultPart)
    /// The result stays here, for now or for good.
    case stay
    /// The hook has ended the stream: everything inside is to be abandoned.
    case end
    /// The hook asks for a new attempt. If it is refused, ``Stage/retryWasRefused(_:)`` is to be called.
    case retry(RequestPart?, after: Duration)
  }

  /// The form of a result at the stage.
  enum Form {
    case response
    case responseBytes
    case stream
    case streamBytes

    var isUnary: Bool { self == .response || self == .responseBytes }

    /// An error in this form.
    func failure(_ error: ConnectError) -> ResultPart {
      switch self {
      case .response: .whole(AnyResponse(error: error))
      case .responseBytes: .wholeBytes(HTTPResponse(error: error))
      case .stream, .streamBytes: .failed(error)
      }
    }
  }

  /// A stage with what it does, on which depends how the pipeline calls it.
  enum Role {
    case codec(Stage)
    case hooks(HookStage)
    case async(AsyncStage)

    var stage: Stage {
      switch self {
      case .codec(let stage): stage
      case .hooks(let stage): stage
      case .async(let stage): stage
      }
    }
  }

  /// Parts that waited and were given up.
  typealias Kept = (requests: HookWindow<RequestPart>?, results: HookWindow<ResultPart>?)

  final let form: Form
  /// Named in errors and logs.
  final let interceptor: any Interceptor.Type
  /// Parts of the request that wait at its hook, or for room further in; nil until one waits.
  final private(set) var requests: HookWindow<RequestPart>?
  /// Parts of the response that wait at its hook, or for room further out; nil until one waits.
  final private(set) var results: HookWindow<ResultPart>?
  /// Whether its hook has the request, or the stream's head, and has not passed it on. Set before the hook is called.
  final var holdsHead = false
  /// Whether the request went on inwards, so that the interceptor waits for a result.
  final private(set) var hasPassedHead = false
  /// Whether the end has come here, or was put here by the hook.
  final private(set) var isClosed = false
  /// Whether a result of this attempt has gone on outwards.
  final private(set) var hasPassedOut = false

  /// Whether it may have a part that can go on.
  var keepsPart: Bool { !HookWindow.isClear(self.requests) || !HookWindow.isClear(self.results) }

  init(_ form: Form, of interceptor: any Interceptor.Type) {
    self.form = form
    self.interceptor = interceptor
  }

  // MARK: The request

  /// Whether the stage takes another part of the request, where `maximum` parts may wait.
  func hasRoomForRequest(_ maximum: Int) -> Bool {
    HookWindow.isClear(self.requests) || (!self.holdsHead && self.requests.map { $0.count < maximum } ?? true)
  }

  /// A part passes without a hook.
  ///
  /// - Parameter mayPass: Whether there is room further in, and no earlier part waits.
  final func pass(_ part: consuming RequestPart, mayPass: Bool) -> RequestStep {
    if part.hasHead {
      self.holdsHead = false
      self.hasPassedHead = true
    }
    if mayPass { return .pass(part) }
    self.requests = (self.requests ?? HookWindow()).appendReady(part)
    return .stay
  }

  /// The hook has returned and not proceeded.
  final func wait(_ part: consuming RequestPart, as number: Int) {
    if part.hasHead { self.holdsHead = true }
    self.requests = (self.requests ?? HookWindow()).appendWaiting(part, as: number)
  }

  /// The hook has proceeded before it returned.
  ///
  /// - Parameter given: What the hook received.
  final func didReturn(_ action: consuming HookAction, given: RequestPart, mayPass: Bool) -> RequestStep {
    if given.hasHead { self.holdsHead = false }
    let step = self.step(action, given)
    guard !mayPass, case .pass(let part) = step else { return step }
    self.requests = (self.requests ?? HookWindow()).appendReady(part)
    return .stay
  }

  /// The hook has proceeded after it had returned.
  ///
  /// - Returns: Nil if the visit is obsolete.
  final func didRequest(_ action: consuming HookAction, _ number: Int) -> RequestStep? {
    guard let requests = self.requests, let given = requests.waiting(number) else { return nil }
    if given.hasHead { self.holdsHead = false }
    let step = self.step(action, given)
    switch step {
    case .pass(let part): requests.resolve(number, with: part)
    case .stay: requests.resolve(number, with: nil)
    case .answer: return step
    }
    withExtendedLifetime(given) {}
    return .stay
  }

  private func step(_ action: consuming HookAction, _ given: RequestPart) -> RequestStep {
    switch consume action {
    case .send(let part):
      if given.hasHead { self.hasPassedHead = true }
      if part.isInPlace(of: given, isUnary: self.form.isUnary) { return .pass(part.boxed(for: self.form)) }
      return .pass(part.inPlace(of: given.head, isUnary: self.form.isUnary))
    case .fail(let error): return .failed(error, as: self.form)
    case .answer(let results): return .answer(results)
    case .drop, .receive, .retry, .metrics: return .stay
    }
  }

  /// Counts the encoded size of a message against the limit of what is kept for a retry.
  func charge(_ byteCount: Int) {}

  /// The next part that can go on inwards.
  func takeReadyRequest() -> RequestPart? { self.requests?.takeReady() }

  // MARK: The response

  /// Whether the stage takes another result, where `maximum` results may wait.
  func hasRoomForResult(_ maximum: Int) -> Bool { self.results.map { $0.count < maximum } ?? true }

  /// Whether the stage should receive a result from inside, where `maximum` results may wait.
  ///
  /// - Parameter isWanted: Whether a result of this stage is wanted outside.
  func wantsResult(_ isWanted: Bool, _ maximum: Int) -> Bool { isWanted && self.hasRoomForResult(maximum) }

  /// A result has come.
  ///
  /// - Returns: False if the result is to be ignored, since the stage has had the end.
  final func accept(_ result: ResultPart) -> Bool {
    guard !self.isClosed else { return false }
    if result.isEnd { self.isClosed = true }
    return true
  }

  /// A result goes on outwards, if there is room and no earlier result waits.
  final func pass(_ result: consuming ResultPart, mayPass: Bool) -> ResultStep {
    guard mayPass else {
      self.results = (self.results ?? HookWindow()).appendReady(result)
      return .stay
    }
    self.hasPassedOut = true
    return .pass(result)
  }

  /// The hook has returned and not proceeded.
  final func wait(_ result: consuming ResultPart, as number: Int) {
    self.results = (self.results ?? HookWindow()).appendWaiting(result, as: number)
  }

  /// The hook has proceeded before it returned, from a visit with this number.
  final func didReturn(_ action: consuming HookAction, given: ResultPart, _ number: Int, mayPass: Bool)
    -> ResultStep
  {
    switch consume action {
    case .receive(let result) where given.isEnd == result.isEnd:
      return self.pass(result.boxed(for: self.form), mayPass: mayPass)
    case .drop where given.isMessage:
      return .stay
    case let other:
      self.wait(given, as: number)
      return self.didResult(other, number) ?? .stay
    }
  }

  /// The hook has proceeded after it had returned.
  ///
  /// - Returns: Nil if the visit is obsolete.
  final func didResult(_ action: consuming HookAction, _ number: Int) -> ResultStep? {
    guard let results = self.results, let given = results.waiting(number) else { return nil }
    switch consume action {
    case .receive(let result):
      results.resolve(number, with: result.boxed(for: self.form))
      if given.isEnd, !result.isEnd {
        results.appendReady(.end(nil, trailers: Headers()))
      } else if !given.isEnd, result.isEnd {
        self.isClosed = true
        let removed = results.removeAll(behind: number)
        withExtendedLifetime((given, removed)) {}
        return .end
      }
    case .retry(let part, let delay):
      guard !self.hasPassedOut else {
        self.retryWasRefused(number)
        return .stay
      }
      return .retry(part, after: delay)
    case .drop:
      results.resolve(number, with: given.isMessage ? nil : given)
    case .send, .fail, .answer, .metrics:
      results.resolve(number, with: given)
    }
    withExtendedLifetime(given) {}
    return .stay
  }

  /// The hook's retry was refused: the result passes on, together with all results that the hook has held back.
  final func retryWasRefused(_ number: Int) {
    guard let results = self.results, let given = results.waiting(number) else { return }
    results.passAll(before: number)
    results.resolve(number, with: given)
  }

  /// The next result that can go on outwards.
  func takeReadyResult() -> ResultPart? {
    guard let result = self.results?.takeReady() else { return nil }
    self.hasPassedOut = true
    return result
  }

  // MARK: Attempts

  /// A new attempt begins.
  ///
  /// - Parameter keepsHead: Whether the interceptor still waits for a result.
  final func reset(keepsHead: Bool) -> Kept {
    self.holdsHead = false
    self.isClosed = false
    self.hasPassedOut = false
    if !keepsHead { self.hasPassedHead = false }
    let kept = (self.requests, self.results)
    self.requests = nil
    self.results = nil
    return kept
  }

  /// The call is over.
  ///
  /// - Returns: Whether the interceptor still waits for a result.
  final func finish() -> Bool {
    defer { self.isClosed = true }
    return self.hasPassedHead && !self.isClosed
  }
}

// Hooks whose messages are bytes proceed with bytes. At message hooks, these are messages of a method whose type is
// bytes.

extension RequestPart {
  fileprivate consuming func boxed(for form: Stage.Form) -> RequestPart {
    guard form == .stream, case .bytes(let bytes) = self else { return self }
    return .message(MessageBox(bytes))
  }
}

extension ResultPart {
  fileprivate consuming func boxed(for form: Stage.Form) -> ResultPart {
    guard form == .stream, case .bytes(let bytes) = self else { return self }
    return .message(MessageBox(bytes))
  }
}
