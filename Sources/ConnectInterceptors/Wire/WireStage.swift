internal import DequeModule
internal import NIOCore

/// What one interceptor has of one direction of an exchange: the parts that its hooks have, and what waits behind them.
struct WireStage {
  /// How many parts a hook may pass on with one `proceed`.
  static let maximumParts = 1024

  private struct Slot {
    var ask: WireAsk
    /// What the hook has got.
    var asked: WirePart
    /// What it passes on; nil while it is not known.
    var parts: Deque<WirePart>?
    var size: Int
  }

  /// The parts for which there are hooks.
  let kinds: WirePart.Kinds
  /// Whether the interceptor has made a streamed body complete.
  var leavesEndOut = false
  /// Bytes that the interceptor took with `drop()`, and may pass on later.
  var droppedBytes = 0
  private var slots: Deque<Slot> = []
  private(set) var size = 0

  init(_ kinds: WirePart.Kinds) {
    self.kinds = kinds
  }

  var isEmpty: Bool { self.slots.isEmpty }

  /// Whether a chunk may be added.
  func hasRoom(_ limits: WireLimits) -> Bool {
    // A head is always the first, and is no chunk.
    let heads = self.slots.first.map { $0.asked.isChunk ? 0 : 1 } ?? 0
    return self.slots.count - heads < limits.waitingChunks && self.size < limits.waitingBytes
  }

  /// - Parameter isAsked: Whether a hook has got the part; else it only waits behind others.
  mutating func append(_ part: WirePart, _ ask: WireAsk, isAsked: Bool) {
    self.slots.append(Slot(ask: ask, asked: part, parts: isAsked ? nil : [part], size: part.size))
    self.size += part.size
  }

  /// The part that a hook has got; nil if it has answered.
  func asked(_ ask: WireAsk) -> WirePart? {
    self.slots.first { $0.ask == ask && $0.parts == nil }?.asked
  }

  /// Takes the answer of a hook.
  ///
  /// - Returns: How many bytes of the transport's window this frees at once.
  mutating func take(_ parts: [WirePart], for ask: WireAsk) -> Int {
    guard let index = self.slots.firstIndex(where: { $0.ask == ask }) else { return 0 }
    let slot = self.slots[index]
    var credit = 0
    if case .chunk(_, let all) = slot.asked { credit = all }
    self.size -= slot.size
    if parts.isEmpty {
      self.slots.remove(at: index)
      return credit
    }
    var parts = Deque(parts)
    // The last chunk has the credit: the window opens when the call has consumed all of them.
    if credit > 0, case .chunk(let bytes, _) = parts[parts.count - 1] {
      parts[parts.count - 1] = .chunk(bytes, credit: credit)
    }
    let size = parts.reduce(0) { $0 + $1.size }
    self.size += size
    self.slots[index].size = size
    self.slots[index].parts = parts
    // Only its kind is still needed.
    if slot.asked.isChunk { self.slots[index].asked = .chunk(ByteBuffer(), credit: 0) }
    return 0
  }

  /// The first part that may leave.
  ///
  /// - Parameter hasRoom: Whether a chunk may leave.
  mutating func takeFirst(ifChunk hasRoom: Bool) -> WirePart? {
    guard let part = self.slots.first?.parts?.first, hasRoom || !part.isChunk else { return nil }
    self.slots[0].parts?.removeFirst()
    self.slots[0].size -= part.size
    self.size -= part.size
    if self.slots[0].parts?.isEmpty == true { self.slots.removeFirst() }
    return part
  }

  mutating func removeAll() {
    self.slots = []
    self.size = 0
  }
}

/// Parts between two stages.
struct WireQueue {
  private var parts: Deque<WirePart> = []
  private var chunkCount = 0
  private(set) var size = 0

  var hasChunks: Bool { self.chunkCount > 0 }
  var first: WirePart? { self.parts.first }

  func hasRoom(_ limits: WireLimits) -> Bool {
    self.chunkCount < limits.waitingChunks && self.size < limits.waitingBytes
  }

  /// - Parameter limit: How many chunks may wait before others are joined with the last.
  mutating func append(_ part: WirePart, joiningBeyond limit: Int = .max) {
    self.size += part.size
    if case .chunk(let bytes, let credit) = part {
      if self.chunkCount >= limit, self.parts.last?.isChunk == true,
        case .chunk(var last, let lastCredit)? = self.parts.popLast()
      {
        last.writeImmutableBuffer(bytes)
        self.parts.append(.chunk(last, credit: lastCredit + credit))
        return
      }
      self.chunkCount += 1
    }
    self.parts.append(part)
  }

  @discardableResult
  mutating func removeFirst() -> WirePart {
    let part = self.parts.removeFirst()
    self.size -= part.size
    if part.isChunk { self.chunkCount -= 1 }
    return part
  }

  /// - Parameter hasRoom: Whether a chunk may leave.
  mutating func takeFirst(hasRoom: Bool) -> WirePart? {
    guard let first = self.parts.first, hasRoom || !first.isChunk else { return nil }
    return self.removeFirst()
  }

  /// Removes the end, or the failure, if there is one.
  mutating func removeEnd() {
    guard let last = self.parts.last, last.kind == .end || last.kind == .failure else { return }
    self.parts.removeLast()
  }
}
