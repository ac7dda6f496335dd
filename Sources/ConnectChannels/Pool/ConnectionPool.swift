internal import Connect

/// The state of the connections to one address and of the calls that wait for one. Events go in, actions come out;
/// it does no I/O, knows no clock and calls nobody.
///
/// The first connection is adopted. From then on the pool opens more as calls need them. It opens an HTTP/2 connection,
/// one at a time, when the others have as many streams as the server allows (gRFC A105). It opens an HTTP/1.1
/// connection for each waiting call. Once it has none and opens none, it is lost until another one is adopted.
///
/// A connection goes through these phases:
///
///     opening ──► open ◄──► suspended
///        │          │            │
///        │          └► draining ◄┘
///        └──────────────┴──────────────► (gone)
///
/// It is opening until it says for the first time how many streams it can serve. A draining connection
/// finishes its streams; it takes no new ones and no longer counts against the limits. A suspended one takes none until it has
/// shown that its server is still there.
///
/// Between events, nobody waits while an open connection has room for another stream.
struct ConnectionPool<Connection, Waiter> {
  /// Identifies a connection; never used again for another connection.
  struct ConnectionID: Hashable, Sendable {
    let slot: Int
    let generation: UInt64
  }

  typealias Handle = WaitingQueue<Waiter>.Handle

  enum Lifecycle {
    case running, shuttingDown, finished
  }

  var growth: Growth
  var connections = Connections()
  var waiting = WaitingQueue<Waiter>()
  /// Whether connections are opened for waiting calls while none is open.
  var opensWhenEmpty: Bool
  var isLost: Bool
  var closesWhenIdle = false
  var lifecycle = Lifecycle.running

  /// - Parameters:
  ///   - version: The version that connections will have; nil if the handshake tells.
  ///   - opensWhenEmpty: Whether the pool opens its first connection by itself.
  init(limits: Limits, version: HTTPConnectionInfo.Version?, opensWhenEmpty: Bool = false) {
    self.growth = Growth(limits: limits, version: version)
    self.opensWhenEmpty = opensWhenEmpty
    self.isLost = !opensWhenEmpty
  }

  /// Whether connections exist, but none that is known to work.
  var isSuspect: Bool { !self.connections.contains(.open) && self.connections.contains(.suspended) }

  // MARK: - Calls

  /// A connection for a new stream, which is counted at once; nil if the call has to wait.
  mutating func leaseConnection() -> Connection? {
    guard case .running = self.lifecycle else { return nil }
    return self.connections.lease()
  }

  /// Opens a connection beside one that has had its last stream.
  mutating func openSpare() -> [Action] {
    self.connections.isSpareDue = false
    let isNeeded =
      !self.isLost && !self.growth.isBackingOff
      && !self.connections.http2.contains { self.connections.hasRoom($0) }
      && self.growth.connectionsToOpen(waiting: 1, self.connections) > 0
    return isNeeded ? [.open(self.connections.occupy())] : []
  }

  /// Queues a call behind those that wait already.
  mutating func enqueue(_ waiter: Waiter) -> Enqueued {
    guard case .running = self.lifecycle else { return .shutDown }
    guard self.waiting.count < self.growth.maximumWaiting(self.connections) else { return .tooMany }
    let handle = self.waiting.append(waiter)
    return .waiting(handle, self.openForWaiting())
  }

  /// The call does not wait any more.
  mutating func cancel(_ handle: Handle) -> [Action] {
    guard self.waiting.remove(handle) != nil else { return [] }
    var actions: [Action] = []
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// Takes all calls that wait out of the pool.
  mutating func takeWaiting() -> [Waiter] { self.waiting.takeAll() }

  // MARK: - Connections

  /// Changes how many HTTP/2 connections there may be. Those beyond stay until they are idle.
  mutating func allow(http2Connections: Int) -> [Action] {
    guard http2Connections != self.growth.limits.http2Connections else { return [] }
    self.growth.limits.http2Connections = http2Connections
    return self.openForWaiting()
  }

  /// Adopts a connection that was opened elsewhere and takes this many streams.
  mutating func adopt(
    _ connection: Connection,
    version: HTTPConnectionInfo.Version,
    streams: Int,
    now: Duration
  ) -> (ConnectionID, [Action]) {
    self.isLost = false
    // A server with HTTP/1.1 closes idle connections as a matter of course; that says nothing of the next one.
    self.opensWhenEmpty = version == .http1
    let id = self.connections.occupy()
    _ = self.connectionEstablished(id, connection, version: version)
    return (id, self.connection(id, canServe: streams, now: now))
  }

  /// Puts a connection of a better version in the place of all others, so that it serves all calls. Attempts to connect
  /// are given up; open connections take no more streams.
  mutating func replaceAll(
    with connection: Connection,
    version: HTTPConnectionInfo.Version,
    streams: Int,
    now: Duration
  ) -> (ConnectionID, [Action]) {
    var actions: [Action] = []
    self.connections.abandonAttempts(.connectionReplaced, &actions)
    for index in self.connections.slots.indices where self.connections[index].phase.isEstablished {
      self.connections[index].isOld = true
    }
    let (id, more) = self.adopt(connection, version: version, streams: streams, now: now)
    return (id, actions + more)
  }

  /// The connection exists and its version is known; it takes no streams yet.
  mutating func connectionEstablished(
    _ id: ConnectionID,
    _ connection: Connection,
    version: HTTPConnectionInfo.Version
  ) -> [Action] {
    guard self.connections.phase(of: id) == .opening else { return [] }
    self.connections[id.slot].connection = connection
    self.connections[id.slot].version = version
    self.growth.version = version
    return []
  }

  /// The connection takes this many streams at the same time.
  mutating func connection(_ id: ConnectionID, canServe streams: Int, now: Duration) -> [Action] {
    guard let phase = self.connections.phase(of: id), self.connections[id.slot].connection != nil else {
      return []
    }
    let isMultiplexed = self.connections[id.slot].version.isMultiplexed
    var actions: [Action] = []
    self.connections[id.slot].streamLimit = max(streams, 0)
    switch phase {
    case .vacant, .draining, .suspended:
      return []
    case .open:
      guard isMultiplexed else { return [] }
    case .opening:
      self.growth.failures = 0
      self.connections[id.slot].idleSince = now
      self.connections.drainOld(&actions)
      let isNeeded =
        !isMultiplexed || self.connections.http2.count < self.growth.limits.http2Connections
      self.connections.open(id.slot)
      guard isNeeded else {
        // The origin spoke HTTP/1.1 until now: many connections were opened, few are needed.
        self.connections.drain(id.slot, &actions)
        return actions
      }
      self.connections.requestIdleCheck(after: self.growth.limits.idleTimeout, &actions)
    }
    self.offer(id.slot, isNew: phase == .opening, now: now, &actions)
    actions += self.openForWaiting()
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// One of the connection's streams has ended.
  mutating func streamClosed(_ id: ConnectionID, now: Duration) -> [Action] {
    guard let phase = self.connections.phase(of: id), self.connections[id.slot].streams > 0 else { return [] }
    self.connections[id.slot].streams -= 1
    guard phase == .open else { return [] }
    var actions: [Action] = []
    self.offer(id.slot, now: now, &actions)
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// The connection takes no more streams.
  ///
  /// - Parameter count: After how many streams the server renews the connection; nil if it has not said so.
  mutating func connectionWillClose(_ id: ConnectionID, after count: Int? = nil) -> [Action] {
    self.connections.quota.connectionWasRenewed(after: count)
    // A connection that never served streams counts as a failed attempt once it is closed.
    guard self.connections.phase(of: id)?.isEstablished == true else { return [] }
    var actions: [Action] = []
    self.retire(id.slot, nil, &actions)
    actions += self.openForWaiting()
    return actions
  }

  /// The connection is old: it takes no more streams once another one is open.
  mutating func renew(_ id: ConnectionID) -> [Action] {
    guard self.connections.phase(of: id)?.isEstablished == true else { return [] }
    var actions: [Action] = []
    self.connections[id.slot].isOld = true
    let slot = self.connections[id.slot]
    if slot.version == .http1, slot.phase == .open, slot.streams == 0 {
      self.connections.drain(id.slot, &actions)
    } else {
      self.replaceOld(&actions)
    }
    return actions
  }

  /// The connection takes no streams until it is resumed. Call ``openForWaiting()`` if that takes long.
  mutating func suspend(_ id: ConnectionID) {
    guard self.connections.phase(of: id) == .open else { return }
    self.connections.close(id.slot, as: .suspended)
  }

  /// Opens connections for calls that wait, in place of suspended ones.
  mutating func openForWaiting() -> [Action] {
    guard !self.waiting.isEmpty, !self.growth.isBackingOff, !self.isLost else { return [] }
    let count = self.growth.connectionsToOpen(waiting: self.waiting.count, self.connections)
    var actions = (0..<count).map { _ in Action.open(self.connections.occupy()) }
    if count == 0, !self.connections.contains(.opening) { self.useSpent(&actions) }
    return actions
  }

  /// The connection works.
  mutating func resume(_ id: ConnectionID, now: Duration) -> [Action] {
    guard self.connections.phase(of: id) == .suspended else { return [] }
    self.connections.open(id.slot)
    var actions: [Action] = []
    self.offer(id.slot, now: now, &actions)
    self.replaceOld(&actions)
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// The connection is gone, or could not be opened. `error` is for the calls that waited for an attempt.
  mutating func connectionClosed(_ id: ConnectionID, error: ConnectError) -> [Action] {
    guard let phase = self.connections.phase(of: id) else { return [] }
    var actions: [Action] = []
    if phase == .open || phase == .suspended { self.retire(id.slot, error, &actions) }
    self.connections[id.slot] = Slot()
    if phase == .opening { self.attemptFailed(error, &actions) }
    actions += self.openForWaiting()
    self.drainIfShuttingDown(&actions)
    return actions
  }

  // MARK: - Time

  mutating func backoffDidElapse() -> [Action] {
    self.growth.isBackingOff = false
    var actions = self.openForWaiting()
    self.replaceOld(&actions)
    return actions
  }

  /// Closes the connections that have had no stream for the idle timeout.
  ///
  /// - Parameter isDue: Whether the time of ``Action/checkIdle(after:)`` is over. Otherwise that check is still to come.
  mutating func checkIdle(now: Duration, isDue: Bool = true) -> [Action] {
    if isDue { self.connections.isIdleCheckPending = false }
    var actions: [Action] = []
    self.connections.drainIdle(self.growth.limits, now: now, &actions)
    if !self.growth.limits.keepsLastNow, self.connections.areGone, !actions.isEmpty {
      self.becomeLost(nil, &actions)
    }
    // A server may allow no streams at all, so that calls wait beside an idle connection.
    actions += self.openForWaiting()
    return actions
  }
}
