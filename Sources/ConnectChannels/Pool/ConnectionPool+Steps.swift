internal import Connect

/// What several events have in common.
extension ConnectionPool {
  /// Starts waiting calls while the connection has room for streams. A connection without streams becomes idle.
  mutating func offer(_ index: Int, isNew: Bool = false, now: Duration, _ actions: inout [Action]) {
    if !self.waiting.isEmpty { self.connections.start(&self.waiting, on: index, &actions) }
    guard self.connections[index].streams == 0 else { return }
    if self.closesWhenIdle, !isNew {
      self.connections.drain(index, &actions)
      self.checkIsLost(nil, &actions)
    } else {
      self.connections.becameIdle(index, now: now)
      self.connections.requestIdleCheck(after: self.growth.limits.idleTimeout, &actions)
    }
  }

  /// No other connection can be opened, so that calls try those that the server is thought to renew.
  mutating func useSpent(_ actions: inout [Action]) {
    guard self.connections.http2.contains(where: { self.connections.isSpent($0) }) else { return }
    self.connections.quota.wasWrong()
    for index in self.connections.http2 { self.connections.start(&self.waiting, on: index, &actions) }
  }

  /// Opens a connection to replace old ones, unless one is being opened.
  mutating func replaceOld(_ actions: inout [Action]) {
    guard case .running = self.lifecycle, !self.isLost, !self.growth.isBackingOff,
      !self.connections.contains(.opening),
      self.connections.slots.contains(where: { $0.isOld && $0.phase == .open })
    else { return }
    if self.connections.slots.contains(where: { !$0.isOld && $0.phase == .open }) {
      self.connections.drainOld(&actions)
    } else {
      actions.append(.open(self.connections.occupy()))
    }
  }

  /// The connection takes no more streams, because of `error` if there is one.
  mutating func retire(_ index: Int, _ error: ConnectError?, _ actions: inout [Action]) {
    let wasSuspended = self.connections[index].phase == .suspended
    self.connections.close(index, as: .draining)
    if wasSuspended, !self.connections.areEstablished {
      // The server did not answer, so these attempts may go on until the connect timeout.
      self.connections.abandonAttempts(.connectionReplaced, &actions)
    }
    self.checkIsLost(error, &actions)
  }

  /// An attempt has failed. Beside an open connection, calls keep waiting.
  mutating func attemptFailed(_ error: ConnectError, _ actions: inout [Action]) {
    if self.connections.areEstablished {
      self.useSpent(&actions)
      self.growth.attemptFailed(&actions)
    } else {
      // The owner, which adopts connections, has its own backoff.
      self.connections.abandonAttempts(error, &actions)
      self.becomeLost(error, &actions)
    }
  }

  /// - Parameter error: Why the last connection takes no more streams; nil if everything is in order.
  mutating func checkIsLost(_ error: ConnectError?, _ actions: inout [Action]) {
    if self.connections.areGone, !self.opensWhenEmpty { self.becomeLost(error, &actions) }
  }

  mutating func becomeLost(_ error: ConnectError?, _ actions: inout [Action]) {
    guard !self.isLost else { return }
    self.isLost = true
    actions.append(.lost(error))
  }

  // MARK: - The end

  /// All open connections take no more streams. The pool is lost.
  mutating func drainAll() -> [Action] {
    var actions: [Action] = []
    self.connections.abandonAttempts(.connectionReplaced, &actions)
    self.connections.drain(where: \.phase.isEstablished, &actions)
    self.becomeLost(nil, &actions)
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// Connections close as soon as they have no streams. New calls are still served.
  mutating func closeWhenIdle() -> [Action] {
    self.closesWhenIdle = true
    var actions: [Action] = []
    self.connections.drain(where: { $0.phase == .open && $0.streams == 0 }, &actions)
    self.checkIsLost(nil, &actions)
    return actions + self.openForWaiting()
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
    var actions: [Action] = self.waiting.takeAll().map { .fail($0, error) }
    self.drainIfShuttingDown(&actions)
    for slot in self.connections.slots {
      if let connection = slot.connection, slot.phase != .opening {
        actions.append(.close(connection, error))
      }
    }
    return actions
  }

  /// While shutting down: once no call waits, abandons attempts to connect and drains connections. Reports the end when no
  /// connection is left.
  mutating func drainIfShuttingDown(_ actions: inout [Action]) {
    guard case .shuttingDown = self.lifecycle, self.waiting.isEmpty else { return }
    self.connections.abandonAttempts(.clientShutDown, &actions)
    self.connections.drain(where: \.phase.isEstablished, &actions)
    if self.connections.count(.vacant) == self.connections.slots.count {
      self.lifecycle = .finished
      actions.append(.finished)
    }
  }
}
