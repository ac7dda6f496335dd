internal import Connect

/// How connections of another version of HTTP come into the pool: in place of an attempt, or of connections.
extension Subchannel {
  /// Whether a connection over QUIC may replace this one, because there is none yet.
  func isReplaceable(_ connection: PooledConnection) -> Bool {
    self.hasPlace(connection)
      && !self.pool.slots.contains { $0.version == .http3 && ($0.phase == .open || $0.phase == .suspended) }
  }

  /// Whether the connection is one of the pool, and another one may take its place.
  func hasPlace(_ connection: PooledConnection) -> Bool {
    guard case .member(let id) = connection.role, self.pool.isCurrent(id),
      case .running = self.pool.lifecycle,
      self.pool.slots[id.slot].phase == .open || self.pool.slots[id.slot].phase == .suspended
    else { return false }
    return !self.pool.closesWhenIdle
  }

  /// Whether QUIC is tried beside a connection.
  var hasUpgrade: Bool { self.pool.slots.contains { $0.connection?.upgrade != nil } }

  /// Puts `candidate`, which is connected, in the place of `attempt`.
  func replace(_ attempt: PooledConnection, by candidate: PooledConnection) {
    switch attempt.role {
    case .contender(let contender): self.contenders[contender] = candidate
    case .member(let id): self.attempts[id] = candidate
    case .candidate: break
    }
  }

  /// `new` has a connection, which takes the place of all others.
  func replaceConnections(with new: PooledConnection, streams: Int) {
    // Other tries are not needed any more. Their end says nothing about HTTP/3.
    for slot in self.pool.slots { slot.connection?.upgrade.take()?.abandon() }
    let (id, actions) = self.pool.replaceAll(
      with: new,
      version: new.version,
      streams: streams,
      now: self.now
    )
    new.role = .member(id)
    self.opened(new, id)
    self.run(actions)
    self.suspicionMayHaveChanged()
  }
}

extension PooledConnection {
  /// Whether its connection should tell of `alt-svc` fields.
  package var looksForAltSvc: Bool { self.alternatives != nil }

  /// Names the network that the client was in when a try of QUIC beside TCP began; nil otherwise.
  package var network: Int? { self.route?.network }

  /// The subchannel, unless this is a candidate.
  private var subchannel: Subchannel? { self.owner as? Subchannel }

  /// Whether this is an open connection whose place one over QUIC may take.
  var isReplaceable: Bool { self.subchannel?.isReplaceable(self) ?? false }

  /// Whether QUIC is already tried beside a connection to the same server.
  var isBesideUpgrade: Bool { self.subchannel?.hasUpgrade ?? false }

  /// The candidate has a connection: it takes the role of `attempt` in the pool.
  func takePlace(of attempt: PooledConnection, streams: Int, roundTrip: Duration?) {
    guard let subchannel = attempt.subchannel else {
      self.abandon(.connectionReplaced)
      return
    }
    subchannel.replace(attempt, by: self)
    self.role = attempt.role
    self.owner = subchannel
    attempt.owner = nil
    subchannel.connectionEstablished(self)
    if let roundTrip { subchannel.connection(self, roundTrip: roundTrip) }
    subchannel.connection(self, canServe: streams)
  }

  /// The candidate's connection takes the place of this one and its siblings. It is closed if it is no longer wanted.
  func replace(with candidate: PooledConnection, streams: Int, roundTrip: Duration?) {
    guard let subchannel = self.subchannel, subchannel.isReplaceable(self) else {
      candidate.abandon(.connectionReplaced)
      return
    }
    candidate.owner = subchannel
    if let roundTrip { subchannel.connection(candidate, roundTrip: roundTrip) }
    subchannel.replaceConnections(with: candidate, streams: streams)
  }

  /// Over TCP, the candidate has a connection, whose server has answered. It takes the place of this one, whose server
  /// has not, and whose calls are made again.
  ///
  /// - Returns: False if the candidate is no longer wanted, and is closed.
  func giveWay(to candidate: PooledConnection, streams: Int) -> Bool {
    guard let subchannel = self.subchannel, subchannel.hasPlace(self) else {
      candidate.abandon(.connectionReplaced)
      return false
    }
    candidate.owner = subchannel
    let connection = self.connection
    subchannel.replaceConnections(with: candidate, streams: streams)
    connection?.close(failing: .connectionReplaced)
    return true
  }
}
