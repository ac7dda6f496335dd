internal import DequeModule

/// The level of message hooks, or of byte hooks: where retries start, and the parts that are kept for them.
final class Level {
  /// The messages that followed the level's first part.
  private(set) var log: ReplayLog<RequestPart>
  private var hasEnded = false
  /// The parts to send again before anything new.
  private var replay: Deque<RequestPart> = []
  private var mustReplay = false
  /// Whether a retry waits for its delay to end.
  var isWaitingToRetry = false
  /// Whether messages are kept only so that the call can start again.
  var isForRestart = false

  init(log: ReplayLog<RequestPart>) {
    self.log = log
  }

  /// A result goes out to the caller: it is too late to start again.
  func resultIsShown() {
    self.isForRestart = false
    self.log.drop()
  }

  /// Whether nothing new can be sent for now.
  var isBusy: Bool { self.isWaitingToRetry || self.mustReplay }

  /// A part after the first one has arrived at the level.
  func note(_ part: RequestPart) {
    if case .end = part { self.hasEnded = true } else { self.log.append(part) }
  }

  /// Counts the encoded bytes of a message against the limit of what is kept for a retry.
  func charge(_ byteCount: Int) { self.log.charge(byteCount) }

  /// The messages are sent again, and counted again.
  func restart() { self.log.restart() }

  /// The delay before a new attempt is over.
  func replay(_ head: RequestPart) {
    self.isWaitingToRetry = false
    self.mustReplay = true
    self.replay = [head]
    self.replay.append(contentsOf: self.log.elements)
    if self.hasEnded { self.replay.append(.end) }
  }

  /// The next part to send again.
  func takeReplay() -> RequestPart? {
    defer { self.mustReplay = !self.replay.isEmpty }
    return self.replay.popFirst()
  }

  func reset() {
    let replay = self.replay
    if self.mustReplay { self.replay = [] }
    self.mustReplay = false
    self.isWaitingToRetry = false
    withExtendedLifetime(replay) {}
  }
}
