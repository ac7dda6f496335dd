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
    fileprivate(set) var slot: Int
    fileprivate(set) var generation: UInt64
  }

  typealias Ticket = WaitingQueue<Waiter>.Ticket

  enum Phase {
    case vacant, opening, open, suspended, draining
  }

  struct Slot {
    var phase = Phase.vacant
    var generation: UInt64 = 0
    var connection: Connection?
    var version = HTTPConnectionInfo.Version.http1
    var streamLimit = 0
    var streams = 0
    /// How many streams it has had, with those that are open.
    var allStreams = 0
    var idleSince = Duration.zero
    /// Whether another connection should take its place.
    var isOld = false
  }

  enum Lifecycle {
    case running, shuttingDown, finished
  }

  var limits: Limits
  var quota = StreamQuota()
  /// Whether a connection has had its last stream just now, so that the next one is needed soon.
  var isSpareDue = false
  var slots: [Slot] = []
  /// Open HTTP/2 and HTTP/3 connections, few.
  var http2: [Int] = []
  /// HTTP/1.1 connections without a stream; the one used last is the last.
  var idleHTTP1: [Int] = []
  var waiting = WaitingQueue<Waiter>()
  var openingCount = 0
  var openCount = 0
  var suspendedCount = 0
  /// All streams that were started.
  var startedStreams = 0
  var occupiedCount = 0
  var nextGeneration: UInt64 = 0
  /// The version that the origin speaks, if known. New connections are planned for it.
  var version: HTTPConnectionInfo.Version?
  var failures = 0
  var isBackingOff = false
  /// Whether connections are opened for waiting calls while none is open.
  var opensWhenEmpty: Bool
  var isLost: Bool
  var isIdleCheckPending = false
  var closesWhenIdle = false
  var lifecycle = Lifecycle.running

  /// - Parameters:
  ///   - version: The version that connections will have; nil if the handshake tells.
  ///   - opensWhenEmpty: Whether the pool opens its first connection by itself.
  init(limits: Limits, version: HTTPConnectionInfo.Version?, opensWhenEmpty: Bool = false) {
    self.limits = limits
    self.version = version
    self.opensWhenEmpty = opensWhenEmpty
    self.isLost = !opensWhenEmpty
  }

  /// How many streams there are, on draining connections, too.
  var streamCount: Int { self.slots.reduce(0) { $0 + $1.streams } }

  /// Whether connections exist, but none that is known to work.
  var isSuspect: Bool { self.openCount == 0 && self.suspendedCount > 0 }

  // MARK: - Calls

  /// A connection for a new stream, which is counted at once; nil if the call has to wait.
  ///
  /// Prefers the HTTP/2 or HTTP/3 connection with the most streams, so that the others can become idle, and the
  /// HTTP/1.1 connection that was used last.
  mutating func leaseConnection() -> Connection? {
    guard case .running = self.lifecycle else { return nil }
    var best = -1
    var bestStreams = -1
    let quota = self.quota.value ?? .max
    for index in self.http2 {
      let streams = self.slots[index].streams
      if streams < self.slots[index].streamLimit, streams > bestStreams, self.slots[index].allStreams < quota
      {
        (best, bestStreams) = (index, streams)
      }
    }
    if best < 0, let idle = self.idleHTTP1.popLast() { best = idle }
    guard best >= 0 else { return nil }
    self.slots[best].streams += 1
    self.slots[best].allStreams &+= 1
    if self.slots[best].allStreams == quota { self.isSpareDue = true }
    self.startedStreams &+= 1
    return self.slots[best].connection
  }

  /// Opens a connection beside one that has had its last stream.
  mutating func openSpare() -> [Action] {
    self.isSpareDue = false
    let count = self.limits.connectionsToOpen(
      self.version,
      waiting: 1,
      opening: self.openingCount,
      open: self.openCount
    )
    let isNeeded = !self.isLost && !self.isBackingOff && !self.http2.contains { self.hasRoom($0) }
    return isNeeded && count > 0 ? [.open(self.occupy())] : []
  }

  /// Queues a call behind those that wait already.
  mutating func enqueue(_ waiter: Waiter) -> Enqueued {
    guard case .running = self.lifecycle else { return .shutDown }
    guard self.waiting.count < self.maximumWaiting else { return .tooMany }
    let ticket = self.waiting.append(waiter)
    var actions: [Action] = []
    self.openAsNeeded(&actions)
    return .waiting(ticket, actions)
  }

  /// How many calls may wait now: with those for which connections are being opened, or can be.
  var maximumWaiting: Int {
    self.limits.maximumWaiting(self.version, opening: self.openingCount, open: self.openCount)
  }

  /// The call does not wait any more.
  mutating func cancel(_ ticket: Ticket) -> [Action] {
    guard self.waiting.remove(ticket) != nil else { return [] }
    var actions: [Action] = []
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// Takes all calls that wait out of the pool.
  mutating func takeWaiting() -> [Waiter] {
    var waiters: [Waiter] = []
    while let waiter = self.waiting.popFirst() { waiters.append(waiter) }
    return waiters
  }

  // MARK: - Connections

  /// Changes how many HTTP/2 connections there may be. Those beyond stay until they are idle.
  mutating func allow(http2Connections: Int) -> [Action] {
    guard http2Connections != self.limits.http2Connections else { return [] }
    self.limits.http2Connections = http2Connections
    var actions: [Action] = []
    self.openAsNeeded(&actions)
    return actions
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
    let id = self.occupy()
    _ = self.connectionEstablished(id, connection, version: version)
    return (id, self.connection(id, canServe: streams, now: now))
  }

  /// The connection exists and its version is known; it takes no streams yet.
  mutating func connectionEstablished(
    _ id: ConnectionID,
    _ connection: Connection,
    version: HTTPConnectionInfo.Version
  ) -> [Action] {
    guard self.isCurrent(id), self.slots[id.slot].phase == .opening else { return [] }
    self.slots[id.slot].connection = connection
    self.slots[id.slot].version = version
    self.version = version
    return []
  }

  /// The connection takes this many streams at the same time.
  mutating func connection(_ id: ConnectionID, canServe streams: Int, now: Duration) -> [Action] {
    guard self.isCurrent(id), let connection = self.slots[id.slot].connection else { return [] }
    var actions: [Action] = []
    self.slots[id.slot].streamLimit = max(streams, 0)
    let isNew = self.slots[id.slot].phase == .opening
    switch self.slots[id.slot].phase {
    case .vacant, .draining, .suspended:
      return []
    case .open:
      guard self.slots[id.slot].version.isMultiplexed else { return [] }
    case .opening:
      self.openingCount -= 1
      self.openCount += 1
      self.failures = 0
      self.slots[id.slot].phase = .open
      self.slots[id.slot].idleSince = now
      self.drainOld(&actions)
      if self.slots[id.slot].version.isMultiplexed {
        guard self.http2.count < self.limits.http2Connections else {
          // The origin spoke HTTP/1.1 until now: many connections were opened, few are needed.
          self.startDraining(id.slot)
          actions.append(.drain(connection))
          return actions
        }
        self.http2.append(id.slot)
      }
      self.requestIdleCheck(after: self.limits.idleTimeout, &actions)
    }
    self.offer(id.slot, isNew: isNew, now: now, &actions)
    self.openAsNeeded(&actions)
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// One of the connection's streams has ended.
  mutating func streamClosed(_ id: ConnectionID, now: Duration) -> [Action] {
    guard self.isCurrent(id), self.slots[id.slot].streams > 0 else { return [] }
    self.slots[id.slot].streams -= 1
    guard self.slots[id.slot].phase == .open else { return [] }
    var actions: [Action] = []
    self.offer(id.slot, now: now, &actions)
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// The connection takes no more streams.
  ///
  /// - Parameter count: After how many streams the server renews the connection; nil if it has not said so.
  mutating func connectionWillClose(_ id: ConnectionID, after count: Int? = nil) -> [Action] {
    self.quota.connectionWasRenewed(after: count)
    // A connection that never served streams counts as a failed attempt once it is closed.
    guard self.isCurrent(id), self.slots[id.slot].phase == .open || self.slots[id.slot].phase == .suspended
    else { return [] }
    var actions: [Action] = []
    self.retire(id.slot, nil, &actions)
    self.openAsNeeded(&actions)
    return actions
  }

  /// The connection is old: it takes no more streams once another one is open.
  mutating func renew(_ id: ConnectionID) -> [Action] {
    guard self.isCurrent(id), self.slots[id.slot].phase == .open || self.slots[id.slot].phase == .suspended
    else { return [] }
    var actions: [Action] = []
    self.slots[id.slot].isOld = true
    if self.slots[id.slot].version == .http1, self.slots[id.slot].phase == .open,
      self.slots[id.slot].streams == 0
    {
      self.drain(id.slot, &actions)
    } else {
      self.replaceOld(&actions)
    }
    return actions
  }

  /// The connection takes no streams until it is resumed. Call ``openForWaiting()`` if that takes long.
  mutating func suspend(_ id: ConnectionID) {
    guard self.isCurrent(id), self.slots[id.slot].phase == .open else { return }
    self.startDraining(id.slot)
    self.slots[id.slot].phase = .suspended
    self.suspendedCount += 1
  }

  /// Opens connections in place of suspended ones if calls wait.
  mutating func openForWaiting() -> [Action] {
    var actions: [Action] = []
    self.openAsNeeded(&actions)
    return actions
  }

  /// The connection works.
  mutating func resume(_ id: ConnectionID, now: Duration) -> [Action] {
    guard self.isCurrent(id), self.slots[id.slot].phase == .suspended else { return [] }
    self.suspendedCount -= 1
    self.openCount += 1
    self.slots[id.slot].phase = .open
    if self.slots[id.slot].version.isMultiplexed { self.http2.append(id.slot) }
    var actions: [Action] = []
    self.offer(id.slot, now: now, &actions)
    self.replaceOld(&actions)
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// The connection is gone, or could not be opened. `error` is for the calls that waited for an attempt.
  mutating func connectionClosed(_ id: ConnectionID, error: ConnectError) -> [Action] {
    guard self.isCurrent(id) else { return [] }
    var actions: [Action] = []
    switch self.slots[id.slot].phase {
    case .vacant:
      return []
    case .opening:
      self.openingCount -= 1
      self.vacate(id.slot)
      self.attemptFailed(error, &actions)
    case .open, .suspended:
      self.retire(id.slot, error, &actions)
      self.vacate(id.slot)
    case .draining:
      self.vacate(id.slot)
    }
    self.openAsNeeded(&actions)
    self.drainIfShuttingDown(&actions)
    return actions
  }

  // MARK: - Time

  mutating func backoffDidElapse() -> [Action] {
    self.isBackingOff = false
    var actions: [Action] = []
    self.openAsNeeded(&actions)
    self.replaceOld(&actions)
    return actions
  }

  /// Closes the connections that have had no stream for the idle timeout.
  mutating func checkIdle(now: Duration) -> [Action] {
    self.isIdleCheckPending = false
    var actions: [Action] = []
    var next: Duration?
    for index in self.slots.indices where self.slots[index].phase == .open && self.slots[index].streams == 0 {
      let remaining = self.limits.idleTimeout - (now - self.slots[index].idleSince)
      if self.limits.keepsLast, self.slots[index].version.isMultiplexed, self.http2.count == 1 { continue }
      if remaining <= .zero, let connection = self.slots[index].connection {
        self.startDraining(index)
        actions.append(.drain(connection))
      } else {
        next = min(next ?? remaining, remaining)
      }
    }
    // A busy connection may become idle at any time; the check is then due one timeout later at the earliest.
    if let next { self.requestIdleCheck(after: next, &actions) }
    if !self.limits.keepsLast, self.openCount + self.suspendedCount + self.openingCount == 0, !actions.isEmpty
    {
      self.becomeLost(nil, &actions)
    }
    // A server may allow no streams at all, so that calls wait beside an idle connection.
    self.openAsNeeded(&actions)
    return actions
  }
}
