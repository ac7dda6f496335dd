internal import Connect

/// The state of one circuit of a ``CircuitBreaker``: times and outcomes go in, decisions come out.
///
/// Closed, it counts outcomes. Open, it refuses all calls until a time. Half-open, it admits a few trial calls.
struct Circuit {
  enum Decision {
    case admitted(Admission)
    case refused(for: Duration)
  }

  /// A call that was admitted. Its outcome counts only in the phase in which it began.
  struct Admission {
    fileprivate let phase: Int
  }

  private enum Phase {
    case closed
    case open(until: Duration)
    /// Trial calls that do not end are replaced after a while.
    case halfOpen(begun: Int, succeeded: Int, replacedAt: Duration)
  }

  private let configuration: CircuitBreaker.Configuration
  private var phase = Phase.closed
  private var phaseNumber = 0
  private var window: OutcomeWindow
  /// The counts that opened the circuit last.
  private(set) var reason = (failures: 0, total: 0)
  /// How many admitted calls have not ended.
  private(set) var pendingCount = 0
  /// When the circuit was made or last used.
  private(set) var lastUse: Duration

  init(_ configuration: CircuitBreaker.Configuration, at now: Duration = .zero) {
    self.configuration = configuration
    self.lastUse = now
    self.window = OutcomeWindow(length: configuration.window)
  }

  var state: CircuitBreaker.State {
    switch self.phase {
    case .closed: .closed
    case .open: .open
    case .halfOpen: .halfOpen
    }
  }

  /// Admits a call if the circuit is closed, whatever the time is.
  mutating func admitIfClosed() -> Admission? {
    if case .closed = self.phase { self.admission() } else { nil }
  }

  mutating func admit(at now: Duration) -> Decision {
    if let admission = self.admitIfClosed() { return .admitted(admission) }
    self.lastUse = now
    switch self.phase {
    case .closed:
      break
    case .open(let end):
      guard now >= end else { return .refused(for: end - now) }
      self.enter(.halfOpen(begun: 1, succeeded: 0, replacedAt: now + self.openDuration))
    case .halfOpen(let begun, let succeeded, let replacedAt):
      if begun < self.configuration.trialCalls {
        self.phase = .halfOpen(begun: begun + 1, succeeded: succeeded, replacedAt: replacedAt)
      } else {
        guard now >= replacedAt else { return .refused(for: replacedAt - now) }
        self.enter(.halfOpen(begun: 1, succeeded: 0, replacedAt: now + self.openDuration))
      }
    }
    return .admitted(self.admission())
  }

  private mutating func admission() -> Admission {
    self.pendingCount += 1
    return Admission(phase: self.phaseNumber)
  }

  mutating func record(_ admission: Admission, isFailure: Bool, at now: Duration) {
    self.lastUse = now
    self.pendingCount -= 1
    guard admission.phase == self.phaseNumber else { return }
    switch self.phase {
    case .closed:
      self.window.record(isFailure: isFailure, at: now)
      guard isFailure else { return }
      let counts = self.window.counts(at: now)
      guard counts.total >= self.configuration.minimumCalls,
        Double(counts.failures) >= Double(counts.total) * self.configuration.failureRate
      else { return }
      self.reason = counts
      self.open(at: now)
    case .halfOpen(let begun, let succeeded, let replacedAt):
      if isFailure {
        self.open(at: now)
      } else if succeeded + 1 >= self.configuration.trialCalls {
        self.window.removeAll()
        self.enter(.closed)
      } else {
        self.phase = .halfOpen(begun: begun, succeeded: succeeded + 1, replacedAt: replacedAt)
      }
    case .open:
      break
    }
  }

  /// An admitted call has ended without saying anything about the server.
  mutating func forget(_ admission: Admission) {
    self.pendingCount -= 1
    guard admission.phase == self.phaseNumber,
      case .halfOpen(let begun, let succeeded, let replacedAt) = self.phase
    else { return }
    self.phase = .halfOpen(begun: begun - 1, succeeded: succeeded, replacedAt: replacedAt)
  }

  private var openDuration: Duration { self.configuration.openDuration.clamped }

  private mutating func open(at now: Duration) {
    self.enter(.open(until: now + self.openDuration))
  }

  private mutating func enter(_ phase: Phase) {
    self.phase = phase
    self.phaseNumber += 1
  }
}
