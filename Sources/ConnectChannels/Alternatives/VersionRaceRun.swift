internal import Connect

/// Runs a ``VersionRace`` for an attempt to connect, or beside a connection over TCP. Confined to the opener's executor.
///
/// The attempt retains it through `stop`, candidates through `owner`.
final class VersionRaceRun: ConnectionOwner, ConnectionUpgrade {
  private typealias Transport = VersionRace.Transport

  /// The pool's connection. The winner takes its place.
  private let attempt: PooledConnection
  private let route: QUICRoute
  private let opener: AlternativesOpener
  private var race = VersionRace()
  private var quic: PooledConnection?
  /// The connection over QUIC that has won by early data, until its server has answered.
  private var early: PooledConnection?
  private var tcp: PooledConnection?
  private var timer: (any CallTimer)?
  private let startTime: Duration
  private var tcpFailure: AddressFailure?
  private var quicReason = ""
  /// What a transport reported when it became ready.
  private var streams = 0
  private var roundTrip: Duration?

  init(_ attempt: PooledConnection, _ route: QUICRoute, on opener: AlternativesOpener) {
    self.attempt = attempt
    self.route = route
    self.opener = opener
    self.startTime = opener.executor.now
  }

  func start() {
    self.attempt.stop = { self.run(self.race.abandon()) }
    self.run(self.race.start())
  }

  /// Tries QUIC beside the attempt, which is an open connection over TCP. The try ends with the attempt.
  func startUpgrade() {
    self.tcp = self.attempt
    self.attempt.alternatives.upgrade = self
    self.run(self.race.startUpgrade())
  }

  /// The connection that has won takes no more calls.
  func winnerEnded() {
    self.run(self.race.winnerEnded())
  }

  /// The server of the connection over QUIC, which has early data, has answered.
  func quicIsProven() {
    self.early.take()?.alternatives.upgrade = nil
    self.run(self.race.ready(.quic))
  }

  /// QUIC is no longer wanted.
  func abandon() {
    self.run(self.race.abandon())
  }

  // MARK: - Actions

  private func run(_ actions: [VersionRace.Action]) {
    for action in actions { self.run(action) }
  }

  private func run(_ action: VersionRace.Action) {
    switch action {
    case .begin(let transport):
      self.begin(transport)
    case .abandon(.quic):
      self.quic.take()?.abandon(.connectionReplaced)
    case .abandon(.tcp):
      self.tcp.take()?.abandon(.connectionReplaced)
    case .schedule(let wait):
      let delay = wait == .headStart ? AlternativesOpener.headStart : AlternativesOpener.gracePeriod
      let here = Confined(self, to: self.opener.executor)
      self.timer = self.opener.executor.schedule(after: delay) {
        here.value.timer = nil
        here.value.run(here.value.race.timerFired())
      }
    case .cancelTimer:
      self.timer.take()?.cancel()
    case .win(.quic):
      guard let quic = self.quic.take() else { return }
      if quic.isEarly {
        self.early = quic
        quic.alternatives.upgrade = self
      }
      self.win(quic)
    case .win(.tcp):
      guard let tcp = self.tcp else { return }
      if self.quic != nil { tcp.alternatives.upgrade = self }
      self.win(tcp)
    case .replaceQUIC:
      self.replaceQUIC()
    case .replaceTCP:
      self.replaceTCP()
    case .fail:
      self.attempt.stop = nil
      // Reports TCP's failure, since HTTP/3 is optional.
      guard let failure = self.tcpFailure else { return }
      self.attempt.closed(failure.error, reason: failure.reason)
    case .isBroken:
      self.tcp?.alternatives.upgrade = nil
      self.opener.http3IsBroken(self.route, self.quicReason)
    case .isUnjudged:
      self.opener.http3IsUnjudged(self.route, since: self.startTime)
    }
  }

  /// Opens later, so that an immediate failure is not reported from within an action.
  private func begin(_ transport: Transport) {
    let candidate: PooledConnection
    switch transport {
    case .quic:
      let limit = min(self.attempt.timeLimit, AlternativesOpener.quicLimit)
      candidate = self.candidate(at: self.route.address, timeLimit: limit)
      candidate.alternatives.route = self.route
      // Calls that have TCP are better off there until QUIC is proven.
      candidate.mayBeEarly = self.tcp == nil
      self.quic = candidate
    case .tcp:
      candidate = self.candidate(at: self.attempt.address, timeLimit: self.attempt.timeLimit)
      self.tcp = candidate
    }
    let opening = Confined((candidate, self.opener), to: self.opener.executor)
    self.opener.executor.execute {
      let (candidate, opener) = opening.value
      if candidate.isWanted { opener.open(transport, candidate) }
    }
  }

  private func candidate(at address: EndpointAddress, timeLimit: Duration) -> PooledConnection {
    PooledConnection(
      .candidate,
      to: address,
      serverName: self.attempt.serverName,
      cluster: self.attempt.cluster,
      timeLimit: timeLimit,
      nameResolution: self.attempt.nameResolution,
      owner: self
    )
  }

  /// The winner takes the role of the attempt in the pool.
  private func win(_ winner: PooledConnection) {
    self.attempt.stop = nil
    guard let owner = self.attempt.owner as? any AttemptOwner else {
      winner.abandon(.connectionReplaced)
      return
    }
    owner.replace(self.attempt, by: winner)
    winner.role = self.attempt.role
    winner.owner = owner
    self.attempt.owner = nil
    owner.connection(winner, had: .established)
    if winner.version == .http3, let roundTrip = self.roundTrip {
      owner.connection(winner, had: .roundTrip(roundTrip))
    }
    owner.connection(winner, had: .canServe(self.streams))
  }

  /// TCP takes the place of QUIC, whose server has not answered. QUIC's calls are made again.
  private func replaceQUIC() {
    guard let quic = self.early.take(), let tcp = self.tcp else { return }
    quic.alternatives.upgrade = nil
    guard let owner = quic.owner as? any MemberOwner, owner.hasPlace(quic) else {
      tcp.abandon(.connectionReplaced)
      return
    }
    tcp.owner = owner
    let connection = quic.connection
    owner.replaceConnections(with: tcp, streams: self.streams)
    connection?.close(failing: .connectionReplaced)
    tcp.alternatives.upgrade = self
    self.run(self.race.didReplaceQUIC())
  }

  /// QUIC takes the place of TCP and its siblings.
  private func replaceTCP() {
    guard let tcp = self.tcp, let quic = self.quic.take() else { return }
    tcp.alternatives.upgrade = nil
    guard let owner = tcp.owner as? any MemberOwner, owner.isReplaceable(tcp) else {
      quic.abandon(.connectionReplaced)
      return
    }
    quic.owner = owner
    owner.replaceConnections(with: quic, streams: self.streams)
    if let roundTrip = self.roundTrip { owner.connection(quic, had: .roundTrip(roundTrip)) }
  }

  // MARK: - ConnectionOwner

  var peer: String { self.attempt.owner?.peer ?? "the peer" }

  func connection(_ connection: PooledConnection, had event: ConnectionEvent) {
    switch event {
    case .canServe(let streams):
      self.streams = streams
      self.run(connection.isEarly ? self.race.early() : self.race.ready(self.transport(of: connection)))
    case .closed(let failure, _):
      switch self.transport(of: connection) {
      case .quic:
        self.quic = nil
        self.quicReason = failure.text
        self.opener.quicFailed(failure)
        self.run(self.race.failed(.quic))
      case .tcp:
        self.tcp = nil
        self.tcpFailure = failure
        self.run(self.race.failed(.tcp))
      }
    case .roundTrip(let roundTrip):
      if connection === self.quic { self.roundTrip = roundTrip }
    case .proven:
      self.quicIsProven()
    case .established, .streamClosed, .willClose, .suspect, .alive:
      break
    }
  }

  private func transport(of connection: PooledConnection) -> Transport {
    connection === self.quic ? .quic : .tcp
  }
}
