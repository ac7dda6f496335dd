/// Moves results outwards, through hooks and the codec, as far as they are wanted.
struct ResultFlow {
  let pipeline: Pipeline
  let call: Call

  private var order: PipelineOrder { self.pipeline.order }
  private var stages: [Stage.Role] { self.pipeline.order.stages }
  private var outside: any CallSide { self.call.side }
  private var inside: Attempts { self.call.attempts }

  // MARK: Demand

  private func hasRoom(at index: Int) -> Bool {
    // For the one response of a unary call there is always room, unless an async interceptor has not asked for it.
    if self.order.isUnary, !self.pipeline.hasAsyncStages { return true }
    guard index >= 0 else { return self.outside.demand > 0 }
    if index == self.order.codec { return self.hasRoom(at: index - 1) }
    return self.stages[index].stage.hasRoomForResult(self.order.maximumWaiting)
  }

  /// Whether the stage should receive a result.
  private func isWanted(at last: Int) -> Bool {
    guard self.order.mayKeep || self.pipeline.hasAsyncStages, last >= 0 else {
      return self.outside.demand > 0
    }
    // What an async stage wants does not depend on what is wanted outside of it.
    let stages = self.stages
    var first = last
    while first >= 0, Self.awaitsResult(stages[first]) == nil { first -= 1 }
    var isWanted = first < 0 ? self.outside.demand > 0 : Self.awaitsResult(stages[first]) == true
    for index in first..<last { isWanted = self.isWanted(at: index + 1, isWanted) }
    return isWanted
  }

  /// Whether an async stage should receive a result; nil for other stages.
  private static func awaitsResult(_ stage: Stage.Role) -> Bool? {
    if case .async(let stage) = stage { stage.awaitsResult } else { nil }
  }

  /// Tells async stages of a stream that results are wanted of them, where that may have changed.
  private func spreadDemand() {
    let told = self.spread(self.outside.demand > 0, from: 0, through: 0)
    let changed = self.order.active.takeChangedDemand()
    guard changed.upperBound >= told, !changed.isEmpty else { return }
    let first = max(changed.lowerBound, told)
    _ = self.spread(self.isWanted(at: first - 1), from: first, through: changed.upperBound)
  }

  /// Tells the stages from `first` through `last`, and those further in up to the next async stage.
  ///
  /// - Parameter isWanted: Whether a result is wanted outside of the first stage.
  /// - Returns: The index behind the last stage that was told.
  private func spread(_ isWanted: Bool, from first: Int, through last: Int) -> Int {
    let stages = self.stages
    var isWanted = isWanted
    var index = first
    while index < stages.count {
      isWanted = self.isWanted(at: index, isWanted)
      index += 1
      if index > last, Self.awaitsResult(stages[index - 1]) != nil { break }
    }
    return index
  }

  private func isWanted(at index: Int, _ isWantedOutside: Bool) -> Bool {
    if index == self.order.codec { return isWantedOutside }
    return self.stages[index].stage.wantsResult(isWantedOutside, self.order.maximumWaiting)
  }

  // MARK: Movement

  /// Moves a result outwards from a stage on, as far as it gets.
  private func receive(_ result: consuming ResultPart, at last: Int) {
    let stages = self.stages
    if stages.isEmpty {
      if let decoded = self.decode(result), !self.call.isOver { self.deliver(decoded) }
      return
    }
    var index = last
    while index >= 0 {
      switch stages[index] {
      case .codec:
        guard let decoded = self.decode(result) else { return }
        result = decoded
      case .async(let stage):
        stage.take(result)
        HoldWatch.hookWaits(in: self.call)
        return
      case .hooks(let stage):
        guard let passed = self.visit(stage, at: index, with: result) else { return }
        result = passed
      }
      index -= 1
    }
    if !self.call.isOver { self.deliver(result) }
  }

  private func deliver(_ result: consuming ResultPart) {
    if result.isEnd { self.call.finish(with: result) } else { self.outside.deliver(result) }
  }

  /// Moves waiting results, the outermost first, or takes the next one.
  ///
  /// - Returns: Whether anything moved.
  func moveNext() -> Bool {
    if self.pipeline.hasAsyncStages, !self.order.isUnary { self.spreadDemand() }
    if self.order.mayKeep {
      let hasMoved = self.moveReady()
      if hasMoved { return true }
    }
    if let entry = self.order.answerEntry {
      guard self.isWanted(at: entry), let result = self.order.takeAnswer() else { return false }
      self.receive(result, at: entry)
      return true
    }
    guard self.order.cut == nil, !self.order.isWaitingToRetry, self.isWanted(at: self.stages.count - 1),
      let result = self.inside.takeArrived(self.call, forByteHooks: self.pipeline.hasByteStages),
      !self.call.isOver
    else { return false }
    // The call may have decoded it already.
    if case .whole = result {
      self.receive(result, at: self.order.codec - 1)
    } else {
      self.receive(result, at: self.stages.count - 1)
    }
    return true
  }

  private func moveReady() -> Bool {
    var hasMoved = false
    for index in self.order.active.keepers where self.hasRoom(at: index - 1) {
      guard let result = self.stages[index].stage.takeReadyResult() else { continue }
      hasMoved = true
      self.order.active.demandMayHaveChanged(at: index)
      self.receive(result, at: index - 1)
      guard !self.call.isOver, !self.pipeline.hasEvents else { return true }
    }
    self.order.settle()
    return hasMoved
  }

  // MARK: Hooks

  private func visit(_ stage: HookStage, at index: Int, with result: ResultPart) -> ResultPart? {
    guard stage.accept(result) else { return nil }
    let mayPass = HookWindow.isClear(stage.results) && self.hasRoom(at: index - 1)
    if stage.kinds.contains(.resultUpdate) { return self.update(stage, at: index, result, mayPass: mayPass) }
    guard stage.kinds.contains(.result) else {
      return self.follow(stage.pass(result, mayPass: mayPass), of: stage, at: index, 0)
    }
    var visit = self.pipeline.makeVisit(at: .result(index), self.call)
    self.call.plan.inheritance.bind(nil, of: stage.interceptor) {
      stage.call(with: result, visit)
    }
    guard !self.call.isOver else { return nil }
    guard let action = visit.hookReturned(waits: true) else {
      self.order.active.mayKeep(at: index)
      stage.wait(result, as: visit.number)
      HoldWatch.hookWaits(in: self.call)
      return nil
    }
    let number = visit.number
    self.pipeline.keep(&visit)
    return self.follow(
      stage.didReturn(action, given: result, number, mayPass: mayPass),
      of: stage,
      at: index,
      number
    )
  }

  /// Lets a synchronous hook see and change a response.
  private func update(_ stage: HookStage, at index: Int, _ given: ResultPart, mayPass: Bool) -> ResultPart? {
    let (result, decision) = self.call.plan.inheritance.bind(nil, of: stage.interceptor) {
      stage.updated(given)
    }
    guard !self.call.isOver else { return nil }
    guard case .retry(let delay) = decision else {
      return self.follow(stage.pass(consume result, mayPass: mayPass), of: stage, at: index, 0)
    }
    // There is no visit; no visit has the number 0.
    let step = stage.didReturn(.retry(nil, after: delay), given: given, 0, mayPass: mayPass)
    return self.follow(step, of: stage, at: index, 0)
  }

  /// A hook has proceeded after it had returned.
  ///
  /// - Returns: False if the visit is obsolete.
  func hookDid(_ action: HookAction, at index: Int, _ number: Int) -> Bool {
    guard index < self.stages.count else { return false }
    let stage = self.stages[index].stage
    guard let step = stage.didResult(action, number) else { return false }
    _ = self.follow(step, of: stage, at: index, number)
    return true
  }

  /// - Returns: What goes on outwards.
  private func follow(_ step: consuming Stage.ResultStep, of stage: Stage, at index: Int, _ number: Int)
    -> ResultPart?
  {
    if case .pass(let result) = step { return result }
    self.order.active.mayKeep(at: index)
    switch consume step {
    case .pass, .stay: break
    case .end: self.pipeline.close(insideOf: index, cuttingAt: index, self.call)
    case .retry(let request, let delay):
      if let given = stage.results?.waiting(number), given.isEnd { self.pipeline.retryCause = given.error }
      if !self.pipeline.retry(at: index, request, after: delay, self.call) { stage.retryWasRefused(number) }
    }
    return nil
  }

  // MARK: The codec

  /// - Returns: Nil if the result cannot be decoded, which has failed the call.
  private func decode(_ result: consuming ResultPart) -> ResultPart? {
    do throws(ConnectError) {
      let decoded = try self.call.plan.decode(result, self.inside.httpStatus)
      // A codec may be user code, which may end the call.
      return self.call.isOver ? nil : decoded
    } catch {
      self.pipeline.fail(with: error, self.call)
      return nil
    }
  }
}
