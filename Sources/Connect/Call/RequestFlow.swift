internal import NIOCore

/// Moves the parts of a request inwards, through hooks and the codec, as far as there is room.
struct RequestFlow {
  let pipeline: Pipeline
  let call: Call

  private var order: PipelineOrder { self.pipeline.order }
  private var stages: [Stage.Role] { self.pipeline.order.stages }
  private var outside: any CallSide { self.call.side }
  private var inside: Attempts { self.call.attempts }

  // MARK: Room

  /// Whether the first stage takes a message at once.
  var acceptsMessage: Bool {
    self.pipeline.hasStarted && !self.pipeline.isMoving && !self.isObsolete
      && self.order.messages?.isBusy != true && self.hasRoom(at: 0)
  }

  /// Whether sending more is useless: the response has ended, and no retry is possible.
  private var isObsolete: Bool {
    guard self.order.cut != nil || self.inside.running?.isOver == true else { return false }
    return !self.order.canReplay && !self.pipeline.hasAsyncStages
  }

  private func hasRoom(at index: Int) -> Bool {
    // A unary call has one part, for which there is always room.
    if self.order.isUnary || self.order.isCut(at: index) { return true }
    guard index < self.stages.count else { return self.inside.running?.hasRoom ?? true }
    if index == self.order.codec { return self.order.bytes?.isBusy != true && self.hasRoom(at: index + 1) }
    return self.stages[index].stage.hasRoomForRequest(self.order.maximumWaiting)
  }

  // MARK: Movement

  /// Sends the request, or a stream's head.
  func begin(_ part: consuming RequestPart) {
    self.beginLevel(atMessages: true, with: part)
    self.send(part, at: 0)
  }

  /// Begins a level with the first part that comes to it.
  private func beginLevel(atMessages: Bool, with part: RequestPart) {
    let level =
      atMessages ? self.stages.prefix(self.order.codec) : self.stages.dropFirst(self.order.codec + 1)
    guard !level.isEmpty else { return }
    self.order.begin(
      atMessages: atMessages,
      with: part,
      ReplayLog(
        maximumBytes: self.call.plan.environment.settings.maximumReplayBytes,
        // Only a hook that sees results can ask for the messages again.
        isComplete: level.contains {
          if case .hooks(let stage) = $0 { stage.kinds.seesResult } else { false }
        }
      )
    )
  }

  /// Moves a part inwards from a stage on, as far as it gets.
  private func send(_ part: consuming RequestPart, at first: Int) {
    let stages = self.stages
    if stages.isEmpty {
      guard !self.order.isCut(at: 0), let encoded = self.encode(part), !self.call.isOver else { return }
      self.inside.transmit(encoded, self.call)
      return
    }
    var index = first
    while index < stages.count {
      if self.order.isCut(at: index) { return }
      switch stages[index] {
      case .codec:
        guard let encoded = self.encode(part) else { return }
        part = encoded
      case .async(let stage):
        stage.accept(part, of: self.call, in: self.pipeline)
        return
      case .hooks(let stage):
        switch self.visit(stage, at: index, with: part) {
        case .pass(let passed): part = passed
        case .stay:
          self.order.active.mayKeep(at: index)
          return
        case .answer(let results):
          self.pipeline.answer(at: index, with: results, self.call)
          return
        }
      }
      index += 1
    }
    guard !self.order.isCut(at: index), !self.call.isOver else { return }
    self.inside.transmit(part, self.call)
  }

  /// Moves waiting parts, the innermost first, and then new ones.
  ///
  /// - Returns: Whether anything moved.
  func moveAll() -> Bool {
    // Nothing follows the one part of a unary call.
    if self.order.isUnary, self.stages.isEmpty { return false }
    var hasMoved = false
    if self.order.mayKeep {
      for index in self.order.active.keepers.reversed() {
        guard self.hasRoom(at: index + 1), let part = self.stages[index].stage.takeReadyRequest() else {
          continue
        }
        hasMoved = true
        self.send(part, at: index + 1)
        guard self.mayGoOn else { return true }
      }
    }
    while self.mayGoOn, let bytes = self.order.bytes, bytes.isBusy, self.hasRoom(at: self.order.codec + 1),
      let part = bytes.takeReplay()
    {
      hasMoved = true
      self.send(part, at: self.order.codec + 1)
    }
    while self.mayGoOn, let messages = self.order.messages, messages.isBusy, self.hasRoom(at: 0),
      let part = messages.takeReplay()
    {
      hasMoved = true
      self.send(part, at: 0)
    }
    while self.outside.hasOutgoing, self.mayGoOn, self.order.messages?.isBusy != true, self.hasRoom(at: 0),
      let part = self.outside.takeOutgoing(isObsolete: self.isObsolete)
    {
      hasMoved = true
      self.order.messages?.note(part)
      self.send(part, at: 0)
      self.outside.outgoingWasTaken()
    }
    return hasMoved
  }

  /// A hook's action, perhaps on an earlier part, is handled before the next part.
  private var mayGoOn: Bool { !self.call.isOver && !self.pipeline.hasEvents }

  // MARK: Hooks and the codec

  private func visit(_ stage: HookStage, at index: Int, with part: RequestPart) -> Stage.RequestStep {
    let mayPass = HookWindow.isClear(stage.requests) && self.hasRoom(at: index + 1)
    let kinds = stage.kinds
    guard kinds.contains(.headUpdate) else {
      return self.visit(stage, at: index, with: part, mayPass: mayPass)
    }
    if part.hasHead { stage.holdsHead = true }
    var updated = part
    let failure = self.call.plan.inheritance.bind(part.head?.context, of: stage.interceptor) {
      stage.update(&updated)
    }
    guard !self.call.isOver else { return .stay }
    if let failure { return .failed(failure, as: stage.form) }
    return self.visit(stage, at: index, with: updated, mayPass: mayPass)
  }

  private func visit(_ stage: HookStage, at index: Int, with part: RequestPart, mayPass: Bool)
    -> Stage.RequestStep
  {
    guard stage.kinds.contains(hookFor: part) else { return stage.pass(part, mayPass: mayPass) }
    if part.hasHead { stage.holdsHead = true }
    var visit = self.pipeline.makeVisit(at: .request(index), self.call)
    self.call.plan.inheritance.bind(part.head?.context, of: stage.interceptor) {
      stage.call(with: part, visit)
    }
    guard !self.call.isOver else { return .stay }
    guard let action = visit.hookReturned(waits: true) else {
      stage.wait(part, as: visit.number)
      HoldWatch.hookWaits(in: self.call)
      return .stay
    }
    self.pipeline.keep(&visit)
    return stage.didReturn(action, given: part, mayPass: mayPass)
  }

  /// - Returns: Nil if the part cannot be encoded, which has failed the call.
  private func encode(_ part: consuming RequestPart) -> RequestPart? {
    do throws(ConnectError) {
      let encoded = try self.call.plan.encode(
        part,
        forByteHooks: self.pipeline.hasByteStages
      )
      switch encoded {
      case .bytes(let bytes):
        self.charge(bytes.readableBytes)
        self.order.bytes?.note(encoded)
      case .end, .message:
        self.order.bytes?.note(encoded)
      case .whole, .wholeBytes, .head:
        self.beginLevel(atMessages: false, with: encoded)
      }
      return encoded
    } catch {
      self.pipeline.fail(with: error, self.call)
      return nil
    }
  }

  /// Counts the encoded bytes of a message against the limit of what is kept for a retry.
  private func charge(_ byteCount: Int) {
    self.order.messages?.charge(byteCount)
    self.order.bytes?.charge(byteCount)
    guard self.pipeline.hasAsyncStages else { return }
    for stage in self.stages { stage.stage.charge(byteCount) }
  }
}
