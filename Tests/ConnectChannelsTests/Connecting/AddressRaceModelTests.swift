import ConnectChannels
import XCTest

/// Random events, and what has to hold after each.
final class AddressRaceModelTests: XCTestCase {
  func testRandomEvents() {
    for seed in seeds {
      for run in 0..<40 {
        var model = RaceModel(seed: seed &+ UInt64(run) &* 1_000_003)
        for _ in 0..<400 {
          model.step()
          if let failure = model.failure {
            return XCTFail("\(failure); seed \(seed) run \(run): \(model.log.suffix(6))")
          }
        }
        model.finish()
        if let failure = model.failure { return XCTFail("\(failure); seed \(seed) run \(run)") }
      }
    }
  }
}

/// Runs a race's actions and knows what they mean.
private struct RaceModel {
  private var random: SeededRandom
  private var race: AddressRace
  private var now = Duration.zero
  private var timer: Duration?
  private var pending: [ConnectionAttempt] = []
  private var cancelled: [ConnectionAttempt] = []
  private var connection: ConnectionAttempt?
  private var isDoubted = false
  private var numbers: Set<UInt64> = []
  private var state = ConnectivityState.idle
  private var hadAddresses = true
  private(set) var failure: String?
  private(set) var log: [String] = []

  init(seed: UInt64) {
    self.random = SeededRandom(seed: seed)
    self.race = AddressRace(Self.addresses(&self.random))
  }

  private static func addresses(_ random: inout SeededRandom) -> [EndpointAddress] {
    let count = random.index(below: 7)
    return (0..<count).map { _ in
      let host = random.index(below: 5)
      return random.index(below: 2) == 0 ? .ip("10.0.0.\(host)", port: 1) : .ip("fe80::\(host)", port: 1)
    }
  }

  mutating func step() {
    let wasEmpty = self.race.addresses.isEmpty
    switch self.random.index(below: 14) {
    case 0, 1:
      let isForCall = self.random.index(below: 2) == 0
      self.run(
        "connect, for a call: \(isForCall)",
        self.race.connect(isForCall: isForCall, now: self.now, random: &self.random)
      )
    case 2, 3, 4:
      guard let timer = self.timer else { return }
      self.now = timer
      self.timer = nil
      self.run("timer", self.race.timerFired(now: self.now, random: &self.random))
    case 5, 6, 7:
      guard let attempt = self.pending.randomElement(using: &self.random) else { return }
      self.pending.removeAll { $0 == attempt }
      self.now += .milliseconds(self.random.index(below: 100))
      self.run("fail \(attempt.number)", self.race.attemptFailed(attempt, error: "refused", now: self.now))
    case 8:
      guard let attempt = self.pending.randomElement(using: &self.random) else { return }
      self.pending.removeAll { $0 == attempt }
      if self.connection != nil, !self.isDoubted { self.failure = "an attempt beside a connection" }
      self.connection = attempt
      self.isDoubted = false
      self.run("succeed \(attempt.number)", self.race.attemptSucceeded(attempt, now: self.now))
    case 9:
      guard let attempt = self.cancelled.randomElement(using: &self.random) else { return }
      let late = self.random.index(below: 2) == 0
      let actions =
        late
        ? self.race.attemptSucceeded(attempt, now: self.now)
        : self.race.attemptFailed(attempt, error: "late", now: self.now)
      if actions != (late ? [.cancel(attempt)] : []) { self.failure = "late event: \(actions)" }
    case 10:
      guard let connection = self.connection else { return }
      self.connection = nil
      self.isDoubted = false
      let hasServed = self.random.index(below: 2) == 0
      self.now += .milliseconds(self.random.index(below: 700))
      self.run(
        "lost, served: \(hasServed)",
        self.race.connectionLost(connection, error: "reset", hasServed: hasServed, now: self.now)
      )
    case 11:
      guard self.connection != nil else { return }
      self.isDoubted = true
      self.run("suspect", self.race.connectionIsSuspect())
    case 12:
      guard self.connection != nil else { return }
      self.isDoubted = false
      self.run("alive", self.race.connectionIsAlive())
    default:
      let addresses = Self.addresses(&self.random)
      self.hadAddresses = !wasEmpty
      self.run("update", self.race.update(addresses, now: self.now, random: &self.random))
      self.hadAddresses = true
    }
    self.check()
  }

  /// Once servers answer, it gets ready within one backoff.
  mutating func finish() {
    self.hadAddresses = !self.race.addresses.isEmpty
    self.run("update", self.race.update([.ip("10.0.0.1", port: 1)], now: self.now, random: &self.random))
    self.run("connect", self.race.connect(now: self.now, random: &self.random))
    for _ in 0..<4 where self.race.state != .ready {
      if let attempt = self.pending.popLast() {
        self.connection = attempt
        self.isDoubted = false
        self.run("succeed", self.race.attemptSucceeded(attempt, now: self.now))
      } else if let timer = self.timer.take() {
        self.now = timer
        self.run("timer", self.race.timerFired(now: self.now, random: &self.random))
      }
    }
    self.check()
    if self.race.state != .ready { self.failure = "never ready: \(self.race.state)" }
    self.run("shutdown", self.race.shutDown())
    self.check()
  }

  private mutating func run(_ event: String, _ actions: [AddressRace.Action]) {
    self.log.append("\(event) -> \(actions)")
    for action in actions {
      switch action {
      case .connect(let attempt):
        if !self.numbers.insert(attempt.number).inserted { self.failure = "a number is used again" }
        if self.pending.contains(where: { $0.address == attempt.address }) {
          self.failure = "tried twice at a time"
        }
        if self.connection != nil, !self.isDoubted { self.failure = "an attempt beside a connection" }
        if !self.race.addresses.contains(attempt.address) { self.failure = "an address that is gone" }
        if attempt.timeLimit < .seconds(20) { self.failure = "too little time" }
        self.pending.append(attempt)
      case .cancel(let attempt):
        if !self.pending.contains(attempt) { self.failure = "cancels what is not under way" }
        self.pending.removeAll { $0 == attempt }
        self.cancelled.append(attempt)
      case .close(let attempt):
        if self.connection != attempt { self.failure = "closes another connection" }
        self.connection = nil
        self.isDoubted = false
      case .schedule(let delay):
        if delay < .zero || delay > .seconds(144) { self.failure = "a delay of \(delay)" }
        self.timer = self.now + delay
      case .cancelTimer:
        if self.timer == nil { self.failure = "cancels no timer" }
        self.timer = nil
      case .stateChanged(let state, _):
        self.changed(to: state)
      }
    }
  }

  private mutating func changed(to state: ConnectivityState) {
    let isAllowed =
      switch (self.state, state) {
      case (.idle, .connecting), (.ready, .connecting), (.connecting, .ready), (.transientFailure, .ready):
        true
      case (.transientFailure, .connecting): !self.hadAddresses
      case (.idle, .transientFailure), (.ready, .transientFailure): self.race.addresses.isEmpty
      case (.connecting, .transientFailure), (.transientFailure, .transientFailure): true
      case (.connecting, .idle), (.ready, .idle), (.transientFailure, .idle): true
      case (_, .shutdown): self.state != .shutdown
      default: false
      }
    if !isAllowed { self.failure = "from \(self.state) to \(state)" }
    self.state = state
  }

  private mutating func check() {
    if self.failure != nil { return }
    if self.race.state != self.state { self.failure = "a change was not told" }
    if self.race.connection != self.connection { self.failure = "connections differ" }
    if Set(self.race.pendingAttempts) != Set(self.pending) { self.failure = "attempts differ" }
    let isBusy = !self.pending.isEmpty || self.timer != nil
    switch self.race.state {
    case .idle, .shutdown:
      if isBusy || self.connection != nil { self.failure = "busy while \(self.race.state)" }
    case .ready:
      if isBusy && !self.isDoubted || self.connection == nil {
        self.failure = "ready, but not only connected"
      }
      if let address = self.connection?.address, !self.race.addresses.contains(address) {
        self.failure = "connected to an address that is gone"
      }
    case .connecting:
      if self.pending.isEmpty, self.timer == nil {
        self.failure = "connecting without an attempt, or a time for one"
      }
    case .transientFailure:
      if isBusy == self.race.addresses.isEmpty { self.failure = "failed, and stuck" }
    }
  }
}
