internal import NIOCore

/// Moves the parts of a request inwards, through hooks and the codec, as far as there is room.
struct RequestFlow {
  let pipeline: Pipeline
  let call: Call

  private var order: PipelineOrder { self.pipeline }
  private var stages: [Stage] { self.pipeline.stages }
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
    guard index < self.stages.count else {
      return self.inside.running.map { $0.traffic.hasRoom || $0.isOver } ?? true
    }
    if index == self.order.codec { return self.order.bytes?.isBusy != true && self.hasRoom(at: index + 1) }
    return self.stages[index].hasRoomForRequest(at: index, in: self.order)
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
    // Any interceptor can ask for a retry from the start.
    let mayRetry =
      !self.order.isUnary && (atMessages ? self.mayStartAgain : level.contains(where: \.mayRetry))
    guard !level.isEmpty || (atMessages && mayRetry) else { return }
    self.order.begin(
      atMessages: atMessages,
      with: part,
      ReplayLog(
        maximumBytes: self.call.plan.environment.settings.maximumReplayBytes,
        isComplete: mayRetry
      )
    )
  }

  private var mayStartAgain: Bool {
    self.pipeline.callHooksMayRetry || self.stages.contains(where: \.mayRetry)
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
        guard let encoded = self.encode(consume part) else { return }
        part = consume encoded
      case .async(let stage):
        stage.accept(part, of: self.call, in: self.pipeline)
        return
      case .hooks(let functions, let kinds, let form):
        if kinds.contains(hookFor: part) {
          guard let passed = self.visit(functions, form, at: index, with: part) else { return }
          part = passed
        } else {
          guard let passed = self.pass(consume part, functions, kinds, form, at: index) else { return }
          part = passed
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
    if self.order.isUnary, self.stages.isEmpty, self.order.messages == nil { return false }
    var hasMoved = false
    if self.order.mayKeep {
      for index in self.order.active.keepers.reversed() {
        guard self.hasRoom(at: index + 1),
          let part = self.stages[index].takeReadyRequest(at: index, in: self.order)
        else {
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

  /// - Returns: What goes on inwards; nil if nothing does for now.
  private func visit(
    _ functions: HookFunctions,
    _ form: Stage.Form,
    at index: Int,
    with part: RequestPart
  ) -> RequestPart? {
    let mayPass = self.mayPass(at: index)
    if part.hasHead { self.order.holdHead(at: index) }
    var visit = self.pipeline.makeVisit(at: .request(index), self.call)
    if let inheritance = self.call.plan.inheritance {
      self.call(functions, form, with: part, visit, inheritance)
    } else {
      functions.call(form, with: part, visit)
    }
    guard mayPass, visit.hookReturned(), !self.call.isOver, let sent = visit.sent.take() else {
      return self.didReturn(&visit, given: part, form, at: index, mayPass: mayPass)
    }
    self.pipeline.keep(&visit)
    return self.order.passed(sent, inPlaceOf: part, at: index, form)
  }

  // Not inlined, here and below: what is rare makes what is frequent slower.
  @inline(never)
  private func call(
    _ functions: HookFunctions,
    _ form: Stage.Form,
    with part: RequestPart,
    _ visit: Visit,
    _ inheritance: Inheritance
  ) {
    inheritance.bind(part.head?.context, of: functions.interceptor) {
      functions.call(form, with: part, visit)
    }
  }

  /// The hook has returned, and has perhaps not passed a part on.
  @inline(never)
  private func didReturn(
    _ visit: inout Visit,
    given part: RequestPart,
    _ form: Stage.Form,
    at index: Int,
    mayPass: Bool
  ) -> RequestPart? {
    let hasProceeded = visit.hookReturned()
    guard !self.call.isOver else { return nil }
    guard hasProceeded else {
      visit.isArmed = true
      self.order.wait(part, at: index, as: visit.number)
      self.order.active.mayKeep(at: index)
      HoldWatch.hookWaits(in: self.call)
      return nil
    }
    let action = visit.takeAction()
    self.pipeline.keep(&visit)
    let step = self.order.didReturn(action, given: part, at: index, form, mayPass: mayPass)
    return self.follow(step, at: index)
  }

  /// Whether a part can go on at once: there is room further in, and no earlier part waits.
  @inline(__always)
  private func mayPass(at index: Int) -> Bool {
    self.order.isUnary || HookWindow.isClear(self.order[index].requests) && self.hasRoom(at: index + 1)
  }

  /// Lets a synchronous hook change the part, if there is one.
  @inline(never)
  private func pass(
    _ part: consuming RequestPart,
    _ functions: HookFunctions,
    _ kinds: HookKinds,
    _ form: Stage.Form,
    at index: Int
  ) -> RequestPart? {
    if kinds.contains(.headUpdate) {
      self.order.holdHead(at: index)
      let failure = self.call.plan.inheritance.bind(part.head?.context, of: functions.interceptor) {
        functions.update(form, &part)
      }
      guard !self.call.isOver else { return nil }
      if let failure { return self.follow(.failed(failure, as: form), at: index) }
    }
    let mayPass = self.mayPass(at: index)
    return self.follow(self.order.pass(consume part, at: index, mayPass: mayPass), at: index)
  }

  /// - Returns: What goes on inwards; nil if nothing does for now.
  @inline(__always)
  private func follow(_ step: consuming Stage.RequestStep, at index: Int) -> RequestPart? {
    switch consume step {
    case .pass(let part): return part
    case .stay: self.order.active.mayKeep(at: index)
    case .answer(let results): self.pipeline.answer(at: index, with: results, self.call)
    }
    return nil
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
    for case .async(let stage) in self.stages { stage.charge(byteCount) }
  }
}
