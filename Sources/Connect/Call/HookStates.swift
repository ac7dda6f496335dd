/// How far the parts of a call have come among its hooks, and what waits there. It decides which parts wait, and what a
/// `proceed` does.
///
/// A hook that proceeds before it returns costs a mark or two here. Only where a part has to wait, there is a window.
///
/// It calls no other code, and does not look into messages, so it is tested without a call. It returns the parts that it
/// gives up. They are to be released where no access is in progress, since a release may run user code that re-enters this
/// object.
class HookStates {
  /// The parts that wait at one stage.
  struct Waiting {
    /// Parts of the request that wait at the hook, or for room further in; nil until one waits.
    var requests: HookWindow<RequestPart>?
    /// Parts of the response that wait at the hook, or for room further out; nil until one waits.
    var results: HookWindow<ResultPart>?

    var isEmpty: Bool { HookWindow.isClear(self.requests) && HookWindow.isClear(self.results) }
  }

  /// What has happened at a stage in this attempt.
  private enum Mark {
    /// The request went on inwards, so that the interceptor waits for a result.
    static let passedHead: UInt8 = 1
    /// The end has come here, or was put here by the hook.
    static let closed: UInt8 = 2
    /// A result of this attempt has gone on outwards.
    static let passedOut: UInt8 = 4
  }

  private var marks: [UInt8] = []
  /// Empty until a part waits.
  private var waiting: [Waiting] = []
  /// The stage whose hook has the request, or the stream's head, and has not passed it on. Set before the hook is called.
  private(set) var headHolder: Int?

  /// Begins with nothing at so many stages.
  func begin(withStages count: Int) { self.marks = [UInt8](repeating: 0, count: count) }

  /// What waits at a stage.
  subscript(index: Int) -> Waiting { self.waiting.isEmpty ? Waiting() : self.waiting[index] }

  private func mark(_ mark: UInt8, at index: Int) {
    // Moved out and back, so that each exclusive access to the variable ends at once.
    var marks: [UInt8] = []
    swap(&marks, &self.marks)
    marks[index] |= mark
    self.marks = marks
  }

  private func has(_ mark: UInt8, at index: Int) -> Bool { self.marks[index] & mark != 0 }

  private func change(at index: Int, _ change: (inout Waiting) -> Void) {
    // Moved out and back, so that each exclusive access to the variable ends at once.
    var waiting = self.waiting.isEmpty ? Array(repeating: Waiting(), count: self.marks.count) : self.waiting
    self.waiting = []
    change(&waiting[index])
    self.waiting = waiting
  }

  // MARK: The request

  /// Whether the stage takes another part of the request, where `maximum` parts may wait.
  func hasRoomForRequest(at index: Int, _ maximum: Int) -> Bool {
    guard let requests = self[index].requests else { return true }
    return requests.isEmpty || (self.headHolder != index && requests.count < maximum)
  }

  /// The hook at a stage is called with the request, or the stream's head.
  func holdHead(at index: Int) { self.headHolder = index }

  /// A part passes without a hook.
  ///
  /// - Parameter mayPass: Whether there is room further in, and no earlier part waits.
  func pass(_ part: consuming RequestPart, at index: Int, mayPass: Bool) -> Stage.RequestStep {
    if part.hasHead {
      if self.headHolder == index { self.headHolder = nil }
      self.mark(Mark.passedHead, at: index)
    }
    return mayPass ? .pass(part) : self.keep(part, at: index)
  }

  /// The part goes on once there is room further in.
  private func keep(_ part: RequestPart, at index: Int) -> Stage.RequestStep {
    self.change(at: index) { $0.requests = ($0.requests ?? HookWindow()).appendReady(part) }
    return .stay
  }

  /// The hook has returned and not proceeded.
  func wait(_ part: RequestPart, at index: Int, as number: Int) {
    if part.hasHead { self.headHolder = index }
    self.change(at: index) { $0.requests = ($0.requests ?? HookWindow()).appendWaiting(part, as: number) }
  }

  /// A part goes on in place of `given`, which the hook received. There is room further in, and no earlier part waits.
  @inline(__always)
  func passed(_ part: consuming RequestPart, inPlaceOf given: RequestPart, at index: Int, _ form: Stage.Form)
    -> RequestPart
  {
    if given.hasHead {
      if self.headHolder == index { self.headHolder = nil }
      self.mark(Mark.passedHead, at: index)
    }
    if part.isInPlace(of: given, isUnary: form.isUnary) { return part.boxed(for: form) }
    return part.inPlace(of: given.head, isUnary: form.isUnary)
  }

  /// The hook has proceeded before it returned.
  ///
  /// - Parameter given: What the hook received.
  func didReturn(
    _ action: consuming HookAction,
    given: RequestPart,
    at index: Int,
    _ form: Stage.Form,
    mayPass: Bool
  ) -> Stage.RequestStep {
    let step = self.step(action, given, at: index, form)
    guard !mayPass, case .pass(let part) = step else { return step }
    return self.keep(part, at: index)
  }

  /// The hook has proceeded after it had returned.
  ///
  /// - Returns: Nil if the visit is obsolete.
  func didRequest(_ action: consuming HookAction, _ number: Int, at index: Int, _ form: Stage.Form)
    -> Stage.RequestStep?
  {
    guard let requests = self[index].requests, let given = requests.waiting(number) else { return nil }
    let step = self.step(action, given, at: index, form)
    switch step {
    case .pass(let part): requests.resolve(number, with: part)
    case .stay: requests.resolve(number, with: nil)
    case .answer: return step
    }
    withExtendedLifetime(given) {}
    return .stay
  }

  private func step(_ action: consuming HookAction, _ given: RequestPart, at index: Int, _ form: Stage.Form)
    -> Stage.RequestStep
  {
    if given.hasHead, self.headHolder == index { self.headHolder = nil }
    switch consume action {
    case .send(let part): return .pass(self.passed(part, inPlaceOf: given, at: index, form))
    case .fail(let error): return .failed(error, as: form)
    case .answer(let results): return .answer(results)
    case .drop, .receive, .retry, .restart, .metrics: return .stay
    }
  }

  // MARK: The response

  /// Whether the stage takes another result, where `maximum` results may wait.
  func hasRoomForResult(at index: Int, _ maximum: Int) -> Bool {
    self[index].results.map { $0.count < maximum } ?? true
  }

  /// A result has come.
  ///
  /// - Returns: False if the result is to be ignored, since the stage has had the end.
  func accept(_ result: ResultPart, at index: Int) -> Bool {
    guard !self.has(Mark.closed, at: index) else { return false }
    if result.isEnd { self.mark(Mark.closed, at: index) }
    return true
  }

  /// A result goes on outwards. There is room further out, and no earlier result waits.
  @inline(__always)
  func passed(_ result: consuming ResultPart, at index: Int, _ form: Stage.Form) -> ResultPart {
    // Nothing follows the response of a unary call, which might be too late for a retry.
    if !form.isUnary, !self.hasPassedOut(at: index) { self.mark(Mark.passedOut, at: index) }
    return result.boxed(for: form)
  }

  /// A result goes on outwards, if there is room and no earlier result waits.
  func pass(_ result: consuming ResultPart, at index: Int, mayPass: Bool) -> Stage.ResultStep {
    guard mayPass else {
      self.change(at: index) { $0.results = ($0.results ?? HookWindow()).appendReady(result) }
      return .stay
    }
    if !self.hasPassedOut(at: index) { self.mark(Mark.passedOut, at: index) }
    return .pass(result)
  }

  /// The hook has returned and not proceeded.
  func wait(_ result: ResultPart, at index: Int, as number: Int) {
    self.change(at: index) { $0.results = ($0.results ?? HookWindow()).appendWaiting(result, as: number) }
  }

  /// The hook has proceeded before it returned, from a visit with this number.
  func didReturn(
    _ action: consuming HookAction,
    given: ResultPart,
    _ number: Int,
    at index: Int,
    _ form: Stage.Form,
    mayPass: Bool
  ) -> Stage.ResultStep {
    switch consume action {
    case .receive(let result) where given.isEnd == result.isEnd:
      return self.pass(result.boxed(for: form), at: index, mayPass: mayPass)
    case .drop where given.isMessage:
      return .stay
    case let other:
      self.wait(given, at: index, as: number)
      return self.didResult(other, number, at: index, form) ?? .stay
    }
  }

  /// The hook has proceeded after it had returned.
  ///
  /// - Returns: Nil if the visit is obsolete.
  func didResult(_ action: consuming HookAction, _ number: Int, at index: Int, _ form: Stage.Form)
    -> Stage.ResultStep?
  {
    guard let results = self[index].results, let given = results.waiting(number) else { return nil }
    switch consume action {
    case .receive(let result):
      results.resolve(number, with: result.boxed(for: form))
      if given.isEnd, !result.isEnd {
        results.appendReady(.end(nil, trailers: Headers()))
      } else if !given.isEnd, result.isEnd {
        self.mark(Mark.closed, at: index)
        let removed = results.removeAll(behind: number)
        withExtendedLifetime((given, removed)) {}
        return .end
      }
    case .retry where self.hasPassedOut(at: index), .restart where self.hasPassedOut(at: index):
      self.retryWasRefused(number, at: index)
    case .retry(let part, let delay): return .retry(part, after: delay)
    case .restart(let part, let delay): return .restart(part, after: delay)
    case .drop:
      results.resolve(number, with: given.isMessage ? nil : given)
    case .send, .fail, .answer, .metrics:
      results.resolve(number, with: given)
    }
    withExtendedLifetime(given) {}
    return .stay
  }

  /// Whether a result of this attempt has gone on outwards from the stage.
  func hasPassedOut(at index: Int) -> Bool { self.has(Mark.passedOut, at: index) }

  /// The hook's retry was refused: the result passes on, together with all results that the hook has held back.
  func retryWasRefused(_ number: Int, at index: Int) {
    guard let results = self[index].results, let given = results.waiting(number) else { return }
    results.passAll(before: number)
    results.resolve(number, with: given)
  }

  /// The next result that can go on outwards.
  func takeReadyResult(at index: Int) -> ResultPart? {
    guard let result = self[index].results?.takeReady() else { return nil }
    self.mark(Mark.passedOut, at: index)
    return result
  }

  // MARK: Attempts

  /// A new attempt begins inside of a stage, or there is nothing inside any more.
  ///
  /// - Parameters:
  ///   - stages: The stages that are reset.
  ///   - outer: Interceptors outside of this stage still wait for a result.
  /// - Returns: What waited.
  func reset(_ stages: Range<Int>, keepingHeadsOutsideOf outer: Int) -> [Waiting] {
    if let holder = self.headHolder, stages.contains(holder) { self.headHolder = nil }
    var marks: [UInt8] = []
    swap(&marks, &self.marks)
    for index in stages { marks[index] &= index < outer ? Mark.passedHead : 0 }
    self.marks = marks
    guard !self.waiting.isEmpty else { return [] }
    var kept: [Waiting] = []
    for index in stages where !self[index].isEmpty { kept.append(self[index]) }
    for index in stages { self.change(at: index) { $0 = Waiting() } }
    return kept
  }

  /// The call is over.
  ///
  /// - Parameter closing: Whether stages take no further results.
  /// - Returns: Which interceptors, from the outermost on, still wait for a result.
  func finishStages(closing: Bool = true) -> [Bool] {
    let waiting = self.marks.map { $0 & (Mark.passedHead | Mark.closed) == Mark.passedHead }
    if closing { self.marks = self.marks.map { $0 | Mark.closed } }
    return waiting
  }
}

// Hooks whose messages are bytes proceed with bytes. At message hooks, these are messages of a method whose type is
// bytes.

extension RequestPart {
  @inline(__always)
  fileprivate consuming func boxed(for form: Stage.Form) -> RequestPart {
    guard form == .stream else { return self }
    switch consume self {
    case .bytes(let bytes): return .message(MessageBox(bytes))
    case let other: return other
    }
  }
}

extension ResultPart {
  @inline(__always)
  fileprivate consuming func boxed(for form: Stage.Form) -> ResultPart {
    guard form == .stream else { return self }
    switch consume self {
    case .bytes(let bytes): return .message(MessageBox(bytes))
    case let other: return other
    }
  }
}
