internal import DequeModule

/// The one executor of hooks: moves the parts of a call's request and response through its interceptors.
///
/// ``PipelineOrder`` decides; this calls hooks, the codec, and the call around it, its ``PipelineHost``. Nothing that a hook
/// does is acted on before the hook has returned. Parts move only where there is room, so whoever is slow, a hook, the wire or
/// the caller, holds back the source.
///
/// The call owns it; it is confined to the call's executor. It does not keep the call: who lets it continue brings the call
/// along, so that a call which nobody can continue goes away.
package final class Pipeline {
  private enum Event {
    case hook(HookAction, Visit)
    case work((Pipeline) -> Void)
  }

  let order: PipelineOrder
  var hasAsyncStages = false
  let maximumReplayBytes: Int
  /// Whether the request has passed the call hooks. Nothing moves before.
  private(set) var hasStarted = false
  private(set) var isMoving = false
  var mustMoveAgain = false
  /// What has happened while a hook was on the stack.
  private var events: Deque<Event> = []
  private(set) var hasEvents = false
  /// A visit that nobody uses any more, for the next hook.
  var spareVisit: Visit?
  /// How many of the byte hooks, the last ones, stand inside of all that are placed as listed.
  var innerCount = 0

  /// A pipeline without stages.
  ///
  /// - Parameters:
  ///   - maximumWaiting: How many parts wait at one stage, at most.
  ///   - maximumReplayBytes: How many bytes of a stream's request are kept for another attempt.
  package init(isUnary: Bool, maximumWaiting: Int, maximumReplayBytes: Int) {
    self.order = PipelineOrder(isUnary: isUnary, maximumWaiting: maximumWaiting)
    self.maximumReplayBytes = maximumReplayBytes
  }

  var stages: [PipelineOrder.Stage] { self.order.stages }

  var hasByteStages: Bool { self.order.codec + 1 < self.stages.count }

  // MARK: Movement

  /// Sends the request, or a stream's head, down.
  package func start(_ part: RequestPart, _ host: any PipelineHost) {
    self.hasStarted = true
    self.isMoving = true
    self.begin(atMessages: true, part)
    self.send(part, at: 0, host)
    self.isMoving = false
    self.move(host)
  }

  /// Moves everything that can move: results up, as far as they are wanted, and the request down, as far as there is room.
  package func move(_ host: any PipelineHost) {
    guard !self.isMoving else {
      self.mustMoveAgain = true
      return
    }
    guard self.hasStarted else { return }
    self.isMoving = true
    defer { self.isMoving = false }
    repeat {
      self.mustMoveAgain = false
      if self.hasEvents { self.handleEvents(host) }
      // What a hook has done, to an earlier part perhaps, comes before the next part.
      while !host.isOver, !self.hasEvents, self.moveUp(host) { self.mustMoveAgain = true }
      if !host.isOver, !self.hasEvents, self.moveDown(host) { self.mustMoveAgain = true }
    } while (self.mustMoveAgain || self.hasEvents) && !host.isOver
  }

  /// Takes the outcome of a hook that had returned before.
  package func hookDid(_ action: HookAction, _ visit: Visit, _ host: any PipelineHost) {
    self.events.append(.hook(action, visit))
    self.hasEvents = true
    self.move(host)
  }

  /// Does something for an async stage.
  package func perform(_ work: @escaping (Pipeline) -> Void, _ host: any PipelineHost) {
    self.events.append(.work(work))
    self.hasEvents = true
    self.move(host)
  }

  private func handleEvents(_ host: any PipelineHost) {
    while let event = self.events.popFirst() { self.handle(event, host) }
    self.hasEvents = false
  }

  private func handle(_ event: Event, _ host: any PipelineHost) {
    switch event {
    case .work(let work):
      if !host.isOver { work(self) }
    case .hook(let action, let visit):
      guard !host.isOver else { return }
      switch visit.place {
      case .request(let index):
        guard let step = self.order.didRequest(action, at: index, visit.number) else {
          host.logIgnored("request hook \(index)")
          return
        }
        if case .answer(let results) = step { self.answer(at: index, with: results, host) }
      case .result(let index):
        if case .retry = action { self.noteRetryCause(at: index, visit.number, host) }
        guard let step = self.order.didResult(action, at: index, visit.number) else {
          host.logIgnored("response hook \(index)")
          return
        }
        _ = self.follow(step, at: index, visit.number, host)
      case .metrics:
        break
      }
    }
  }

  // MARK: Down

  func hasRoom(at index: Int, _ host: any PipelineHost) -> Bool {
    // A unary call has one part, for which there is always room.
    if self.order.isUnary || self.order.isCut(at: index) { return true }
    guard index < self.stages.count else { return host.attemptHasRoom }
    switch self.stages[index].form {
    case .hooks: return self.order.hasRoomForRequest(at: index)
    case .async(let stage): return stage.hasRoom
    case .codec: return self.order.bytes?.isBusy != true && self.hasRoom(at: index + 1, host)
    }
  }

  /// Moves a part of the request inwards from a stage on, as far as it gets.
  private func send(_ part: consuming RequestPart, at first: Int, _ host: any PipelineHost) {
    if self.stages.isEmpty {
      guard !self.order.isCut(at: 0), let encoded = self.encode(part, host), !host.isOver else { return }
      host.transmit(encoded)
      return
    }
    var index = first
    while index < self.stages.count {
      if self.order.isCut(at: index) { return }
      switch self.stages[index].form {
      case .codec:
        guard let encoded = self.encode(part, host) else { return }
        part = encoded
      case .async(let stage):
        stage.accept(part, of: host, in: self)
        return
      case .hooks(let hooks):
        let mayPass = self.order.isRequestStraight(at: index) && self.hasRoom(at: index + 1, host)
        let kinds = hooks.kinds
        var failure: ConnectError?
        if kinds.contains(.headUpdate) {
          self.order.willVisit(part.head, at: index)
          failure = host.inheritance.bind(part.head?.context, of: self.stages[index].interceptor) {
            hooks.update(&part)
          }
          guard !host.isOver else { return }
        }
        let step =
          if let failure { self.order.fail(with: failure, at: index) } else if kinds.contains(hookFor: part) {
            self.call(hooks, at: index, with: part, mayPass: mayPass, host)
          } else {
            self.order.pass(part, at: index, mayPass: mayPass)
          }
        switch step {
        case .pass(let passed): part = passed
        case .stay: return
        case .answer(let results):
          self.answer(at: index, with: results, host)
          return
        }
      }
      index += 1
    }
    guard !self.order.isCut(at: index), !host.isOver else { return }
    host.transmit(part)
  }

  /// Moves parts of the request that wait, those furthest along first, and then new ones.
  private func moveDown(_ host: any PipelineHost) -> Bool {
    // Nothing follows the one part of a unary call.
    if self.order.isUnary, self.stages.isEmpty { return false }
    var hasMoved = false
    if self.order.mayKeep || self.hasAsyncStages {
      for index in self.stages.indices.reversed() {
        guard self.hasRoom(at: index + 1, host), let part = self.takeReady(at: index) else { continue }
        hasMoved = true
        self.send(part, at: index + 1, host)
        guard !host.isOver, !self.hasEvents else { return true }
      }
    }
    while !host.isOver, !self.hasEvents, self.order.bytes?.isBusy == true,
      self.hasRoom(at: self.order.codec + 1, host),
      let part = self.order.takeReplay(atMessages: false)
    {
      hasMoved = true
      self.send(part, at: self.order.codec + 1, host)
    }
    while !host.isOver, !self.hasEvents, self.order.messages?.isBusy == true, self.hasRoom(at: 0, host),
      let part = self.order.takeReplay(atMessages: true)
    {
      hasMoved = true
      self.send(part, at: 0, host)
    }
    while !host.isOver, !self.hasEvents, self.order.messages?.isBusy != true, self.hasRoom(at: 0, host),
      let part = host.takeOutgoing()
    {
      hasMoved = true
      self.order.note(part, atMessages: true)
      self.send(part, at: 0, host)
      host.outgoingWasTaken()
    }
    return hasMoved
  }

  private func takeReady(at index: Int) -> RequestPart? {
    switch self.stages[index].form {
    case .hooks: self.order.takeReadyRequest(at: index)
    case .async(let stage): stage.takeReady()
    case .codec: nil
    }
  }

  // MARK: Up

  private func hasRoomForResult(at index: Int, _ host: any PipelineHost) -> Bool {
    guard index >= 0 else { return host.demand > 0 }
    switch self.stages[index].form {
    case .hooks: return self.order.hasRoomForResult(at: index)
    case .async(let stage): return stage.wantsResult(false)
    case .codec: return self.hasRoomForResult(at: index - 1, host)
    }
  }

  /// Whether a result should be brought to a stage.
  private func wantsResult(at last: Int, _ host: any PipelineHost) -> Bool {
    var isWanted = host.demand > 0
    guard self.order.mayKeep || self.hasAsyncStages, last >= 0 else { return isWanted }
    for index in 0...last { isWanted = self.wantsResult(at: index, isWanted) }
    return isWanted
  }

  private func wantsResult(at index: Int, _ isWantedOutside: Bool) -> Bool {
    switch self.stages[index].form {
    case .hooks: isWantedOutside && self.order.hasRoomForResult(at: index)
    case .async(let stage): stage.wantsResult(isWantedOutside)
    case .codec: isWantedOutside
    }
  }

  /// Moves a result outwards from a stage on, as far as it gets.
  private func receive(_ result: consuming ResultPart, at last: Int, _ host: any PipelineHost) {
    if self.stages.isEmpty {
      if let decoded = self.decode(result, host), !host.isOver { host.deliver(decoded) }
      return
    }
    var index = last
    while index >= 0 {
      switch self.stages[index].form {
      case .codec:
        guard let decoded = self.decode(result, host) else { return }
        result = decoded
      case .async(let stage):
        stage.accept(result)
        host.hookWaits()
        return
      case .hooks(let hooks):
        guard self.order.accept(result, at: index) else { return }
        let mayPass = self.order.isResultStraight(at: index) && self.hasRoomForResult(at: index - 1, host)
        let kinds = hooks.kinds
        let passed =
          if kinds.contains(.resultUpdate) {
            self.update(hooks, at: index, result, mayPass: mayPass, host)
          } else if kinds.contains(.result) {
            self.call(hooks, at: index, with: result, mayPass: mayPass, host)
          } else {
            self.follow(self.order.pass(result, at: index, mayPass: mayPass), at: index, 0, host)
          }
        guard let passed else { return }
        result = passed
      }
      index -= 1
    }
    if !host.isOver { host.deliver(result) }
  }

  private func noteRetryCause(at index: Int, _ number: Int, _ host: any PipelineHost) {
    if let given = self.order.stages[index].results.waiting(number), given.isEnd {
      host.retryCause = given.error
    }
  }

  /// Moves results that wait, those furthest along first, or brings the next one.
  ///
  /// - Returns: Whether anything moved.
  private func moveUp(_ host: any PipelineHost) -> Bool {
    var hasMoved = false
    if self.order.mayKeep || self.hasAsyncStages {
      var isWanted = host.demand > 0
      for index in self.stages.indices {
        let wants = self.wantsResult(at: index, isWanted)
        if self.hasRoomForResult(at: index - 1, host), let result = self.takeReadyResult(at: index) {
          hasMoved = true
          self.receive(result, at: index - 1, host)
          guard !host.isOver, !self.hasEvents else { return true }
        }
        isWanted = wants
      }
      self.order.settle()
    }
    if hasMoved { return true }
    if let entry = self.order.answerEntry {
      guard self.wantsResult(at: entry, host), let result = self.order.takeAnswer() else { return false }
      self.receive(result, at: entry, host)
      return true
    }
    guard self.order.cut == nil, !self.order.isWaitingToRetry,
      self.wantsResult(at: self.stages.count - 1, host), let result = host.takeArrived(), !host.isOver
    else { return false }
    if case .whole = result {
      self.receive(result, at: self.order.codec - 1, host)
    } else {
      self.receive(result, at: self.stages.count - 1, host)
    }
    return true
  }

  private func takeReadyResult(at index: Int) -> ResultPart? {
    switch self.stages[index].form {
    case .hooks: self.order.takeReadyResult(at: index)
    case .async(let stage): stage.takeReadyResult()
    case .codec: nil
    }
  }

  // MARK: End

  /// Gives up all that goes on here, and lets go of the interceptors, which may hold on to a `proceed` and thereby to the call.
  package func release() {
    self.resetAsyncStages(from: 0)
    let (old, events, visit) = (self.order.release(), self.events, self.spareVisit)
    self.hasAsyncStages = false
    if self.hasEvents { self.events = [] }
    self.spareVisit = nil
    withExtendedLifetime((old, events, visit)) {}
  }
}
