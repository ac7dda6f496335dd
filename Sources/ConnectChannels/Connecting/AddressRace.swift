/// Connects to one endpoint, whatever number of addresses it has: gRPC's pick_first (gRFC A61, A62) with Happy
/// Eyeballs (RFC 8305). Events go in, actions come out; it does no I/O and knows no clock.
///
///     idle ──► connecting ──► ready ──► idle
///                  │            ▲
///                  ▼            │
///               transientFailure (goes on trying)
///
/// A pass tries all addresses: the next one after a delay or as soon as one has failed. The first success ends the
/// other attempts. Once all have failed, the next pass begins after a backoff, and the state stays until one succeeds.
///
/// The backoff is for addresses that do not work. A connection that has served calls is replaced at once, however soon
/// the server renews it. Where connections are lost again and again before they have served anything, the next one waits for
/// the backoff, unless a call needs it.
///
/// While it is not known whether the connection still works, a pass looks for another one beside it.
///
/// The caller keeps one timer. Each ``Action/schedule(after:)`` replaces the timer before.
package struct AddressRace: Sendable {
  package struct Configuration: Sendable, Hashable {
    /// After which time the next address is tried beside those in flight: from 100 ms to 2 s.
    package var attemptDelay: Duration
    package var backoff: ConnectionBackoff.Configuration

    /// - Parameter attemptDelay: Brought into the range from 100 ms to 2 s.
    package init(
      attemptDelay: Duration = .milliseconds(250),
      backoff: ConnectionBackoff.Configuration = .defaults
    ) {
      self.attemptDelay = min(max(attemptDelay, .milliseconds(100)), .seconds(2))
      self.backoff = backoff
    }

    /// 250 ms between attempts, in the resolver's order, with gRPC's backoff.
    package static var defaults: Configuration { Configuration() }
  }

  package enum Action: Sendable, Hashable {
    /// Begin an attempt. Its end is to be reported.
    case connect(ConnectionAttempt)
    /// Give up an attempt. Its outcome need not be reported; a connection that it has brought is closed.
    case cancel(ConnectionAttempt)
    /// Close the connection once its calls have ended. Its end need not be reported.
    case close(ConnectionAttempt)
    /// Call ``AddressRace/timerFired(now:random:)`` after this time.
    case schedule(after: Duration)
    case cancelTimer
    /// The state has changed, or the error of a failure that goes on.
    case stateChanged(ConnectivityState, error: String?)
  }

  private enum Phase: Equatable {
    case idle
    /// The last connections have served nothing; a timer tells when to begin again without a call.
    case resting
    /// Attempts are in flight.
    case trying
    /// All addresses have failed; a timer tells when to begin again.
    case backingOff
    /// There is no address.
    case stuck
    case connected(ConnectionAttempt)
    case shutDown
  }

  /// What the endpoint's balancer sees.
  package private(set) var state = ConnectivityState.idle
  /// Why the last attempt or connection has failed; nil once one is ready.
  package private(set) var lastError: String?
  /// In the order in which they are tried.
  package private(set) var addresses: [EndpointAddress] = []
  private let configuration: Configuration
  private var backoff: ConnectionBackoff
  private var phase = Phase.idle
  private var pass: AddressPass
  /// Whether it is not known if the connection still works.
  private var isDoubted = false
  /// When the next pass may begin.
  private var nextPass = Duration.zero
  /// How many connections in a row were lost before the backoff of their pass was over, without having served.
  private var quickLosses = 0

  /// - Parameter addresses: The preferred one first.
  package init(
    _ addresses: [EndpointAddress],
    configuration: Configuration = .defaults
  ) {
    self.configuration = configuration
    self.backoff = ConnectionBackoff(configuration.backoff)
    self.pass = AddressPass(attemptDelay: configuration.attemptDelay)
    self.addresses = AddressOrder.interleaved(addresses)
  }

  /// The connection, if there is one.
  package var connection: ConnectionAttempt? {
    if case .connected(let attempt) = self.phase { attempt } else { nil }
  }

  /// The attempts in flight.
  package var pendingAttempts: [ConnectionAttempt] { self.pass.attempts }

  // MARK: - Wishes

  /// A connection is wanted. Without effect unless idle.
  ///
  /// - Parameter isForCall: Whether a call needs it. Otherwise it may have to wait for the backoff.
  package mutating func connect(isForCall: Bool = true, now: Duration, random: inout SeededRandom) -> [Action]
  {
    guard self.phase == .idle || isForCall && self.isResting else { return [] }
    self.pass.isForCall = isForCall
    var actions: [Action] = []
    if !isForCall, self.quickLosses > 1, now < self.nextPass {
      self.phase = .resting
      self.pass.schedule(after: self.nextPass - now, &actions)
      self.report(.connecting, &actions)
    } else {
      self.beginPass(now: now, &random, &actions)
    }
    return actions
  }

  /// A connection is wanted at once, even if the backoff after a failure is not over. If this try fails too, the backoff goes
  /// on. Where attempts are in flight that nothing answers, others are made beside them.
  package mutating func probe(now: Duration, random: inout SeededRandom) -> [Action] {
    var actions: [Action] = []
    switch self.phase {
    case .idle, .resting:
      return self.connect(isForCall: true, now: now, random: &random)
    case .backingOff:
      self.tryRest(except: [], &actions)
    case .trying:
      guard self.pass.untried.isEmpty else { break }
      if let address = self.pass.limit(attempts: 4 * self.addresses.count, &actions) {
        // The pass may never end, but that is a failure all the same.
        self.lastError = "\(address): no answer to several attempts to connect"
        if self.state != .transientFailure { self.report(.transientFailure, &actions) }
      }
      self.tryRest(except: [], &actions)
    case .stuck, .connected, .shutDown:
      break
    }
    return actions
  }

  /// No connection is wanted: attempts are given up, also those beside a connection in doubt. A connection stays.
  ///
  /// - Parameter exceptForCall: Whether what a call has asked for goes on, until the backoff after a failure is over.
  package mutating func rest(exceptForCall: Bool = false) -> [Action] {
    if exceptForCall, self.pass.isForCall { return [] }
    switch self.phase {
    case .resting, .trying, .backingOff:
      var actions: [Action] = []
      self.pass.end(&actions)
      self.phase = .idle
      self.report(.idle, &actions)
      return actions
    case .connected where self.isDoubted:
      var actions: [Action] = []
      self.isDoubted = false
      self.pass.end(&actions)
      return actions
    case .idle, .stuck, .connected, .shutDown:
      return []
    }
  }

  /// Whether it waits for a backoff that a call would cut short.
  package var isResting: Bool { self.phase == .resting }

  /// The resolver has other addresses. A connection, or attempt, to one of them stays; others end. After a failure
  /// addresses that are new are tried at once, the others after the backoff.
  package mutating func update(
    _ addresses: [EndpointAddress],
    now: Duration,
    random: inout SeededRandom
  ) -> [Action] {
    if self.phase == .shutDown { return [] }
    let old = Set(self.addresses)
    let new = Set(addresses)
    self.addresses = AddressOrder.interleaved(addresses)
    var actions: [Action] = []
    switch self.phase {
    case .idle, .resting, .shutDown:
      break
    case .connected(let connection):
      guard !new.contains(connection.address) else {
        if self.isDoubted { self.updatePass(old, new, now: now, &actions) }
        break
      }
      self.isDoubted = false
      self.pass.end(&actions)
      actions.append(.close(connection))
      self.beginPass(now: now, &random, &actions)
    case .stuck:
      // An empty list is no failure to connect: the state is not kept.
      self.state = .idle
      self.beginPass(now: now, &random, &actions)
    case .backingOff:
      if new.isEmpty || !new.isSubset(of: old) { self.tryRest(except: old, &actions) }
    case .trying:
      self.updatePass(old, new, now: now, &actions)
    }
    return actions
  }

  package mutating func shutDown() -> [Action] {
    if self.phase == .shutDown { return [] }
    var actions: [Action] = []
    self.pass.end(&actions)
    if let connection = self.connection { actions.append(.close(connection)) }
    self.phase = .shutDown
    self.report(.shutdown, &actions)
    return actions
  }

  // MARK: - Events

  /// The attempt has brought a connection that can serve calls. It takes the place of one that is in doubt.
  package mutating func attemptSucceeded(_ attempt: ConnectionAttempt, now: Duration) -> [Action] {
    guard self.pass.remove(attempt) else {
      // Cancelled while the connection was on its way.
      return self.connection == attempt ? [] : [.cancel(attempt)]
    }
    var actions: [Action] = []
    self.pass.end(&actions)
    if self.quickLosses == 0 {
      self.backoff.reset()
      self.nextPass = min(self.nextPass, now + self.configuration.backoff.initial)
    }
    self.isDoubted = false
    self.pass.isForCall = false
    self.lastError = nil
    self.phase = .connected(attempt)
    self.report(.ready, &actions)
    return actions
  }

  /// The attempt has brought no connection.
  package mutating func attemptFailed(_ attempt: ConnectionAttempt, error: String, now: Duration) -> [Action]
  {
    guard self.pass.remove(attempt) else { return [] }
    if self.connection == nil { self.lastError = "\(attempt.address): \(error)" }
    var actions: [Action] = []
    if self.pass.untried.isEmpty {
      self.continuePass(now: now, &actions)
    } else {
      self.pass.startNext(&actions)
    }
    return actions
  }

  /// The connection is gone, or takes no more calls.
  ///
  /// - Parameter hasServed: Whether it has worked. The next one may then be opened at once, as after one that has lasted
  ///   longer than the backoff.
  package mutating func connectionLost(
    _ attempt: ConnectionAttempt,
    error: String?,
    hasServed: Bool,
    now: Duration
  ) -> [Action] {
    guard self.connection == attempt else { return [] }
    self.isDoubted = false
    var actions: [Action] = []
    if self.pass.attempts.isEmpty { self.pass.end(&actions) }
    self.quickLosses = hasServed || now >= self.nextPass ? 0 : self.quickLosses + 1
    if self.quickLosses == 0 { self.backoff.reset() }
    self.lastError = error
    if self.pass.attempts.isEmpty {
      self.phase = .idle
      self.report(.idle, &actions)
    } else {
      // They were begun while the connection was in doubt.
      self.phase = .trying
      self.report(.connecting, &actions)
    }
    return actions
  }

  /// It is not known whether the connection still works: after the delay between attempts, in which most servers will have
  /// answered, all addresses are tried beside it, its own one last.
  package mutating func connectionIsSuspect() -> [Action] {
    guard case .connected(let connection) = self.phase, !self.isDoubted else { return [] }
    self.isDoubted = true
    self.pass.timeLimit = self.configuration.backoff.minimumAttempt
    self.pass.plan(self.addresses.filter { $0 != connection.address } + [connection.address])
    var actions: [Action] = []
    self.pass.schedule(after: self.configuration.attemptDelay, &actions)
    return actions
  }

  /// The connection works.
  package mutating func connectionIsAlive() -> [Action] {
    guard case .connected = self.phase, self.isDoubted else { return [] }
    self.isDoubted = false
    var actions: [Action] = []
    self.pass.end(&actions)
    return actions
  }

  /// The timer is due.
  package mutating func timerFired(now: Duration, random: inout SeededRandom) -> [Action] {
    guard self.pass.timerFired() else { return [] }
    var actions: [Action] = []
    switch self.phase {
    case .trying, .connected: self.pass.startNext(&actions)
    case .resting, .backingOff:
      self.pass.isForCall = false
      self.beginPass(now: now, &random, &actions)
    case .idle, .stuck, .shutDown: break
    }
    return actions
  }
}

// MARK: - Steps

extension AddressRace {
  private mutating func beginPass(now: Duration, _ random: inout SeededRandom, _ actions: inout [Action]) {
    guard !self.addresses.isEmpty else {
      self.noAddresses(&actions)
      return
    }
    let delay = self.backoff.next(random: &random)
    self.nextPass = now + delay
    self.pass.timeLimit = self.backoff.timeLimit(before: delay)
    self.tryRest(except: [], &actions)
    if self.state != .transientFailure { self.report(.connecting, &actions) }
  }

  private mutating func tryRest(except tried: Set<EndpointAddress>, _ actions: inout [Action]) {
    guard !self.addresses.isEmpty else {
      self.noAddresses(&actions)
      return
    }
    self.phase = .trying
    self.pass.plan(self.addresses.filter { !tried.contains($0) })
    self.pass.startNext(&actions)
  }

  /// Brings a pass in line with a change of the addresses.
  private mutating func updatePass(
    _ old: Set<EndpointAddress>,
    _ new: Set<EndpointAddress>,
    now: Duration,
    _ actions: inout [Action]
  ) {
    self.pass.keep(new, &actions)
    // Those that have failed in this pass are not tried again before its end.
    let pending = Set(self.pass.attempts.lazy.map(\.address))
    let failed = old.subtracting(self.pass.untried).subtracting(pending)
    self.pass.plan(self.addresses.filter { !failed.contains($0) && !pending.contains($0) })
    self.continuePass(now: now, &actions)
  }

  /// Brings the pass on after attempts, or addresses, have gone.
  private mutating func continuePass(now: Duration, _ actions: inout [Action]) {
    if self.addresses.isEmpty {
      self.noAddresses(&actions)
    } else if !self.pass.attempts.isEmpty {
      self.pass.adjustTimer(&actions)
    } else if !self.pass.untried.isEmpty {
      self.pass.startNext(&actions)
    } else if self.connection == nil {
      self.phase = .backingOff
      self.pass.schedule(after: max(self.nextPass - now, .zero), &actions)
      self.report(.transientFailure, &actions)
    }
  }

  private mutating func noAddresses(_ actions: inout [Action]) {
    self.pass.end(&actions)
    self.phase = .stuck
    self.lastError = "the endpoint has no addresses"
    self.report(.transientFailure, &actions)
  }

  private mutating func report(_ state: ConnectivityState, _ actions: inout [Action]) {
    // A failure that goes on may have another reason now.
    guard self.state != state || state == .transientFailure else { return }
    self.state = state
    actions.append(.stateChanged(state, error: self.lastError))
  }
}
