/// A piece of work of a run.
struct Piece: Sendable {
  typealias Work = VirtualThread.Work

  /// Of work that calls and transports give to the executor, which is to run in order.
  static let callLane = 1

  /// Pieces of one lane keep their order; those without lane (0) are independent of all others.
  let lane: Int
  let work: Work
  /// When the piece of a task began that has brought this one, in real time; nil for what else has brought it.
  let origin: ContinuousClock.Instant?

  /// A piece without lane for a job, and in the lane of calls for a closure.
  init(_ work: Work, origin: ContinuousClock.Instant? = nil) {
    self.work = work
    self.origin = origin
    if case .closure = work { self.lane = Self.callLane } else { self.lane = 0 }
  }

  init(_ work: Work, lane: Int) {
    self.work = work
    self.lane = lane
    self.origin = nil
  }
}

/// The work of a run that can be done without time.
struct ReadyWork {
  private var pieces: [Piece] = []
  /// Waits until nothing else is ready.
  private var postponed: [Piece] = []

  var isEmpty: Bool { self.pieces.isEmpty }
  /// How many pieces of work there are if all of them are timers that nobody waits for any more. The job of a `Task.sleep` that was
  /// cancelled takes two: it comes to its executor, and finds that there is nothing to wake.
  var piecesOfTimers: Int {
    self.pieces.reduce(0) { sum, piece in
      if case .closure = piece.work { sum + 1 } else { sum + 2 }
    }
  }

  mutating func add(_ piece: Piece) {
    // What follows postponed work in its lane waits with it.
    let waits = piece.lane > 0 && self.postponed.contains { $0.lane == piece.lane }
    if waits { self.postponed.append(piece) } else { self.pieces.append(piece) }
  }

  /// The pieces that can run next: the first of each lane. At most `limit`.
  func candidates(limit: Int) -> [Int] {
    guard self.pieces.count > 1 else { return self.pieces.isEmpty ? [] : [0] }
    var lanes: [Int] = []
    var result: [Int] = []
    for (index, piece) in self.pieces.enumerated() where result.count < limit {
      if piece.lane > 0 {
        if lanes.contains(piece.lane) { continue }
        lanes.append(piece.lane)
      }
      result.append(index)
    }
    return result
  }

  /// Takes a piece out.
  mutating func take(at index: Int) -> Piece { self.pieces.remove(at: index) }

  /// Takes all pieces out but the postponed ones.
  mutating func takeAll() -> [Piece] {
    defer { self.pieces = [] }
    return self.pieces
  }

  /// Puts the first piece, and what waits behind it, aside until nothing else is ready.
  mutating func postponeFirst() {
    let first = self.pieces.removeFirst()
    self.postponed.append(first)
    guard first.lane > 0 else { return }
    self.postponed += self.pieces.filter { $0.lane == first.lane }
    self.pieces.removeAll { $0.lane == first.lane }
  }

  /// - Returns: Whether there was postponed work, which is ready now.
  mutating func restorePostponed() -> Bool {
    guard !self.postponed.isEmpty else { return false }
    self.pieces += self.postponed
    self.postponed = []
    return true
  }
}
