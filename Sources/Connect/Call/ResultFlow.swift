/// Moves results outwards, through hooks and the codec, as far as they are wanted.
struct ResultFlow {
  let pipeline: Pipeline
  let call: Call

  private var order: PipelineOrder { self.pipeline }
  private var stages: [Stage] { self.pipeline.stages }
  private var outside: any CallSide { self.call.side }
  private var inside: Attempts { self.call.attempts }

  // MARK: Demand

  private func hasRoom(at index: Int) -> Bool {
    // For the one response of a unary call there is always room, unless an async interceptor has not asked for it.
    if self.order.isUnary, !self.pipeline.hasAsyncStages { return true }
    guard index >= 0 else { return self.outside.demand > 0 }
    if index == self.order.codec { return self.hasRoom(at: index - 1) }
    return self.stages[index].hasRoomForResult(at: index, in: self.order)
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
  private static func awaitsResult(_ stage: Stage) -> Bool? {
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
    self.stages[index].wantsResult(at: index, in: self.order, isWantedOutside)
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
        guard let decoded = self.decode(consume result) else { return }
        result = consume decoded
      case .async(let stage):
        stage.take(result)
        HoldWatch.hookWaits(in: self.call)
        return
      case .hooks(let functions, let kinds, let form):
        if kinds.contains(.result) {
          guard let passed = self.visit(functions, form, at: index, with: result) else { return }
          result = passed
        } else {
          guard let passed = self.pass(consume result, functions, kinds, form, at: index) else { return }
          result = passed
        }
      }
      index -= 1
    }
    if !self.call.isOver { self.deliver(result) }
  }

  private func deliver(_ result: consuming ResultPart) {
    if result.isEnd {
      self.call.finish(with: result)
    } else {
      if let messages = self.order.messages, messages.isForRestart { messages.resultIsShown() }
      self.outside.deliver(result)
    }
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
      guard let result = self.stages[index].takeReadyResult(at: index, in: self.order) else { continue }
      hasMoved = true
      self.order.active.demandMayHaveChanged(at: index)
      self.receive(result, at: index - 1)
      guard !self.call.isOver, !self.pipeline.hasEvents else { return true }
    }
    self.order.settle()
    return hasMoved
  }

  // MARK: Hooks

  /// - Returns: What goes on outwards; nil if nothing does for now.
  private func visit(
    _ functions: HookFunctions,
    _ form: Stage.Form,
    at index: Int,
    with result: ResultPart
  ) -> ResultPart? {
    guard self.order.accept(result, at: index) else { return nil }
    let mayPass = self.mayPass(at: index)
    var visit = self.pipeline.makeVisit(at: .result(index), self.call)
    if let inheritance = self.call.plan.inheritance {
      self.call(functions, form, with: result, visit, inheritance)
    } else {
      functions.call(form, with: result, visit)
    }
    guard mayPass, visit.hookReturned(), !self.call.isOver,
      let received = visit.takeReceived(ifEnd: result.isEnd)
    else {
      return self.didReturn(&visit, given: result, form, at: index, mayPass: mayPass)
    }
    self.pipeline.keep(&visit)
    return self.order.passed(received, at: index, form)
  }

  // Not inlined, here and below: what is rare makes what is frequent slower.
  @inline(never)
  private func call(
    _ functions: HookFunctions,
    _ form: Stage.Form,
    with result: ResultPart,
    _ visit: Visit,
    _ inheritance: Inheritance
  ) {
    inheritance.bind(nil, of: functions.interceptor) { functions.call(form, with: result, visit) }
  }

  /// The hook has returned, and has perhaps not passed a result on.
  @inline(never)
  private func didReturn(
    _ visit: inout Visit,
    given result: ResultPart,
    _ form: Stage.Form,
    at index: Int,
    mayPass: Bool
  ) -> ResultPart? {
    let (number, hasProceeded) = (visit.number, visit.hookReturned())
    guard !self.call.isOver else { return nil }
    guard hasProceeded else {
      visit.isArmed = true
      self.order.active.mayKeep(at: index)
      self.order.wait(result, at: index, as: number)
      HoldWatch.hookWaits(in: self.call)
      return nil
    }
    let action = visit.takeAction()
    self.pipeline.keep(&visit)
    let step = self.order.didReturn(action, given: result, number, at: index, form, mayPass: mayPass)
    return self.follow(step, at: index, number)
  }

  /// Whether a result can go on at once: there is room further out, and no earlier result waits.
  @inline(__always)
  private func mayPass(at index: Int) -> Bool {
    self.order.isUnary || HookWindow.isClear(self.order[index].results) && self.hasRoom(at: index - 1)
  }

  /// Lets a synchronous hook change the result, if there is one.
  @inline(never)
  private func pass(
    _ result: consuming ResultPart,
    _ functions: HookFunctions,
    _ kinds: HookKinds,
    _ form: Stage.Form,
    at index: Int
  ) -> ResultPart? {
    guard self.order.accept(result, at: index) else { return nil }
    let mayPass = self.mayPass(at: index)
    if kinds.contains(.resultUpdate) {
      let given = copy result
      let decision = self.call.plan.inheritance.bind(nil, of: functions.interceptor) {
        functions.update(form, &result)
      }
      guard !self.call.isOver else { return nil }
      let action: HookAction? =
        switch decision {
        case .proceed: nil
        case .retry(let delay): .retry(nil, after: delay)
        case .restart(let delay): .restart(nil, after: delay)
        }
      if let action {
        // There is no visit; no visit has the number 0.
        let step = self.order.didReturn(action, given: given, 0, at: index, form, mayPass: mayPass)
        return self.follow(step, at: index, 0)
      }
    }
    return self.follow(self.order.pass(result, at: index, mayPass: mayPass), at: index, 0)
  }

  /// A hook has proceeded after it had returned.
  ///
  /// - Returns: False if the visit is obsolete.
  func hookDid(_ action: HookAction, at index: Int, _ number: Int) -> Bool {
    guard index < self.stages.count, case .hooks(_, _, let form) = self.stages[index],
      let step = self.order.didResult(action, number, at: index, form)
    else { return false }
    _ = self.follow(step, at: index, number)
    return true
  }

  /// - Returns: What goes on outwards; nil if nothing does for now.
  @inline(__always)
  private func follow(_ step: consuming Stage.ResultStep, at index: Int, _ number: Int) -> ResultPart? {
    switch consume step {
    case .pass(let result): return result
    case let other: self.keep(other, at: index, number)
    }
    return nil
  }

  /// The result does not go on.
  private func keep(_ step: consuming Stage.ResultStep, at index: Int, _ number: Int) {
    self.order.active.mayKeep(at: index)
    switch consume step {
    case .pass, .stay: break
    case .end: self.pipeline.close(insideOf: index, cuttingAt: index, self.call)
    case .retry(let request, let delay):
      self.retry(at: index, number) { self.pipeline.retry(at: index, request, after: delay, self.call) }
    case .restart(let request, let delay):
      self.retry(at: index, number) { self.pipeline.restart(from: index, request, after: delay, self.call) }
    }
  }

  /// - Parameter begin: Starts the new attempt, unless there is to be none.
  private func retry(at index: Int, _ number: Int, _ begin: () -> Bool) {
    if let given = self.order[index].results?.waiting(number), given.isEnd {
      self.pipeline.retryCause = given.error
    }
    if !begin() { self.order.retryWasRefused(number, at: index) }
  }

  // MARK: The codec

  /// - Returns: Nil if the result cannot be decoded, which has failed the call.
  private func decode(_ result: consuming ResultPart) -> ResultPart? {
    do throws(ConnectError) {
      let decoded = try self.call.plan.decode(result, self.inside.responseHead)
      // A codec may be user code, which may end the call.
      return self.call.isOver ? nil : decoded
    } catch {
      self.pipeline.fail(with: error, self.call)
      return nil
    }
  }
}
