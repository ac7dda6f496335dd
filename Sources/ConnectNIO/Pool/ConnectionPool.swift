internal import Connect

/// The state of an endpoint's connections and of the calls that wait for one. Events go in, actions come out;
/// it does no I/O, knows no clock and calls nobody.
///
/// A connection goes through these phases:
///
///     opening ──► open ──► draining ──► (gone)
///        └────────────┴─────────────────► (gone)
///
/// It is opening until it says for the first time how many streams it can serve. A draining connection
/// finishes its streams; it takes no new ones and no longer counts against the limits.
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
    case vacant, opening, open, draining
  }

  struct Slot {
    var phase = Phase.vacant
    var generation: UInt64 = 0
    var connection: Connection?
    var version = HTTPConnectionInfo.Version.http1
    var streamLimit = 0
    var streams = 0
    var idleSince = Duration.zero
  }

  private enum Lifecycle {
    case running, shuttingDown, finished
  }

  private var limits: Limits
  private(set) var slots: [Slot] = []
  /// Open HTTP/2 connections, few.
  private var http2: [Int] = []
  /// HTTP/1.1 connections without a stream; the one used last is the last.
  private var idleHTTP1: [Int] = []
  private(set) var waiting = WaitingQueue<Waiter>()
  private(set) var openingCount = 0
  private(set) var openCount = 0
  private var occupiedCount = 0
  private var nextGeneration: UInt64 = 0
  /// What the origin speaks, if that is known; then also the version to plan for.
  private var version: HTTPConnectionInfo.Version?
  private var failures = 0
  private var isBackingOff = false
  private var isIdleCheckPending = false
  private var closesWhenIdle = false
  private var lifecycle = Lifecycle.running

  /// - Parameter version: The version that connections will have; nil if the handshake tells.
  init(limits: Limits, version: HTTPConnectionInfo.Version?) {
    self.limits = limits
    self.version = version
  }

  var isShutDown: Bool {
    if case .running = self.lifecycle { false } else { true }
  }

  // MARK: - Calls

  /// A connection for a new stream, which is counted at once; nil if the call has to wait.
  ///
  /// Prefers the HTTP/2 connection with the most streams, so that the others can become idle, and the
  /// HTTP/1.1 connection that was used last.
  mutating func leaseConnection() -> Connection? {
    guard case .running = self.lifecycle else { return nil }
    var best = -1
    var bestStreams = -1
    for index in self.http2 {
      let streams = self.slots[index].streams
      if streams < self.slots[index].streamLimit, streams > bestStreams {
        (best, bestStreams) = (index, streams)
      }
    }
    if best < 0, let idle = self.idleHTTP1.popLast() { best = idle }
    guard best >= 0 else { return nil }
    self.slots[best].streams += 1
    return self.slots[best].connection
  }

  /// Puts a call behind those that wait already.
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

  // MARK: - Connections

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
    switch self.slots[id.slot].phase {
    case .vacant, .draining:
      return []
    case .open:
      guard self.slots[id.slot].version == .http2 else { return [] }
    case .opening:
      self.openingCount -= 1
      self.openCount += 1
      self.failures = 0
      self.slots[id.slot].phase = .open
      self.slots[id.slot].idleSince = now
      if self.slots[id.slot].version == .http2 {
        guard self.http2.count < self.limits.http2Connections else {
          // An origin that spoke HTTP/1.1 until now: many were opened, few are needed.
          self.startDraining(id.slot)
          actions.append(.drain(connection))
          return actions
        }
        self.http2.append(id.slot)
      }
      self.requestIdleCheck(after: self.limits.idleTimeout, &actions)
    }
    self.offer(id.slot, now: now, &actions)
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
  mutating func connectionWillClose(_ id: ConnectionID) -> [Action] {
    // A connection that never served streams counts as a failed attempt once it is closed.
    guard self.isCurrent(id), self.slots[id.slot].phase == .open else { return [] }
    var actions: [Action] = []
    self.startDraining(id.slot)
    self.openAsNeeded(&actions)
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
    case .open:
      self.startDraining(id.slot)
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
    return actions
  }

  /// Closes the connections that have had no stream for the idle timeout.
  mutating func checkIdle(now: Duration) -> [Action] {
    self.isIdleCheckPending = false
    var actions: [Action] = []
    var next: Duration?
    for index in self.slots.indices where self.slots[index].phase == .open && self.slots[index].streams == 0 {
      let remaining = self.limits.idleTimeout - (now - self.slots[index].idleSince)
      if remaining <= .zero, let connection = self.slots[index].connection {
        self.startDraining(index)
        actions.append(.drain(connection))
      } else {
        next = min(next ?? remaining, remaining)
      }
    }
    // A busy connection may become idle at any time; the check is then due one timeout later at the earliest.
    if let next { self.requestIdleCheck(after: next, &actions) }
    // A server may allow no streams at all, so that calls wait beside an idle connection.
    self.openAsNeeded(&actions)
    return actions
  }

  // MARK: - The end

  /// Connections close as soon as they have no streams. New calls are still served.
  mutating func closeWhenIdle() -> [Action] {
    self.closesWhenIdle = true
    var actions: [Action] = []
    for index in self.slots.indices where self.slots[index].phase == .open && self.slots[index].streams == 0 {
      guard let connection = self.slots[index].connection else { continue }
      self.startDraining(index)
      actions.append(.drain(connection))
    }
    self.openAsNeeded(&actions)
    return actions
  }

  /// No new calls; those that wait or run are finished, then everything is closed.
  mutating func shutDown() -> [Action] {
    guard case .running = self.lifecycle else { return [] }
    self.lifecycle = .shuttingDown
    var actions: [Action] = []
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// Ends what a shutdown has left.
  mutating func forceShutDown(_ error: ConnectError) -> [Action] {
    if case .finished = self.lifecycle { return [] }
    self.lifecycle = .shuttingDown
    var actions: [Action] = []
    while let waiter = self.waiting.popFirst() { actions.append(.fail(waiter, error)) }
    self.drainIfShuttingDown(&actions)
    for index in self.slots.indices {
      switch self.slots[index].phase {
      case .open, .draining:
        if let connection = self.slots[index].connection { actions.append(.close(connection, error)) }
      case .vacant, .opening:
        break
      }
    }
    return actions
  }
}

// MARK: - Steps

extension ConnectionPool {
  private func isCurrent(_ id: ConnectionID) -> Bool {
    self.slots.indices.contains(id.slot) && self.slots[id.slot].generation == id.generation
  }

  /// Starts waiting calls while the connection has room for streams. A connection without streams becomes idle.
  private mutating func offer(_ index: Int, now: Duration, _ actions: inout [Action]) {
    guard let connection = self.slots[index].connection else { return }
    let id = ConnectionID(slot: index, generation: self.slots[index].generation)
    while self.slots[index].streams < self.slots[index].streamLimit, let waiter = self.waiting.popFirst() {
      self.slots[index].streams += 1
      actions.append(.start(waiter, on: connection, id))
    }
    if self.slots[index].streams == 0 {
      if self.closesWhenIdle {
        self.startDraining(index)
        actions.append(.drain(connection))
        return
      }
      self.slots[index].idleSince = now
      if self.slots[index].version == .http1 { self.idleHTTP1.append(index) }
      self.requestIdleCheck(after: self.limits.idleTimeout, &actions)
    }
  }

  private mutating func openAsNeeded(_ actions: inout [Action]) {
    guard !self.waiting.isEmpty, !self.isBackingOff else { return }
    let count = self.limits.connectionsToOpen(
      self.version,
      waiting: self.waiting.count,
      opening: self.openingCount,
      open: self.openCount
    )
    for _ in 0..<count { actions.append(.open(self.occupy())) }
  }

  private mutating func occupy() -> ConnectionID {
    self.nextGeneration += 1
    let slot = Slot(phase: .opening, generation: self.nextGeneration)
    self.openingCount += 1
    self.occupiedCount += 1
    if let index = self.slots.firstIndex(where: { $0.phase == .vacant }) {
      self.slots[index] = slot
      return ConnectionID(slot: index, generation: self.nextGeneration)
    }
    self.slots.append(slot)
    return ConnectionID(slot: self.slots.count - 1, generation: self.nextGeneration)
  }

  private mutating func vacate(_ index: Int) {
    self.slots[index] = Slot()
    self.occupiedCount -= 1
  }

  private mutating func startDraining(_ index: Int) {
    guard self.slots[index].phase == .open else { return }
    self.slots[index].phase = .draining
    self.openCount -= 1
    switch self.slots[index].version {
    case .http1: self.idleHTTP1.removeAll { $0 == index }
    case .http2: self.http2.removeAll { $0 == index }
    }
  }

  /// Fails waiting calls that no pending connection can serve: all if none is pending, else the oldest surplus. Calls that
  /// an open connection will serve go on waiting.
  private mutating func attemptFailed(_ error: ConnectError, _ actions: inout [Action]) {
    if self.openCount == 0 {
      while self.waiting.count > self.openingCount, let waiter = self.waiting.popFirst() {
        actions.append(.fail(waiter, error))
      }
    }
    // Beside an open connection calls go on waiting, and each attempt that fails would at once be followed by another.
    guard self.openingCount == 0 || self.openCount > 0, !self.isBackingOff else { return }
    self.failures += 1
    // Nothing after the first failure, then 50 ms, 100 ms and so on to one second.
    guard self.failures > 1 else { return }
    self.isBackingOff = true
    actions.append(.backOff(.milliseconds(min(50 << min(self.failures - 2, 5), 1_000))))
  }

  private mutating func requestIdleCheck(after delay: Duration, _ actions: inout [Action]) {
    guard !self.isIdleCheckPending, !self.closesWhenIdle else { return }
    self.isIdleCheckPending = true
    actions.append(.checkIdle(after: delay))
  }

  /// While shutting down: once no call waits, abandons attempts to connect and drains connections. Reports the end when no
  /// connection is left.
  private mutating func drainIfShuttingDown(_ actions: inout [Action]) {
    guard case .shuttingDown = self.lifecycle, self.waiting.isEmpty else { return }
    for index in self.slots.indices {
      switch self.slots[index].phase {
      case .vacant, .draining:
        break
      case .opening:
        let id = ConnectionID(slot: index, generation: self.slots[index].generation)
        self.openingCount -= 1
        self.vacate(index)
        actions.append(.abandon(id, .clientShutDown))
      case .open:
        guard let connection = self.slots[index].connection else { continue }
        self.startDraining(index)
        actions.append(.drain(connection))
      }
    }
    if self.occupiedCount == 0 {
      self.lifecycle = .finished
      actions.append(.finished)
    }
  }
}
