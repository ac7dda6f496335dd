internal import Connect

/// Brings an endpoint its first connection: does what ``AddressRace`` asks for. Confined to the channel's executor.
///
/// Attempts hold it until they have failed, or are connections of the pool.
final class EndpointRace: AttemptOwner {
  weak var subchannel: Subchannel?
  private let shared: SharedEnvironment
  private let pool: EndpointPool
  private var random: SeededRandom
  /// Each call reads it, so exclusivity is not checked at run time. That is safe: it calls nobody.
  @exclusivity(unchecked) private var race: AddressRace
  private var attempts: [ConnectionAttempt: PooledConnection] = [:]
  private var timer: (any CallTimer)?
  /// Failures of the addresses since the last connection, one for each address.
  private var failures: [AddressFailure] = []

  init(
    _ addresses: [EndpointAddress],
    in shared: SharedEnvironment,
    pool: EndpointPool,
    seed: UInt64
  ) {
    self.shared = shared
    self.pool = pool
    self.random = SeededRandom(seed: seed)
    self.race = AddressRace(addresses, configuration: .init(backoff: shared.environment.backoff))
  }

  var state: ConnectivityState { self.race.state }

  /// Why the last attempt or connection has failed; nil once one is ready.
  var lastError: String? { self.race.lastError }

  /// Whether it waits for a backoff that a call would cut short.
  var waitsForCall: Bool { self.race.isResting && !self.pool.state.growth.limits.isUnneeded }

  /// Where the connection leads to; nil if there is none.
  var address: EndpointAddress? { self.race.connection?.address }

  /// Why there is no connection.
  var error: ConnectError? { self.failures.combined(peer: self.peer) }

  private var now: Duration { self.shared.environment.executor.now }

  // MARK: - Wishes

  /// Begins to connect, if idle.
  ///
  /// - Parameter isForCall: Whether a call needs a connection. Otherwise it may have to wait for a backoff.
  func connect(isForCall: Bool) {
    self.run(self.race.connect(isForCall: isForCall, now: self.now, random: &self.random))
  }

  /// Tries to connect at once, even during a backoff.
  func probe() {
    self.run(self.race.probe(now: self.now, random: &self.random))
  }

  /// Whether the balancer does not need the endpoint now. Then attempts are given up, and the last connection closes after the
  /// idle timeout.
  func setUnneeded(_ isUnneeded: Bool) {
    guard isUnneeded != self.pool.state.growth.limits.isUnneeded else { return }
    self.pool.state.growth.limits.isUnneeded = isUnneeded
    // A watch would keep its connection from closing.
    self.subchannel?.watches.isPaused = isUnneeded
    if isUnneeded {
      self.pool.update { $0.checkIdle(now: self.now, isDue: false) }
      self.run(self.race.rest())
    } else if self.pool.state.isSuspect {
      // Nobody has looked for another connection so far.
      self.run(self.race.connectionIsSuspect())
    }
  }

  func update(_ addresses: [EndpointAddress]) {
    self.run(self.race.update(addresses, now: self.now, random: &self.random))
  }

  func shutDown() {
    self.run(self.race.shutDown())
  }

  /// The pool has lost its connections.
  ///
  /// - Returns: False if that is of no importance, because the connection was not wanted any more.
  func connectionLost(_ error: ConnectError?, hasServed: Bool) -> Bool {
    guard let connection = self.race.connection else { return false }
    let message = error?.message
    self.run(
      self.race.connectionLost(connection, error: message, hasServed: hasServed, now: self.now)
    )
    return true
  }

  /// It has become unknown, or known again, whether the connection still works.
  func setSuspect(_ isSuspect: Bool) {
    self.run(isSuspect ? self.race.connectionIsSuspect() : self.race.connectionIsAlive())
  }

  func note(_ failure: AddressFailure) {
    self.failures.removeAll { $0.address == failure.address }
    self.failures.append(failure)
  }

  // MARK: - Actions

  private func run(_ actions: [AddressRace.Action]) {
    self.perform(actions)
    if self.pool.state.growth.limits.isUnneeded { self.perform(self.race.rest(exceptForCall: true)) }
  }

  private func perform(_ actions: [AddressRace.Action]) {
    for action in actions {
      switch action {
      case .connect(let attempt):
        self.attempts[attempt] = self.subchannel?.attempt(.contender(attempt), to: attempt.address, of: self)
      case .cancel(let attempt):
        self.attempts.removeValue(forKey: attempt)?.abandon(.connectionReplaced)
      case .close:
        self.pool.update { $0.drainAll() }
      case .schedule(let delay):
        self.timer?.cancel()
        self.timer = self.shared.environment.executor.schedule(after: delay, with: self) {
          $0.timer = nil
          $0.run($0.race.timerFired(now: $0.now, random: &$0.random))
        }
      case .cancelTimer:
        self.timer.take()?.cancel()
      case .stateChanged(let state, _):
        self.subchannel?.raceDidChange(state)
      }
    }
  }

  // MARK: - AttemptOwner

  var peer: String { self.pool.peer }

  var hasUpgrade: Bool { self.pool.hasUpgrade }

  func replace(_ attempt: PooledConnection, by candidate: PooledConnection) {
    if case .contender(let contender) = attempt.role { self.attempts[contender] = candidate }
  }

  func connection(_ connection: PooledConnection, had event: ConnectionEvent) {
    guard case .contender(let attempt) = connection.role else { return }
    switch event {
    case .canServe(let streams):
      guard self.attempts.removeValue(forKey: attempt) != nil else { return }
      self.succeeded(attempt, connection, streams: streams)
    case .closed(let failure, _):
      guard self.attempts.removeValue(forKey: attempt) != nil else { return }
      self.subchannel?.attemptFailed(failure)
      self.run(self.race.attemptFailed(attempt, error: failure.text, now: self.now))
    case .roundTrip(let roundTrip):
      self.subchannel?.counters.lastRoundTrip = roundTrip
    case .established, .streamClosed, .willClose, .suspect, .alive, .proven:
      break
    }
  }

  private func succeeded(_ attempt: ConnectionAttempt, _ connection: PooledConnection, streams: Int) {
    // There is a connection before if that is suspect.
    let isReplacement = self.race.connection != nil
    let actions = self.race.attemptSucceeded(attempt, now: self.now)
    guard self.race.connection == attempt else {
      connection.abandon(.connectionReplaced)
      return
    }
    self.failures.removeAll()
    self.pool.adopt(connection, streams: streams, isReplacement: isReplacement)
    self.run(actions)
  }
}
