internal import Connect
internal import Logging

/// One endpoint of a channel: the race to a connection, the pool of connections to the address that has won, and the watches of
/// the server. Tells the channel of what its balancer should know.
///
/// Confined to the channel's executor. The channel holds it until it is retired and its connections are gone.
final class Subchannel {
  let id: EndpointID
  // Each call reads these, so exclusivity is not checked at run time. That is safe: nothing is called while they change.
  @exclusivity(unchecked) private(set) var endpoint: Endpoint {
    didSet { self.counting.forgetTracker() }
  }
  /// How long it took to find the addresses.
  private let nameResolution: Duration
  private let shared: SharedEnvironment
  /// The environment's observer, copied because each call reads it.
  private let observer: (any ChannelObserver)?
  weak var channel: OriginChannel?
  let race: EndpointRace
  let pool: EndpointPool
  let watches: EndpointWatches
  @exclusivity(unchecked) var counting: CallCounting
  var counters = EndpointCounters()
  /// Whether outlier detection keeps calls away.
  var isEjected = false

  init(
    _ id: EndpointID,
    _ endpoint: Endpoint,
    in shared: SharedEnvironment,
    of channel: OriginChannel,
    loads: EndpointLoads,
    keepsConnection: Bool,
    seed: UInt64
  ) {
    self.counting = CallCounting(EndpointCalls(of: id, in: loads, on: shared.environment.executor))
    self.id = id
    self.endpoint = endpoint
    self.shared = shared
    self.observer = shared.environment.configuration.observer
    self.channel = channel
    self.nameResolution = channel.resolution.duration
    var seeds = SeededRandom(seed: seed)
    self.watches = EndpointWatches(in: shared, seed: seeds.next())
    self.pool = EndpointPool(
      in: shared,
      watches: self.watches,
      keepsConnection: keepsConnection,
      seed: seeds.next()
    )
    self.race = EndpointRace(
      endpoint.addresses,
      in: shared,
      pool: self.pool,
      seed: seed
    )
    self.pool.subchannel = self
    self.race.subchannel = self
    self.watches.subchannel = self
    if channel.isClosingWhenIdle { self.pool.update { $0.closeWhenIdle() } }
  }

  /// What the balancer sees.
  var balanced: BalancedEndpoint {
    var endpoint = BalancedEndpoint(
      id: self.id,
      endpoint: self.endpoint,
      state: self.race.state,
      lastError: self.race.lastError,
      isEjected: self.isEjected
    )
    guard endpoint.state == .ready else { return endpoint }
    endpoint.isConnected = true
    guard !self.pool.state.isSuspect else {
      endpoint.state = .connecting
      endpoint.isSuspect = true
      return endpoint
    }
    switch self.watches.health {
    case .healthy, nil: break
    case .unknown: endpoint.state = .connecting
    case .unhealthy(let reason):
      endpoint.state = .transientFailure
      endpoint.lastError = reason
    }
    return endpoint
  }

  /// Whether calls may start here, or wait for a connection with room. Otherwise they go to other endpoints, or wait for
  /// another connection to this one.
  var takesCalls: Bool { self.race.state == .ready && !self.pool.state.isSuspect }

  /// The version of HTTP that the server speaks; nil while there is no connection.
  var connectedVersion: HTTPConnectionInfo.Version? {
    self.race.state == .ready ? self.pool.state.growth.version : nil
  }

  /// How many calls there are.
  var callCount: Int { max(self.pool.state.connections.streamCount - self.watches.streamCount, 0) }

  // MARK: - Wishes of the channel

  /// The resolver has new attributes for the same endpoint.
  func update(_ endpoint: Endpoint, keepsConnection: Bool) {
    if keepsConnection != self.pool.state.growth.limits.keepsLast {
      self.pool.state.growth.limits.keepsLast = keepsConnection
      self.pool.update { $0.checkIdle(now: self.shared.environment.executor.now, isDue: false) }
    }
    guard endpoint != self.endpoint else { return }
    self.endpoint = endpoint
    self.race.update(endpoint.addresses)
  }

  /// The endpoint has left the list, or the channel becomes idle. Calls in flight may finish; waiting calls go back to
  /// the channel.
  func retire() {
    self.watches.stop()
    self.race.shutDown()
    self.giveBackWaiting()
    self.pool.update { $0.shutDown() }
  }

  // MARK: - Calls

  /// Starts a stream on a connection that has room; nil if there is none.
  ///
  /// - Parameter additions: What the pick adds to the call.
  func start(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    _ additions: PickAdditions? = nil
  ) -> (any HTTPStream)? {
    guard let (member, connection) = self.pool.lease() else { return nil }
    return self.start(request, handler, on: connection, of: member, additions)
  }

  /// Starts a call that has waited.
  func start(_ stream: WaitingStream) -> Bool {
    guard let (member, connection) = self.pool.lease() else { return false }
    self.start(stream, on: connection, of: member)
    return true
  }

  func start(_ stream: WaitingStream, on connection: any StreamConnection, of member: PooledConnection) {
    let additions = stream.additions
    let isStarted = stream.start {
      self.start($0, $1, on: connection, of: member, additions, waitingSince: stream.start)
    }
    if !isStarted { self.pool.giveBack(member) }
  }

  private func start(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    on connection: any StreamConnection,
    of member: PooledConnection,
    _ additions: PickAdditions?,
    waitingSince start: Duration? = nil
  ) -> any HTTPStream {
    if let authority = request.destination?.authority, let error = member.authorities?.refusal(of: authority)
    {
      self.pool.giveBack(member)
      return RefusedStream(error, handler, on: self.shared.environment.executor)
    }
    if let observer = self.observer {
      let waited = start.map { self.shared.environment.executor.now - $0 }
      let place = PickPlace(
        cluster: additions?.cluster ?? self.endpoint.cluster ?? self.shared.environment.cluster,
        zone: self.endpoint.zone(at: member.address),
        ownZone: self.shared.environment.configuration.zone
      )
      let event = ChannelEvent.picked(endpoint: member.name, waited: waited, place: place)
      observer.channel(to: self.shared.environment.origin, did: event)
    }
    if let tracker = self.counting.tracker, tracker.additions === additions {
      return tracker.start(request, handler, on: connection)
    }
    let tracker = self.counting.makeTracker(for: additions, to: self.endpoint, at: member.address)
    guard let additions, !additions.metadata.isEmpty else {
      return tracker?.start(request, handler, on: connection)
        ?? connection.startStream(request, handler: handler)
    }
    var added = request
    added.headers.append(contentsOf: additions.metadata)
    return tracker?.start(added, handler, on: connection)
      ?? connection.startStream(added, handler: handler)
  }

  private func giveBackWaiting() {
    let waiting = self.pool.state.takeWaiting()
    if !waiting.isEmpty { self.channel?.waiting.takeBack(waiting) }
  }

  // MARK: - Events of the race and the pool

  /// Begins an attempt to connect.
  func attempt(
    _ role: PooledConnection.Role,
    to address: EndpointAddress,
    of owner: any ConnectionOwner
  ) -> PooledConnection {
    let connection = PooledConnection(
      role,
      to: address,
      serverName: self.endpoint.serverName,
      cluster: self.endpoint.cluster ?? self.shared.environment.cluster,
      timeLimit: self.shared.environment.connectTimeout,
      nameResolution: self.nameResolution,
      owner: owner
    )
    // Later, so that an immediate failure does not reach a handler from within `startStream`.
    let opening = Confined((connection, self.shared.environment.opener), to: self.shared.environment.executor)
    self.shared.environment.executor.execute {
      let (connection, opener) = opening.value
      if connection.isWanted { opener.open(connection) }
    }
    return connection
  }

  func attemptFailed(_ failure: AddressFailure) {
    self.counters.failedAttempts += 1
    self.shared.environment.report(.connectionFailed(endpoint: failure.address.description, failure.error))
    self.shared.environment.logger.debug(
      "could not connect",
      metadata: [
        "origin": "\(self.shared.environment.origin)", "error": "\(String(reflecting: failure.error))",
      ]
    )
    self.race.note(failure)
  }

  func raceDidChange(_ state: ConnectivityState) {
    if state == .transientFailure { self.channel?.resolution.resolveAgain() }
    if state == .ready { self.watches.restart() }
    self.channel?.endpoints.needsUpdate()
  }

  /// It has become unknown, or known again, whether the server is still there.
  func suspicionDidChange(_ isSuspect: Bool) {
    self.channel?.endpoints.needsUpdate()
    self.race.setSuspect(isSuspect)
    if isSuspect { self.giveBackWaiting() }
  }

  func poolIsLost(_ error: ConnectError?) {
    self.watches.stop()
    if self.race.state != .shutdown { self.channel?.resolution.resolveAgain() }
    let hasServed = self.pool.hasServed
    if self.race.connectionLost(error, hasServed: hasServed), hasServed, self.callCount > 0,
      !self.pool.state.closesWhenIdle, !self.pool.state.growth.limits.isUnneeded
    {
      // Calls are being made: the next one need not wait for a connection.
      self.race.connect(isForCall: true)
    }
    self.giveBackWaiting()
  }
}
