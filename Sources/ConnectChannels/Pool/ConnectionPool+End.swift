internal import Connect

extension ConnectionPool {
  /// All open connections take no more streams. The pool is lost.
  mutating func drainAll() -> [Action] {
    var actions: [Action] = []
    for index in self.slots.indices {
      switch self.slots[index].phase {
      case .vacant, .draining: break
      case .opening: self.abandon(index, .connectionReplaced, &actions)
      case .open, .suspended: self.drain(index, &actions)
      }
    }
    self.becomeLost(nil, &actions)
    self.drainIfShuttingDown(&actions)
    return actions
  }

  /// Connections close as soon as they have no streams. New calls are still served.
  mutating func closeWhenIdle() -> [Action] {
    self.closesWhenIdle = true
    var actions: [Action] = []
    for index in self.slots.indices where self.slots[index].phase == .open && self.slots[index].streams == 0 {
      self.drain(index, &actions)
    }
    self.checkIsLost(nil, &actions)
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
      case .open, .suspended, .draining:
        if let connection = self.slots[index].connection { actions.append(.close(connection, error)) }
      case .vacant, .opening:
        break
      }
    }
    return actions
  }
}
