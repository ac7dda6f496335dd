internal import Connect
internal import Dispatch
internal import Synchronization

/// What others than its own thread know of an exploration: whether it is to end, whether it hangs, and where.
final class ExplorationWatch: Sendable {
  private struct State {
    var isOver = false
    /// What the current run has chosen so far; nil before the first one.
    var schedule: Schedule?
    var scheduleCount = 0
    /// The story of the current run so far, if it tells one.
    var lines: [RunLog.Line] = []
  }

  private let state = Mutex(State())
  private let isCancelled = Atomic(false)
  private let beats = Atomic<UInt>(0)
  private let over = DispatchSemaphore(value: 0)
  /// Whether a run of the exploration has had work of other threads.
  private let otherThreads = Atomic(false)

  // MARK: For the thread of the exploration

  /// Something ends, and something new begins.
  func beat() {
    self.beats.store(self.beats.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// A run begins.
  ///
  /// - Throws: `CancellationError` if the exploration is to end.
  func begin(_ method: StreamType) throws {
    self.beat()
    let isOver = self.state.withLock { state in
      state.schedule = Schedule(method: method)
      state.scheduleCount += 1
      state.lines = []
      return state.isOver
    }
    if isOver || self.isCancelled.load(ordering: .relaxed) { throw CancellationError() }
  }

  /// The current run deviates from the boring schedule.
  func note(_ deviation: Schedule.Deviation) {
    self.state.withLock { $0.schedule?.deviations.append(deviation) }
  }

  /// The current run tells its story.
  func note(_ line: RunLog.Line) {
    self.state.withLock { $0.lines.append(line) }
  }

  var usesOtherThreads: Bool { self.otherThreads.load(ordering: .relaxed) }

  func noteOtherThreads() { self.otherThreads.store(true, ordering: .relaxed) }

  // MARK: For others

  /// The exploration ends with the next schedule.
  func cancel() { self.isCancelled.store(true, ordering: .relaxed) }

  /// The exploration is over: it has a result, or is given up.
  ///
  /// - Returns: Whether it was not before.
  func end() -> Bool {
    let wasOver = self.state.withLock { state in
      defer { state.isOver = true }
      return state.isOver
    }
    if !wasOver { self.over.signal() }
    return !wasOver
  }

  /// Blocks the calling thread until the exploration is over or hangs.
  ///
  /// - Parameter limit: How long one piece of work may take.
  /// - Returns: Where it hangs; nil if it is over.
  func waitForHang(_ limit: Duration) -> ExplorationFailure? {
    // Rounds are counted, not time: a debugger may stop the process for longer.
    let rounds = 10
    let round = DispatchTimeInterval.nanoseconds(max(Int(limit.nanoseconds) / rounds, 1))
    var last = self.beats.load(ordering: .relaxed)
    var count = 0
    while self.over.wait(timeout: .now() + round) == .timedOut {
      let beat = self.beats.load(ordering: .relaxed)
      count = beat == last ? count + 1 : 0
      last = beat
      if count >= rounds { return self.failure(limit) }
    }
    return nil
  }

  private func failure(_ limit: Duration) -> ExplorationFailure {
    let state = self.state.withLock { $0 }
    let finding = Finding(
      rule: "work ends",
      reason:
        "the code under test has not let go of the thread for \(limit): it loops without end, or blocks the thread. "
        + "That thread cannot be stopped, and is left behind"
    )
    return ExplorationFailure(
      finding,
      state.lines.isEmpty ? "The story is told when the schedule runs again." : RunLog.story(state.lines),
      state.schedule ?? Schedule(method: .unary),
      found: max(state.scheduleCount, 1)
    )
  }
}
