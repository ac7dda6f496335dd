internal import Connect
internal import DequeModule
internal import NIOCore

/// One direction of an exchange: parts on their way through the hooks of interceptors, in order and bounded.
///
/// Pure: parts and the answers of hooks go in, and ``next(hasRoom:)`` says what to do. Both directions use it; the one for the
/// response has its stages in the reverse order of the interceptors.
///
/// Between the stages are queues: stage `n` takes from queue `n`, and what it passes on goes to queue `n + 1`. The sink takes
/// from the last queue. A stage holds the parts that its hooks have, and what has to wait behind them. When there is no room in
/// a queue, the stage before it keeps what it has, and gets no more; so it goes on to the source.
struct WirePipe {
  enum Action {
    /// Call the hook of a stage; ``WirePipe/answer(_:with:)`` takes what it says.
    case ask(WireAsk, WirePart)
    /// Give a part to the sink.
    case pass(WireDirection, WirePart)
    /// The interceptor of a stage has broken the rules.
    case blame(WireAsk, WireProblem)
  }

  private let direction: WireDirection
  private let limits: WireLimits
  private var stages: [WireStage]
  private var queues: [WireQueue]
  private var askCount = 0
  /// Stages before this one are cut off: an interceptor has failed.
  private var firstOpen = 0
  /// Bytes that interceptors have dropped, which are to be given back to the transport.
  private var releasedBytes = 0

  /// - Parameter kinds: The parts for which the stages have hooks.
  init(_ kinds: [WirePart.Kinds], _ direction: WireDirection, limits: WireLimits) {
    self.direction = direction
    self.limits = limits
    self.stages = kinds.map { WireStage($0) }
    self.queues = Array(repeating: WireQueue(), count: kinds.count + 1)
  }

  /// Whether stages have taken all chunks, so that the source may give more.
  var takesMore: Bool { !self.queues[0].hasChunks }

  /// Whether a hook may still answer.
  func awaits(_ ask: WireAsk) -> Bool {
    ask.stage >= self.firstOpen && self.stages[ask.stage].asked(ask) != nil
  }

  /// What waits in all queues and stages, in bytes.
  var waitingBytes: Int { self.queues.reduce(0) { $0 + $1.size } + self.stages.reduce(0) { $0 + $1.size } }

  // MARK: What goes in

  /// Adds a part of the source.
  mutating func push(_ part: WirePart) {
    guard self.firstOpen == 0 else { return }
    self.queues[0].append(part, joiningBeyond: self.limits.waitingChunks)
  }

  /// Takes the answer of a hook.
  ///
  /// - Returns: Why the interceptor has broken the rules; nil if all is well, or if the answer comes too late.
  mutating func answer(_ ask: WireAsk, with parts: [WirePart]) -> WireProblem? {
    guard ask.stage >= self.firstOpen, let asked = self.stages[ask.stage].asked(ask) else { return nil }
    let parts = parts.filter { !$0.isChunk || $0.size > 0 }
    let size = parts.reduce(0) { $0 + $1.size + ($1.head?.completeBody?.readableBytes ?? 0) }
    let receivedSize = asked.size + (asked.head?.completeBody?.readableBytes ?? 0)
    let (added, kept) = (size - receivedSize, self.stages[ask.stage].droppedBytes)
    guard added - kept <= self.limits.addedBytes, parts.count <= WireStage.maximumParts else {
      return WireProblem(
        .resourceExhausted,
        "passed on \(size) bytes in \(parts.count) parts for \(receivedSize) bytes; at most \(self.limits.addedBytes) more (WireLimits.addedBytes) in \(WireStage.maximumParts) parts are allowed"
      )
    }
    if parts.isEmpty {
      self.stages[ask.stage].droppedBytes += receivedSize
    } else if added > 0 {
      self.stages[ask.stage].droppedBytes = max(kept - added, 0)
    }
    self.releasedBytes += self.stages[ask.stage].take(parts, for: ask)
    if let old = asked.head?.completeBody, let new = parts.first?.head {
      // A complete body that becomes a streamed one. The source has nothing more.
      if new.isStreamed {
        if old.readableBytes > 0 { self.queues[ask.stage].append(.chunk(old, credit: 0)) }
        self.queues[ask.stage].append(.end(Headers()))
      }
    } else if let new = parts.first?.head, !new.isStreamed {
      self.stages[ask.stage].leavesEndOut = true
    }
    return nil
  }

  /// Ends the pipe with `part` behind what a stage has passed on so far. What is in the stage, and before it, is discarded.
  ///
  /// - Parameter stage: The last stage to be cut off. With -1 none is, and only what waits in front of the first one is
  ///   discarded.
  mutating func cut(through stage: Int, with part: WirePart) {
    let open = stage + 1
    for index in 0..<open {
      self.stages[index].removeAll()
      self.queues[index] = WireQueue()
    }
    if open == 0 { self.queues[0] = WireQueue() }
    self.firstOpen = max(open, self.firstOpen)
    self.queues[open].removeEnd()
    self.queues[open].append(part)
  }

  /// Discards everything; later answers are ignored.
  mutating func close() {
    for index in self.stages.indices { self.stages[index].removeAll() }
    for index in self.queues.indices { self.queues[index] = WireQueue() }
    self.firstOpen = self.stages.count
  }

  /// Bytes that were dropped since the last call.
  mutating func takeReleasedBytes() -> Int {
    defer { self.releasedBytes = 0 }
    return self.releasedBytes
  }

  // MARK: What comes out

  /// - Parameter hasRoom: Whether the sink takes a chunk.
  /// - Returns: What to do; nil if nothing can move.
  mutating func next(hasRoom: Bool) -> Action? {
    while true {
      if let part = self.queues[self.stages.count].takeFirst(hasRoom: hasRoom) {
        return .pass(self.direction, part)
      }
      var hasMoved = false
      // The last stage first, since what it passes on makes room for the others.
      for index in self.stages.indices.reversed() where index >= self.firstOpen {
        switch self.advance(index) {
        case .moved: hasMoved = true
        case .action(let action): return action
        case .stuck: break
        }
      }
      if !hasMoved { return nil }
    }
  }

  private enum Step {
    case moved
    case action(Action)
    case stuck
  }

  private mutating func advance(_ index: Int) -> Step {
    if let part = self.stages[index].takeFirst(ifChunk: self.queues[index + 1].hasRoom(self.limits)) {
      return self.pass(part, from: index)
    }
    guard let part = self.queues[index].first else { return .stuck }
    let isAsked = self.stages[index].kinds.contains(part.kind)
    guard !part.isChunk || self.stages[index].hasRoom(self.limits) else { return .stuck }
    if !isAsked, self.stages[index].isEmpty {
      guard !part.isChunk || self.queues[index + 1].hasRoom(self.limits) else { return .stuck }
      self.queues[index].removeFirst()
      return self.pass(part, from: index)
    }
    self.queues[index].removeFirst()
    let ask = self.makeAsk(index)
    self.stages[index].append(part, ask, isAsked: isAsked)
    return isAsked ? .action(.ask(ask, part)) : .moved
  }

  private mutating func pass(_ part: WirePart, from stage: Int) -> Step {
    if self.stages[stage].leavesEndOut {
      switch part {
      case .chunk: return self.blame(stage, "passed on a chunk behind a complete body")
      case .end(let trailers):
        return trailers.isEmpty ? .moved : self.blame(stage, "passed on trailers behind a complete body")
      case .request, .response, .failure: break
      }
    }
    self.queues[stage + 1].append(part)
    return .moved
  }

  private mutating func blame(_ stage: Int, _ predicate: String) -> Step {
    .action(.blame(self.makeAsk(stage), WireProblem(.internalError, predicate)))
  }

  private mutating func makeAsk(_ stage: Int) -> WireAsk {
    self.askCount += 1
    return WireAsk(direction: self.direction, stage: stage, number: self.askCount)
  }
}

enum WireDirection: Sendable { case request, response }

/// Identifies a call of a hook.
struct WireAsk: Sendable, Hashable {
  var direction: WireDirection
  var stage: Int
  var number: Int
}

extension WirePart {
  fileprivate var head: HTTPStreamRequest? {
    if case .request(let head) = self { head } else { nil }
  }
}
