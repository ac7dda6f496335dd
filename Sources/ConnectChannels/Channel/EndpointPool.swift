internal import Connect

/// The connections to an endpoint, and the calls that wait for one: does what ``ConnectionPool`` asks for. Confined to the
/// channel's executor.
///
/// Connections hold it until they are gone.
final class EndpointPool: MemberOwner, QueueOwner {
  typealias Pool = PooledConnection.Pool

  weak var subchannel: Subchannel?
  private let watches: EndpointWatches
  private let shared: SharedEnvironment
  /// Each call changes it, so exclusivity is not checked at run time. That is safe: the pool calls nobody.
  @exclusivity(unchecked) var state: Pool
  private var attempts: [Pool.ConnectionID: PooledConnection] = [:]
  private var backoff: ConnectionBackoff
  private var random: SeededRandom
  /// When a call has ended last.
  private(set) var lastUse: Duration
  private var wasSuspect = false
  /// Whether a connection since the last success of the race has served calls, or was closed by us.
  private(set) var hasServed = false

  init(
    in shared: SharedEnvironment,
    watches: EndpointWatches,
    keepsConnection: Bool,
    seed: UInt64
  ) {
    self.shared = shared
    self.watches = watches
    let environment = shared.environment
    self.backoff = ConnectionBackoff(environment.backoff)
    self.random = SeededRandom(seed: seed)
    self.lastUse = environment.executor.now
    self.state = Pool(
      limits: .init(environment.limits, keepsLast: keepsConnection),
      version: environment.version
    )
  }

  private var now: Duration { self.shared.environment.executor.now }

  /// Changes the pool's state and does what follows.
  func update(_ change: (inout Pool) -> [Pool.Action]) {
    self.run(change(&self.state))
  }

  // MARK: - Calls

  /// A connection for a new stream; nil if there is none with room.
  func lease() -> (member: PooledConnection, connection: any StreamConnection)? {
    guard let member = self.state.leaseConnection(), let connection = member.connection else { return nil }
    if self.state.connections.isSpareDue { self.run(self.state.openSpare()) }
    return (member, connection)
  }

  /// A call that was given a connection was cancelled: another call gets the room.
  func giveBack(_ member: PooledConnection) {
    guard case .member(let id) = member.role else { return }
    self.shared.environment.executor.later { self.run(self.state.streamClosed(id, now: self.now)) }
  }

  /// Puts a call behind those that wait for a connection.
  ///
  /// - Returns: Nil if it waits now, else why it does not.
  func enqueue(_ stream: WaitingStream) -> ConnectError? {
    switch self.state.enqueue(stream) {
    case .waiting(let handle, let actions):
      stream.queued(by: self, as: handle)
      self.run(actions)
      return nil
    case .tooMany:
      return .tooManyWait(
        self.state.waiting.count,
        for: self.peer,
        limit: self.state.growth.limits.waitingCalls
      )
    case .shutDown:
      return .clientShutDown
    }
  }

  func leave(_ handle: WaitingStream.Handle) {
    self.run(self.state.cancel(handle))
    self.subchannel?.channel?.waitingDidChange()
  }

  // MARK: - Actions

  private func run(_ actions: [Pool.Action]) {
    guard !actions.isEmpty else { return }
    for action in actions { self.run(action) }
    // After all actions: calls that are to start next still wait.
    if let channel = self.subchannel?.channel, channel.isShutDown {
      self.shared.environment.executor.later { channel.waitingDidChange() }
    }
  }

  private func run(_ action: Pool.Action) {
    switch action {
    case .open(let id):
      guard let subchannel = self.subchannel, let address = subchannel.race.address else {
        self.shared.environment.executor.later {
          self.run(self.state.connectionClosed(id, error: .connectionReplaced))
        }
        return
      }
      self.attempts[id] = subchannel.attempt(.member(id), to: address, of: self)
    case .start(let stream, let member, _):
      // An earlier action may have led to code that cancelled the call, or closed the connection.
      guard let subchannel = self.subchannel, let connection = member.connection else {
        stream.fail(.connectionLost(self.peer), isUnprocessed: true)
        return
      }
      subchannel.start(stream, on: connection, of: member)
    case .fail(let stream, let error):
      stream.fail(error)
    case .drain(let connection):
      self.hasServed = true
      connection.drain()
      // A watch on the connection would keep it from closing.
      self.watches.restart()
    case .close(let connection, let error):
      connection.connection?.close(failing: error)
    case .abandon(let id, let error):
      self.attempts.removeValue(forKey: id)?.abandon(error)
    case .backOff:
      let delay = self.backoff.next(random: &self.random)
      _ = self.shared.environment.executor.schedule(after: delay, with: self) { pool in
        pool.update { $0.backoffDidElapse() }
      }
    case .checkIdle(let delay):
      // Later, so that calls that wait for a connection get it first.
      _ = self.shared.environment.executor.schedule(after: max(delay, .milliseconds(1)), with: self) { pool in
        pool.update { $0.checkIdle(now: pool.now) }
      }
    case .lost(let error):
      self.subchannel?.poolIsLost(error)
    case .finished:
      if let subchannel = self.subchannel { subchannel.channel?.endpoints.finished(subchannel) }
    }
  }

  // MARK: - Connections

  var peer: String { self.shared.environment.origin.description }

  /// The race has a connection.
  ///
  /// - Parameter isReplacement: Whether it takes the place of all others, which are in doubt.
  func adopt(_ connection: PooledConnection, streams: Int, isReplacement: Bool) {
    connection.owner = self
    self.backoff.reset()
    self.hasServed = false
    if isReplacement {
      self.replaceConnections(with: connection, streams: streams)
    } else {
      self.include(
        connection,
        self.state.adopt(connection, version: connection.version, streams: streams, now: self.now)
      )
    }
  }

  private func include(
    _ connection: PooledConnection,
    _ change: (id: Pool.ConnectionID, actions: [Pool.Action])
  ) {
    connection.role = .member(change.id)
    self.opened(connection, change.id)
    self.run(change.actions)
    self.suspicionMayHaveChanged()
  }

  /// A connection takes calls from now on.
  private func opened(_ connection: PooledConnection, _ id: Pool.ConnectionID) {
    self.subchannel?.counters.openedConnections += 1
    self.shared.environment.report(.connectionOpened(endpoint: connection.name))
    guard let age = self.shared.environment.configuration.maximumConnectionAge?.clamped else { return }
    let limit = max(age, .milliseconds(1)).scaled(by: 0.9 + 0.2 * self.random.fraction())
    connection.timer = self.shared.environment.executor.schedule(after: limit, with: self) { pool in
      pool.update { $0.renew(id) }
    }
  }

  func connection(_ connection: PooledConnection, had event: ConnectionEvent) {
    guard case .member(let id) = connection.role else { return }
    switch event {
    case .streamClosed:
      let now = self.now
      if !self.watches.streamDidClose() { self.lastUse = now }
      self.run(self.state.streamClosed(id, now: now))
    case .established:
      self.run(self.state.connectionEstablished(id, connection, version: connection.version))
    case .canServe(let streams):
      if self.attempts.removeValue(forKey: id) != nil {
        self.backoff.reset()
        self.opened(connection, id)
      }
      self.run(self.state.connection(id, canServe: streams, now: self.now))
      self.suspicionMayHaveChanged()
    case .willClose(let hasServed, let count):
      self.hasServed = self.hasServed || hasServed
      self.run(self.state.connectionWillClose(id, after: count))
      // The others may all be suspect.
      self.suspicionMayHaveChanged()
      // A watch on this connection would keep it from closing.
      self.watches.restart()
    case .closed(let failure, let hasServed):
      if self.attempts.removeValue(forKey: id) != nil {
        self.subchannel?.attemptFailed(failure)
      } else {
        self.shared.environment.report(.connectionClosed(endpoint: connection.name))
        self.watches.connectionDidClose()
        self.hasServed = self.hasServed || hasServed
      }
      self.run(self.state.connectionClosed(id, error: failure.error))
      self.suspicionMayHaveChanged()
    case .suspect:
      self.state.suspend(id)
      self.suspicionMayHaveChanged()
      guard !self.state.waiting.isEmpty else { return }
      // Most servers will have answered by then.
      let delay = AddressRace.Configuration.defaults.attemptDelay
      _ = self.shared.environment.executor.schedule(after: delay, with: self) { pool in
        pool.update { $0.openForWaiting() }
      }
    case .alive:
      self.run(self.state.resume(id, now: self.now))
      self.suspicionMayHaveChanged()
    case .roundTrip(let roundTrip):
      self.subchannel?.counters.lastRoundTrip = roundTrip
    case .proven:
      break
    }
  }

  /// To be called after each change of the connections.
  private func suspicionMayHaveChanged() {
    guard self.state.isSuspect != self.wasSuspect else { return }
    self.wasSuspect = self.state.isSuspect
    self.subchannel?.suspicionDidChange(self.wasSuspect)
  }

  // MARK: - Other versions of HTTP

  var hasUpgrade: Bool {
    self.state.connections.slots.contains { $0.connection?.alternatives.upgrade != nil }
  }

  func hasPlace(_ connection: PooledConnection) -> Bool {
    guard case .member(let id) = connection.role, case .running = self.state.lifecycle else { return false }
    return self.state.connections.phase(of: id)?.isEstablished == true && !self.state.closesWhenIdle
  }

  func isReplaceable(_ connection: PooledConnection) -> Bool {
    self.hasPlace(connection)
      && !self.state.connections.slots.contains { $0.version == .http3 && $0.phase.isEstablished }
  }

  func replace(_ attempt: PooledConnection, by candidate: PooledConnection) {
    if case .member(let id) = attempt.role { self.attempts[id] = candidate }
  }

  func replaceConnections(with new: PooledConnection, streams: Int) {
    // Other tries are not needed any more. Their end says nothing about HTTP/3.
    for slot in self.state.connections.slots { slot.connection?.alternatives.upgrade.take()?.abandon() }
    self.include(
      new,
      self.state.replaceAll(with: new, version: new.version, streams: streams, now: self.now)
    )
  }
}

extension ConnectionPool.Limits {
  fileprivate init(_ limits: ConnectionLimits, keepsLast: Bool) {
    self.init(
      http1Connections: limits.http1Connections,
      http2Connections: limits.http2Connections,
      waitingCalls: limits.waitingCalls,
      idleTimeout: limits.idleTimeout,
      keepsLast: keepsLast
    )
  }
}
