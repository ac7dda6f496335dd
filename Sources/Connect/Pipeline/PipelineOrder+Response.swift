// What becomes of results at a stage.
extension PipelineOrder {
  func isResultStraight(at index: Int) -> Bool { !self.stages[index].keepsResults }

  /// A result has come to a stage.
  ///
  /// - Returns: False if it is of no interest any more.
  func accept(_ result: borrowing ResultPart, at index: Int) -> Bool {
    guard !self.stages[index].isClosed else { return false }
    if result.isEnd { self.stages[index].isClosed = true }
    return true
  }

  /// A result goes on outwards, if there is room and nothing waits in front.
  func pass(_ result: ResultPart, at index: Int, mayPass: Bool) -> ResultStep {
    guard mayPass else {
      self.mayKeep = true
      self.stages[index].keepsResults = true
      self.stages[index].results.appendReady(result, as: 0)
      return .stay
    }
    self.stages[index].hasPassedOut = true
    return .pass(result)
  }

  /// The hook has returned and not proceeded.
  func wait(_ result: ResultPart, at index: Int, as number: Int) {
    self.mayKeep = true
    self.stages[index].keepsResults = true
    self.stages[index].results.appendWaiting(result, as: number)
  }

  /// The hook has proceeded before it returned.
  func didReturn(_ action: HookAction, at index: Int, given: ResultPart, mayPass: Bool) -> ResultStep {
    switch action {
    case .receive(let result) where given.isEnd == result.isEnd:
      return self.pass(result, at: index, mayPass: mayPass)
    case .drop where given.isMessage:
      return .stay
    default:
      let number = self.takeNumber()
      self.wait(given, at: index, as: number)
      return self.didResult(action, at: index, number) ?? .stay
    }
  }

  /// The hook has proceeded later.
  ///
  /// - Returns: Nil if the visit does not count any more.
  func didResult(_ action: HookAction, at index: Int, _ number: Int) -> ResultStep? {
    guard let given = self.stages[index].results.waiting(number) else { return nil }
    switch action {
    case .receive(let result):
      self.stages[index].results.resolve(number, with: result)
      if given.isEnd, !result.isEnd {
        self.stages[index].results.appendReady(.end(nil, trailers: Headers()), as: self.takeNumber())
      } else if !given.isEnd, result.isEnd {
        self.stages[index].isClosed = true
        let removed = self.stages[index].results.removeAll(behind: number)
        withExtendedLifetime((given, removed)) {}
        return .end
      }
    case .retry(let part, let delay):
      guard !self.stages[index].hasPassedOut else {
        self.retryWasRefused(number, at: index)
        return .stay
      }
      return .retry(part, after: delay)
    case .drop:
      self.stages[index].results.resolve(number, with: given.isMessage ? nil : given)
    case .send, .fail, .answer, .metrics:
      self.stages[index].results.resolve(number, with: given)
    }
    withExtendedLifetime(given) {}
    return .stay
  }

  /// There is no new attempt for the hook that has asked for one: the result passes on, and so does all that the hook has
  /// kept back.
  func retryWasRefused(_ number: Int, at index: Int) {
    guard let given = self.stages[index].results.waiting(number) else { return }
    self.stages[index].results.passAll(before: number)
    self.stages[index].results.resolve(number, with: given)
  }

  /// The next result that can go on from a stage.
  func takeReadyResult(at index: Int) -> ResultPart? {
    let stage = self.stages[index]
    guard stage.keepsResults else { return nil }
    defer { stage.keepsResults = !stage.results.isEmpty }
    guard let result = stage.results.takeReady() else { return nil }
    stage.hasPassedOut = true
    return result
  }
}
