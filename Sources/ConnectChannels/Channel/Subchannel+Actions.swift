internal import Connect

/// Does what the race and the pool ask for.
extension Subchannel {
  // MARK: - Actions of the race

  func run(_ actions: [AddressRace.Action]) {
    for action in actions {
      switch action {
      case .connect(let attempt):
        let connection = PooledConnection(
          .contender(attempt),
          to: attempt.address,
          timeLimit: self.environment.connectTimeout,
          for: self
        )
        self.contenders[attempt] = connection
        self.open(connection)
      case .cancel(let attempt):
        self.contenders.removeValue(forKey: attempt)?.abandon(.connectionReplaced)
      case .close:
        self.run(self.pool.drainAll())
      case .schedule(let delay):
        self.raceTimer?.cancel()
        self.raceTimer = self.schedule(after: delay) {
          $0.raceTimer = nil
          $0.run($0.race.timerFired(now: $0.now, random: &$0.random))
        }
      case .cancelTimer:
        self.raceTimer?.cancel()
        self.raceTimer = nil
      case .stateChanged(let state, _):
        if state == .transientFailure { self.channel?.addressesMayBeOutOfDate() }
        if state == .ready { self.watches.restart() }
        self.channel?.needsUpdate()
      }
    }
  }

  /// Opens later, so that an immediate failure does not reach a handler from within `startStream`.
  private func open(_ connection: PooledConnection) {
    let opening = Confined((connection, self.environment.opener), to: self.environment.executor)
    self.environment.executor.execute {
      let (connection, opener) = opening.value
      if connection.isWanted { opener.open(connection) }
    }
  }

  func schedule(
    after delay: Duration,
    _ work: @escaping @Sendable (Subchannel) -> Void
  ) -> any CallTimer {
    self.environment.executor.schedule(after: delay, with: self, work)
  }

  // MARK: - Actions of the pool

  func run(_ actions: [Pool.Action]) {
    for action in actions { self.run(action) }
    // After all actions: calls that are to start next still wait.
    if let channel = self.channel, channel.isShutDown { channel.later { channel.waitingDidChange() } }
  }

  func run(_ action: Pool.Action) {
    switch action {
    case .open(let id):
      guard let address = self.race.connection?.address else {
        self.channel?.later { self.run(self.pool.connectionClosed(id, error: .connectionReplaced)) }
        return
      }
      let connection = PooledConnection(
        .member(id),
        to: address,
        timeLimit: self.environment.connectTimeout,
        for: self
      )
      self.attempts[id] = connection
      self.open(connection)
    case .start(let stream, let connection, let id):
      // An earlier action may have led to code that cancelled the call, or closed the connection.
      guard let open = connection.connection else {
        stream.fail(.connectionLost(self.peer), isUnprocessed: true)
        return
      }
      if !stream.start({ self.start($0, $1, on: open, of: connection, waitingSince: stream.start) }) {
        self.channel?.later { self.run(self.pool.streamClosed(id, now: self.now)) }
      }
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
      _ = self.schedule(after: self.poolBackoff.next(random: &self.random)) {
        $0.run($0.pool.backoffDidElapse())
      }
    case .checkIdle(let delay):
      // Later, so that calls that wait for a connection get it first.
      _ = self.schedule(after: max(delay, .milliseconds(1))) { $0.run($0.pool.checkIdle(now: $0.now)) }
    case .lost(let error):
      self.lost(error)
    case .finished:
      self.channel?.subchannelFinished(self)
    }
  }
}
