internal import Connect
internal import Logging

/// One endpoint of a channel: the race to a connection, and the pool of connections to the address that has won.
///
/// Runs the actions of ``AddressRace`` and ``ConnectionPool``, and tells the channel of what its balancer should know.
/// Confined to the channel's executor. The channel holds it until it is retired; connections hold it until they are gone.
final class Subchannel: WaitingRoom, ConnectionOwner {
  typealias Pool = PooledConnection.Pool

  let id: EndpointID
  private(set) var endpoint: Endpoint
  /// How long it took to find the addresses.
  let nameResolution: Duration
  let environment: ChannelEnvironment
  /// The environment's observer, copied because each call reads it.
  private let observer: (any ChannelObserver)?
  weak var channel: OriginChannel?
  var random: SplitMix64
  var race: AddressRace
  /// Each call changes it, so exclusivity is not checked at run time. That is safe: the pool calls nobody.
  @exclusivity(unchecked) var pool: Pool
  /// Attempts of the race.
  var contenders: [ConnectionAttempt: PooledConnection] = [:]
  /// Attempts of the pool.
  var attempts: [Pool.ConnectionID: PooledConnection] = [:]
  var raceTimer: (any CallTimer)?
  var poolBackoff: ConnectionBackoff
  /// Failures of the addresses since the last connection, one for each address.
  private var failures: [AddressFailure] = []
  /// When a stream has ended last.
  private(set) var lastUse: Duration
  var tracker: CallTracker?
  var counters = EndpointCounters()
  /// Whether outlier detection keeps calls away.
  var isEjected = false
  let watches: EndpointWatches
  var wasSuspect = false
  /// Whether a connection since the last success of the race has served calls, or was closed by us.
  var hasServed = false

  init(
    _ id: EndpointID,
    _ endpoint: Endpoint,
    in environment: ChannelEnvironment,
    of channel: OriginChannel,
    nameResolution: Duration,
    keepsConnection: Bool,
    seed: UInt64
  ) {
    self.id = id
    self.endpoint = endpoint
    self.environment = environment
    self.observer = environment.configuration.observer
    self.channel = channel
    self.nameResolution = nameResolution
    self.random = SplitMix64(seed: seed)
    let backoff = environment.configuration.backoff.configuration(
      minimumAttempt: environment.connectTimeout
    )
    self.race = AddressRace(
      endpoint.addresses,
      configuration: .init(backoff: backoff),
      random: &self.random
    )
    self.poolBackoff = ConnectionBackoff(backoff)
    self.lastUse = environment.executor.now
    self.watches = EndpointWatches(on: environment.executor, seed: ~seed)
    self.pool = Pool(
      limits: .init(environment.limits, keepsLast: keepsConnection),
      version: environment.version
    )
    self.watches.subchannel = self
  }

  var peer: String { self.environment.origin.description }

  var now: Duration { self.environment.executor.now }

  /// What the balancer sees.
  var balanced: BalancedEndpoint {
    var endpoint = BalancedEndpoint(
      id: self.id,
      endpoint: self.endpoint,
      state: self.race.state,
      lastError: self.race.lastError,
      isEjected: self.isEjected
    )
    if endpoint.state == .ready, self.isSuspect {
      endpoint.state = .connecting
      endpoint.isSuspect = true
    }
    if endpoint.state == .ready, let health = self.watches.health {
      switch health {
      case .healthy: break
      case .unknown: endpoint.state = .connecting
      case .unhealthy(let reason):
        endpoint.state = .transientFailure
        endpoint.lastError = reason
      }
    }
    return endpoint
  }

  /// Whether there is a connection, whatever is known of its health.
  var isReady: Bool { self.race.state == .ready }

  /// The version of HTTP that the server speaks; nil while there is no connection.
  var connectedVersion: HTTPConnectionInfo.Version? { self.isReady ? self.pool.version : nil }

  /// How many calls there are.
  var callCount: Int { max(self.pool.streamCount - self.watches.streamCount, 0) }

  /// Why there is no connection.
  var error: ConnectError? { self.failures.combined(peer: self.peer) }

  // MARK: - Wishes of the channel

  /// Begins to connect, if idle.
  ///
  /// - Parameter isForCall: Whether a call needs a connection. Otherwise it may have to wait for a backoff.
  func connect(isForCall: Bool) {
    self.run(self.race.connect(isForCall: isForCall, now: self.now, random: &self.random))
  }

  /// The resolver has new attributes for the same endpoint.
  func update(_ endpoint: Endpoint, keepsConnection: Bool) {
    self.pool.limits.keepsLast = keepsConnection
    guard endpoint != self.endpoint else { return }
    self.endpoint = endpoint
    self.run(self.race.update(endpoint.addresses, now: self.now, random: &self.random))
  }

  /// The endpoint has left the list, or the channel becomes idle. Calls in flight may finish; waiting calls go back to
  /// the channel.
  func retire() {
    self.watches.stop()
    self.run(self.race.shutDown())
    self.giveBackWaiting()
    self.run(self.pool.shutDown())
  }

  func closeWhenIdle() {
    self.run(self.pool.closeWhenIdle())
  }

  func forceShutDown(_ error: ConnectError) {
    self.run(self.pool.forceShutDown(error))
  }

  // MARK: - Calls

  /// Starts a stream on a connection that has room; nil if there is none.
  func start(_ request: HTTPStreamRequest, _ handler: any HTTPStreamHandler) -> (any HTTPStream)? {
    guard let member = self.pool.leaseConnection(), let connection = member.connection else { return nil }
    if self.pool.isSpareDue { self.run(self.pool.openSpare()) }
    return self.start(request, handler, on: connection, of: member)
  }

  func start(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    on connection: any StreamConnection,
    of member: PooledConnection,
    waitingSince start: Duration? = nil
  ) -> any HTTPStream {
    if let observer = self.observer {
      let waited = start.map { self.now - $0 }
      observer.channel(to: self.environment.origin, did: .picked(endpoint: member.name, waited: waited))
    }
    guard let tracker = self.tracker else { return connection.startStream(request, handler: handler) }
    return TrackedCall(handler, on: self, tracker) { connection.startStream(request, handler: $0) }
  }

  /// Starts a call that has waited.
  func start(_ stream: WaitingStream) -> Bool {
    guard let member = self.pool.leaseConnection(), let connection = member.connection else { return false }
    if !stream.start({ self.start($0, $1, on: connection, of: member, waitingSince: stream.start) }) {
      // The call was cancelled: another call gets the room.
      self.channel?.later { self.releaseRoom(of: connection) }
    }
    return true
  }

  private func releaseRoom(of connection: any StreamConnection) {
    guard let slot = self.pool.slots.first(where: { $0.connection?.connection === connection }),
      case .member(let id)? = slot.connection?.role
    else { return }
    self.run(self.pool.streamClosed(id, now: self.now))
  }

  /// Puts a call behind those that wait for a connection to this endpoint.
  ///
  /// - Returns: Nil if it waits now, else why it does not.
  func enqueue(_ stream: WaitingStream) -> ConnectError? {
    switch self.pool.enqueue(stream) {
    case .waiting(let ticket, let actions):
      stream.queued(in: self, as: ticket)
      self.run(actions)
      return nil
    case .tooMany:
      return .tooManyWait(self.pool.waiting.count, for: self.peer, limit: self.pool.limits.waitingCalls)
    case .shutDown:
      return .clientShutDown
    }
  }

  func leave(_ ticket: WaitingStream.Ticket) {
    self.run(self.pool.cancel(ticket))
    self.channel?.waitingDidChange()
  }

  func giveBackWaiting() {
    let waiting = self.pool.takeWaiting()
    if !waiting.isEmpty { self.channel?.takeBack(waiting) }
  }

  // MARK: - Events of connections

  func connectionEstablished(_ connection: PooledConnection) {
    guard case .member(let id) = connection.role else { return }
    self.run(self.pool.connectionEstablished(id, connection, version: connection.version))
  }

  func connection(_ connection: PooledConnection, canServe streams: Int) {
    switch connection.role {
    case .member(let id):
      if self.attempts.removeValue(forKey: id) != nil {
        self.poolBackoff.reset()
        self.opened(connection, id)
      }
      self.run(self.pool.connection(id, canServe: streams, now: self.now))
      self.suspicionMayHaveChanged()
    case .contender(let attempt):
      guard self.contenders.removeValue(forKey: attempt) != nil else { return }
      let isReplacement = self.race.connection != nil
      let actions = self.race.attemptSucceeded(attempt, now: self.now)
      guard self.race.connection == attempt else {
        connection.abandon(.connectionReplaced)
        return
      }
      self.failures.removeAll()
      self.poolBackoff.reset()
      self.hasServed = false
      if isReplacement {
        // The connection before is in doubt.
        self.replaceConnections(with: connection, streams: streams)
      } else {
        let (id, poolActions) = self.pool.adopt(
          connection,
          version: connection.version,
          streams: streams,
          now: self.now
        )
        connection.role = .member(id)
        self.opened(connection, id)
        self.run(poolActions)
      }
      self.run(actions)
    case .candidate:
      break
    }
  }

  /// A connection takes calls from now on.
  func opened(_ connection: PooledConnection, _ id: Pool.ConnectionID) {
    self.counters.openedConnections += 1
    self.environment.report(.connectionOpened(endpoint: connection.name))
    guard let age = self.environment.configuration.maximumConnectionAge?.clamped else { return }
    let jitter = 0.9 + 0.2 * self.random.fraction()
    connection.ageTimer = self.schedule(after: max(age, .milliseconds(1)).scaled(by: jitter)) {
      $0.run($0.pool.renew(id))
    }
  }

  func streamClosed(_ connection: PooledConnection) {
    guard case .member(let id) = connection.role else { return }
    let now = self.now
    if !self.watches.streamDidClose() { self.lastUse = now }
    self.run(self.pool.streamClosed(id, now: now))
  }

  func connectionWillClose(_ connection: PooledConnection) {
    guard case .member(let id) = connection.role else { return }
    self.hasServed = self.hasServed || connection.hasServed
    self.run(self.pool.connectionWillClose(id, after: connection.renewalCount))
    // The others may all be suspect.
    self.suspicionMayHaveChanged()
    // A watch on this connection would keep it from closing.
    self.watches.restart()
  }

  func connectionClosed(_ connection: PooledConnection, _ failure: AddressFailure) {
    switch connection.role {
    case .contender(let attempt):
      guard self.contenders.removeValue(forKey: attempt) != nil else { return }
      self.note(failure)
      self.run(self.race.attemptFailed(attempt, error: failure.text, now: self.now))
    case .member(let id):
      if self.attempts.removeValue(forKey: id) != nil {
        self.note(failure)
      } else {
        self.environment.report(.connectionClosed(endpoint: connection.name))
        self.watches.connectionDidClose()
        self.hasServed = self.hasServed || connection.hasServed
      }
      self.run(self.pool.connectionClosed(id, error: failure.error))
      self.suspicionMayHaveChanged()
    case .candidate:
      break
    }
  }

  func connection(_ connection: PooledConnection, roundTrip: Duration) {
    self.counters.lastRoundTrip = roundTrip
  }

  func note(_ failure: AddressFailure) {
    self.counters.failedAttempts += 1
    self.environment.report(.connectionFailed(endpoint: failure.address.description, failure.error))
    self.environment.logger.debug(
      "could not connect",
      metadata: ["origin": "\(self.peer)", "error": "\(String(reflecting: failure.error))"]
    )
    self.failures.removeAll { $0.address == failure.address }
    self.failures.append(failure)
  }

  /// The server has reported its load on a stream.
  func record(_ report: LoadReport) {
    self.tracker?.loads.record(report, of: self.id, now: self.now)
  }

  func lost(_ error: ConnectError?) {
    self.watches.stop()
    if self.race.state != .shutdown { self.channel?.addressesMayBeOutOfDate() }
    if let connection = self.race.connection {
      let actions = self.race.connectionLost(
        connection,
        error: error?.message,
        hasServed: self.hasServed,
        now: self.now
      )
      self.run(actions)
      // Calls are being made: the next one need not wait for a connection.
      if self.hasServed, self.callCount > 0, !self.pool.closesWhenIdle { self.connect(isForCall: true) }
    }
    self.giveBackWaiting()
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
