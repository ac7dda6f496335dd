// Calls hooks, and does what the order makes of it.
extension Pipeline {
  func call(
    _ hooks: any StageHooks,
    at index: Int,
    with part: RequestPart,
    mayPass: Bool,
    _ host: any PipelineHost
  ) -> PipelineOrder.RequestStep {
    var visit = self.makeVisit(at: .request(index), host)
    let number = visit.number
    let head = part.head
    self.order.willVisit(head, at: index)
    host.inheritance.bind(head?.context, of: self.stages[index].interceptor) { hooks.call(with: part, visit) }
    guard !host.isOver else { return .stay }
    guard let action = visit.hookReturned(waits: true) else {
      self.order.wait(part, at: index, as: number)
      host.hookWaits()
      return .stay
    }
    self.keep(&visit)
    return self.order.didReturn(action, at: index, given: head, mayPass: mayPass)
  }

  func call(
    _ hooks: any StageHooks,
    at index: Int,
    with result: ResultPart,
    mayPass: Bool,
    _ host: any PipelineHost
  ) -> ResultPart? {
    var visit = self.makeVisit(at: .result(index), host)
    let number = visit.number
    host.inheritance.bind(nil, of: self.stages[index].interceptor) { hooks.call(with: result, visit) }
    guard !host.isOver else { return nil }
    guard let action = visit.hookReturned(waits: true) else {
      self.order.wait(result, at: index, as: number)
      host.hookWaits()
      return nil
    }
    self.keep(&visit)
    guard case .retry(let part, let delay) = action else {
      let step = self.order.didReturn(action, at: index, given: result, mayPass: mayPass)
      return self.follow(step, at: index, number, host)
    }
    self.askForRetry(part, after: delay, given: result, at: index, number, host)
    return nil
  }

  /// Lets a synchronous hook see and change a response.
  func update(
    _ hooks: any StageHooks,
    at index: Int,
    _ given: ResultPart,
    mayPass: Bool,
    _ host: any PipelineHost
  ) -> ResultPart? {
    var result = given
    let decision = host.inheritance.bind(nil, of: self.stages[index].interceptor) { hooks.update(&result) }
    guard !host.isOver else { return nil }
    if case .retry(let delay) = decision {
      self.askForRetry(nil, after: delay, given: given, at: index, self.order.takeNumber(), host)
      return nil
    }
    return self.follow(self.order.pass(result, at: index, mayPass: mayPass), at: index, 0, host)
  }

  private func askForRetry(
    _ request: RequestPart?,
    after delay: Duration,
    given: ResultPart,
    at index: Int,
    _ number: Int,
    _ host: any PipelineHost
  ) {
    self.order.wait(given, at: index, as: number)
    if given.isEnd { host.retryCause = given.error }
    if let step = self.order.didResult(.retry(request, after: delay), at: index, number) {
      _ = self.follow(step, at: index, number, host)
    }
  }

  /// - Returns: What goes on outwards.
  func follow(
    _ step: PipelineOrder.ResultStep,
    at index: Int,
    _ number: Int,
    _ host: any PipelineHost
  ) -> ResultPart? {
    switch step {
    case .pass(let result): return result
    case .stay: return nil
    case .end: self.close(insideOf: index, cuttingAt: index, host)
    case .retry(let request, let delay):
      if !self.retry(at: index, request, after: delay, host) { self.order.retryWasRefused(number, at: index) }
    }
    return nil
  }
}
