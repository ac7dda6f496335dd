/// One pass of an ``AddressRace`` over its addresses: the attempts in flight, the addresses that follow, and the timer.
struct AddressPass: Sendable {
  /// How long an attempt may take.
  var timeLimit = Duration.zero
  /// Whether a call has asked for the pass. That counts until the backoff after it is over.
  var isForCall = false
  /// The addresses that the pass has not tried yet, the next one last.
  private(set) var untried: [EndpointAddress] = []
  private(set) var attempts: [ConnectionAttempt] = []
  private(set) var isTimerPending = false
  private var attemptCount: UInt64 = 0
  /// The time between two attempts.
  private let attemptDelay: Duration

  init(attemptDelay: Duration) {
    self.attemptDelay = attemptDelay
  }

  /// What to try from now on, beside the attempts in flight.
  mutating func plan(_ addresses: some Sequence<EndpointAddress>) {
    self.untried = addresses.reversed()
  }

  /// Tries the next address, with a timer for the one after it.
  mutating func startNext(_ actions: inout [AddressRace.Action]) {
    guard let address = self.untried.popLast() else { return }
    self.attemptCount += 1
    let attempt = ConnectionAttempt(number: self.attemptCount, address: address, timeLimit: self.timeLimit)
    self.attempts.append(attempt)
    actions.append(.connect(attempt))
    if self.untried.isEmpty {
      self.cancelTimer(&actions)
    } else {
      self.schedule(after: self.attemptDelay, &actions)
    }
  }

  /// Has a timer exactly if there is something to try next.
  mutating func adjustTimer(_ actions: inout [AddressRace.Action]) {
    if self.untried.isEmpty {
      self.cancelTimer(&actions)
    } else if !self.isTimerPending {
      self.schedule(after: self.attemptDelay, &actions)
    }
  }

  /// The attempt is over. False if it was none of the pass.
  mutating func remove(_ attempt: ConnectionAttempt) -> Bool {
    guard let index = self.attempts.firstIndex(of: attempt) else { return false }
    self.attempts.remove(at: index)
    return true
  }

  /// Cancels the attempts with other addresses than these.
  mutating func keep(_ addresses: Set<EndpointAddress>, _ actions: inout [AddressRace.Action]) {
    for attempt in self.attempts where !addresses.contains(attempt.address) {
      actions.append(.cancel(attempt))
    }
    self.attempts.removeAll { !addresses.contains($0.address) }
  }

  /// Cancels attempts until there are fewer: old ones, but not the oldest of each address. That one has its full time, so that
  /// slow servers are reached, too.
  ///
  /// - Returns: The address of an attempt that was cancelled, if one was.
  mutating func limit(attempts limit: Int, _ actions: inout [AddressRace.Action]) -> EndpointAddress? {
    var address: EndpointAddress?
    while self.attempts.count >= limit {
      var seen: Set<EndpointAddress> = []
      guard let index = self.attempts.firstIndex(where: { !seen.insert($0.address).inserted }) else { break }
      let attempt = self.attempts.remove(at: index)
      address = attempt.address
      actions.append(.cancel(attempt))
    }
    return address
  }

  mutating func end(_ actions: inout [AddressRace.Action]) {
    for attempt in self.attempts { actions.append(.cancel(attempt)) }
    self.attempts.removeAll()
    self.untried.removeAll()
    self.cancelTimer(&actions)
  }

  // MARK: - The timer

  mutating func schedule(after delay: Duration, _ actions: inout [AddressRace.Action]) {
    self.isTimerPending = true
    actions.append(.schedule(after: delay))
  }

  /// Whether a timer that is due was still wanted.
  mutating func timerFired() -> Bool {
    defer { self.isTimerPending = false }
    return self.isTimerPending
  }

  private mutating func cancelTimer(_ actions: inout [AddressRace.Action]) {
    guard self.isTimerPending else { return }
    self.isTimerPending = false
    actions.append(.cancelTimer)
  }
}
