internal import Connect

/// What several events have in common.
extension ConnectionPool {
  func isCurrent(_ id: ConnectionID) -> Bool {
    self.slots.indices.contains(id.slot) && self.slots[id.slot].generation == id.generation
  }

  /// Starts waiting calls while the connection has room for streams. A connection without streams becomes idle.
  mutating func offer(_ index: Int, isNew: Bool = false, now: Duration, _ actions: inout [Action]) {
    if !self.waiting.isEmpty { self.startWaiting(on: index, &actions) }
    if self.slots[index].streams == 0 {
      if self.closesWhenIdle, !isNew {
        self.drain(index, &actions)
        self.checkIsLost(nil, &actions)
        return
      }
      self.slots[index].idleSince = now
      if self.slots[index].version == .http1 { self.idleHTTP1.append(index) }
      self.requestIdleCheck(after: self.limits.idleTimeout, &actions)
    }
  }

  private mutating func startWaiting(on index: Int, _ actions: inout [Action]) {
    guard let connection = self.slots[index].connection else { return }
    let id = ConnectionID(slot: index, generation: self.slots[index].generation)
    let isMultiplexed = self.slots[index].version.isMultiplexed
    // A server that has not renewed a connection that is idle by now has no quota.
    if isMultiplexed, self.slots[index].streams == 0, self.isSpent(index) { self.quota.wasWrong() }
    while isMultiplexed ? self.hasRoom(index) : self.slots[index].streams == 0,
      let waiter = self.waiting.popFirst()
    {
      self.slots[index].streams += 1
      self.slots[index].allStreams &+= 1
      self.startedStreams &+= 1
      actions.append(.start(waiter, on: connection, id))
    }
  }

  /// Whether the server is about to renew the connection, as far as is known.
  private func isSpent(_ index: Int) -> Bool {
    self.quota.value.map { self.slots[index].allStreams >= $0 } ?? false
  }

  /// Whether an HTTP/2 connection takes another stream.
  func hasRoom(_ index: Int) -> Bool {
    self.slots[index].streams < self.slots[index].streamLimit && !self.isSpent(index)
  }

  mutating func openAsNeeded(_ actions: inout [Action]) {
    guard !self.waiting.isEmpty, !self.isBackingOff, !self.isLost else { return }
    let count = self.limits.connectionsToOpen(
      self.version,
      waiting: self.waiting.count,
      opening: self.openingCount,
      open: self.openCount
    )
    for _ in 0..<count { actions.append(.open(self.occupy())) }
    if count == 0, self.openingCount == 0 { self.useSpent(&actions) }
  }

  /// No other connection can be opened, so that calls take their chance on those that the server is thought to renew.
  private mutating func useSpent(_ actions: inout [Action]) {
    guard self.http2.contains(where: { self.isSpent($0) }) else { return }
    self.quota.wasWrong()
    for index in self.http2 { self.startWaiting(on: index, &actions) }
  }

  mutating func occupy() -> ConnectionID {
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

  mutating func abandon(_ index: Int, _ error: ConnectError, _ actions: inout [Action]) {
    let id = ConnectionID(slot: index, generation: self.slots[index].generation)
    self.openingCount -= 1
    self.vacate(index)
    actions.append(.abandon(id, error))
  }

  mutating func drain(_ index: Int, _ actions: inout [Action]) {
    guard let connection = self.slots[index].connection else { return }
    self.startDraining(index)
    actions.append(.drain(connection))
  }

  /// Opens a connection to replace old ones, unless one is being opened.
  mutating func replaceOld(_ actions: inout [Action]) {
    guard case .running = self.lifecycle, !self.isLost, !self.isBackingOff, self.openingCount == 0,
      self.slots.contains(where: { $0.isOld && $0.phase == .open })
    else { return }
    if self.slots.contains(where: { $0.phase == .open && !$0.isOld }) {
      self.drainOld(&actions)
    } else {
      actions.append(.open(self.occupy()))
    }
  }

  /// Old connections take no more streams, since another connection replaces them.
  mutating func drainOld(_ actions: inout [Action]) {
    for index in self.slots.indices where self.slots[index].isOld && self.slots[index].phase == .open {
      self.drain(index, &actions)
    }
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
    for index in self.slots.indices {
      switch self.slots[index].phase {
      case .vacant, .draining: break
      case .opening: self.abandon(index, .connectionReplaced, &actions)
      case .open, .suspended: self.slots[index].isOld = true
      }
    }
    let (id, more) = self.adopt(connection, version: version, streams: streams, now: now)
    return (id, actions + more)
  }

  mutating func vacate(_ index: Int) {
    self.slots[index] = Slot()
    self.occupiedCount -= 1
  }

  mutating func startDraining(_ index: Int) {
    switch self.slots[index].phase {
    case .vacant, .opening, .draining: return
    case .open: self.openCount -= 1
    case .suspended: self.suspendedCount -= 1
    }
    self.slots[index].phase = .draining
    switch self.slots[index].version {
    case .http1: self.idleHTTP1.removeAll { $0 == index }
    case .http2, .http3: self.http2.removeAll { $0 == index }
    }
  }

  /// The connection takes no more streams, because of `error` if there is one.
  mutating func retire(_ index: Int, _ error: ConnectError?, _ actions: inout [Action]) {
    let wasSuspended = self.slots[index].phase == .suspended
    self.startDraining(index)
    if wasSuspended, self.openCount + self.suspendedCount == 0 {
      // The server did not answer, so these attempts may go on until the connect timeout.
      for other in self.slots.indices where self.slots[other].phase == .opening {
        self.abandon(other, .connectionReplaced, &actions)
      }
    }
    self.checkIsLost(error, &actions)
  }

  /// An attempt has failed. Beside an open connection, calls keep waiting. Without a backoff, another attempt would at
  /// once follow each failure.
  mutating func attemptFailed(_ error: ConnectError, _ actions: inout [Action]) {
    guard self.openCount + self.suspendedCount > 0 else {
      // The owner, which adopts connections, has its own backoff.
      for index in self.slots.indices where self.slots[index].phase == .opening {
        self.abandon(index, error, &actions)
      }
      self.becomeLost(error, &actions)
      return
    }
    self.useSpent(&actions)
    guard !self.isBackingOff else { return }
    self.failures += 1
    self.isBackingOff = true
    actions.append(.backOff(failures: self.failures))
  }

  /// - Parameter error: Why the last connection takes no more streams; nil if everything is in order.
  mutating func checkIsLost(_ error: ConnectError?, _ actions: inout [Action]) {
    guard self.openCount + self.suspendedCount + self.openingCount == 0, !self.opensWhenEmpty else { return }
    self.becomeLost(error, &actions)
  }

  mutating func becomeLost(_ error: ConnectError?, _ actions: inout [Action]) {
    guard !self.isLost else { return }
    self.isLost = true
    actions.append(.lost(error))
  }

  mutating func requestIdleCheck(after delay: Duration, _ actions: inout [Action]) {
    guard !self.isIdleCheckPending, delay < .longest else { return }
    self.isIdleCheckPending = true
    actions.append(.checkIdle(after: delay))
  }

  /// While shutting down: once no call waits, abandons attempts to connect and drains connections. Reports the end when no
  /// connection is left.
  mutating func drainIfShuttingDown(_ actions: inout [Action]) {
    guard case .shuttingDown = self.lifecycle, self.waiting.isEmpty else { return }
    for index in self.slots.indices {
      switch self.slots[index].phase {
      case .vacant, .draining:
        break
      case .opening: self.abandon(index, .clientShutDown, &actions)
      case .open, .suspended: self.drain(index, &actions)
      }
    }
    if self.occupiedCount == 0 {
      self.lifecycle = .finished
      actions.append(.finished)
    }
  }
}
