internal import Connect

extension ConnectionPool {
  enum Phase {
    case vacant, opening, open, suspended, draining

    /// Whether the connection takes streams, or may take streams again.
    var isEstablished: Bool { self == .open || self == .suspended }
  }

  struct Slot {
    var phase = Phase.vacant
    fileprivate(set) var generation: UInt64 = 0
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

  /// The connections of a pool, each in a slot, and which of them gets the next stream.
  struct Connections {
    private(set) var slots: [Slot] = []
    /// Open HTTP/2 and HTTP/3 connections, few.
    private(set) var http2: [Int] = []
    /// HTTP/1.1 connections without a stream; the one used last is the last.
    private var idleHTTP1: [Int] = []
    var quota = StreamQuota()
    /// Whether a connection has had its last stream just now, so that the next one is needed soon.
    var isSpareDue = false
    /// All streams that were started.
    private(set) var startedStreams = 0
    private var nextGeneration: UInt64 = 0
    /// Whether a check was requested whose time is not over.
    var isIdleCheckPending = false

    // In place: a copy of a slot would be one of its connection, too.
    subscript(index: Int) -> Slot {
      _read { yield self.slots[index] }
      _modify { yield &self.slots[index] }
    }

    /// The phase of a connection; nil if it is gone.
    func phase(of id: ConnectionID) -> Phase? {
      guard self.slots.indices.contains(id.slot), self.slots[id.slot].generation == id.generation else {
        return nil
      }
      return self.slots[id.slot].phase
    }

    func count(_ phase: Phase) -> Int { self.slots.count { $0.phase == phase } }

    func contains(_ phase: Phase) -> Bool { self.slots.contains { $0.phase == phase } }

    /// Whether a connection takes streams, or may take streams again.
    var areEstablished: Bool { self.slots.contains { $0.phase.isEstablished } }

    /// Whether there is no connection for new streams, and none is being opened.
    var areGone: Bool { !self.areEstablished && !self.contains(.opening) }

    /// How many streams there are, on draining connections, too.
    var streamCount: Int { self.slots.reduce(0) { $0 + $1.streams } }

    // MARK: - Streams

    /// A connection for a new stream, which is counted at once; nil if none has room.
    ///
    /// Prefers the HTTP/2 or HTTP/3 connection with the most streams, so that the others can become idle, and the
    /// HTTP/1.1 connection that was used last.
    mutating func lease() -> Connection? {
      var best = -1
      var bestStreams = -1
      let quota = self.quota.value ?? .max
      for index in self.http2 {
        let streams = self.slots[index].streams
        if streams < self.slots[index].streamLimit, streams > bestStreams,
          self.slots[index].allStreams < quota
        {
          (best, bestStreams) = (index, streams)
        }
      }
      if best < 0, let idle = self.idleHTTP1.popLast() { best = idle }
      guard best >= 0 else { return nil }
      self.countStream(best)
      if self.slots[best].allStreams == quota { self.isSpareDue = true }
      return self.slots[best].connection
    }

    private mutating func countStream(_ index: Int) {
      self.slots[index].streams += 1
      self.slots[index].allStreams &+= 1
      self.startedStreams &+= 1
    }

    /// Starts calls while the connection has room for streams.
    mutating func start(
      _ waiting: inout WaitingQueue<Waiter>,
      on index: Int,
      _ actions: inout [Action]
    ) {
      guard let connection = self.slots[index].connection else { return }
      let id = ConnectionID(slot: index, generation: self.slots[index].generation)
      let isMultiplexed = self.slots[index].version.isMultiplexed
      // A server that has not renewed a connection that is idle by now has no quota.
      if isMultiplexed, self.slots[index].streams == 0, self.isSpent(index) { self.quota.wasWrong() }
      while isMultiplexed ? self.hasRoom(index) : self.slots[index].streams == 0,
        let waiter = waiting.popFirst()
      {
        self.countStream(index)
        actions.append(.start(waiter, on: connection, id))
      }
    }

    /// Whether the server is about to renew the connection, as far as is known.
    func isSpent(_ index: Int) -> Bool {
      self.quota.value.map { self.slots[index].allStreams >= $0 } ?? false
    }

    /// Whether an HTTP/2 connection takes another stream.
    func hasRoom(_ index: Int) -> Bool {
      self.slots[index].streams < self.slots[index].streamLimit && !self.isSpent(index)
    }

    // MARK: - Phases

    mutating func occupy() -> ConnectionID {
      self.nextGeneration += 1
      let slot = Slot(phase: .opening, generation: self.nextGeneration)
      if let index = self.slots.firstIndex(where: { $0.phase == .vacant }) {
        self.slots[index] = slot
        return ConnectionID(slot: index, generation: self.nextGeneration)
      }
      self.slots.append(slot)
      return ConnectionID(slot: self.slots.count - 1, generation: self.nextGeneration)
    }

    /// The connection takes streams from now on.
    mutating func open(_ index: Int) {
      self.slots[index].phase = .open
      if self.slots[index].version.isMultiplexed { self.http2.append(index) }
    }

    /// The connection takes no streams from now on.
    mutating func close(_ index: Int, as phase: Phase) {
      self.slots[index].phase = phase
      self.http2.removeAll { $0 == index }
      self.idleHTTP1.removeAll { $0 == index }
    }

    mutating func drain(_ index: Int, _ actions: inout [Action]) {
      guard let connection = self.slots[index].connection else { return }
      self.close(index, as: .draining)
      actions.append(.drain(connection))
    }

    mutating func drain(where isMeant: (Slot) -> Bool, _ actions: inout [Action]) {
      for index in self.slots.indices where isMeant(self.slots[index]) { self.drain(index, &actions) }
    }

    /// Old connections take no more streams once another connection can replace them.
    mutating func drainOld(_ actions: inout [Action]) {
      self.drain(where: { $0.isOld && $0.phase == .open }, &actions)
    }

    /// Gives up all attempts to connect.
    mutating func abandonAttempts(_ error: ConnectError, _ actions: inout [Action]) {
      for index in self.slots.indices where self.slots[index].phase == .opening {
        actions.append(.abandon(ConnectionID(slot: index, generation: self.slots[index].generation), error))
        self.slots[index] = Slot()
      }
    }

    // MARK: - Idle connections

    /// The connection has no stream.
    mutating func becameIdle(_ index: Int, now: Duration) {
      self.slots[index].idleSince = now
      if self.slots[index].version == .http1 { self.idleHTTP1.append(index) }
    }

    mutating func requestIdleCheck(after delay: Duration, _ actions: inout [Action]) {
      guard !self.isIdleCheckPending, delay < .longest else { return }
      self.isIdleCheckPending = true
      actions.append(.checkIdle(after: delay))
    }

    /// Drains the connections that have had no stream for the idle timeout.
    mutating func drainIdle(_ limits: Limits, now: Duration, _ actions: inout [Action]) {
      var next: Duration?
      for index in self.slots.indices
      where self.slots[index].phase == .open && self.slots[index].streams == 0 {
        let remaining = limits.idleTimeout - (now - self.slots[index].idleSince)
        if limits.keepsLastNow, self.slots[index].version.isMultiplexed, self.http2.count == 1 { continue }
        if remaining <= .zero {
          self.drain(index, &actions)
        } else {
          next = min(next ?? remaining, remaining)
        }
      }
      // A busy connection may become idle at any time; the check is then due one timeout later at the earliest.
      if let next { self.requestIdleCheck(after: next, &actions) }
    }
  }
}
