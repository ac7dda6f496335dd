package import Connect
package import Logging

/// Opens connections over TCP, and over QUIC where HTTP/3 is known for the origin. Balancers and subchannels do not
/// know of this choice: they see one address.
///
/// What is known comes from `alt-svc` fields of responses and from HTTPS records, and is shared by the client's
/// channels. When HTTP/3 becomes known only after a TCP connection is open, QUIC is tried once beside that connection.
/// Once QUIC is ready, it replaces the address's TCP connections, which finish their calls.
///
/// `@unchecked Sendable`: mutable state is touched on `executor` alone. The exception is `number`, which is set before
/// the opener is shared.
package final class AlternativesOpener: ConnectionOpener, AlternativesListener, @unchecked Sendable {
  /// How long TCP waits for QUIC: the delay of Happy Eyeballs (RFC 8305, section 5).
  static var headStart: Duration { AddressRace.Configuration.defaults.attemptDelay }
  /// How long QUIC may go on after TCP has failed.
  static let gracePeriod = Duration.seconds(2)
  /// How long a QUIC handshake may take.
  static let quicLimit = Duration.seconds(10)
  /// For how long an unchanged `alt-svc` field is not read again.
  static let refreshInterval = Duration.seconds(60)

  private let origin: Origin
  private let tcp: any ConnectionOpener
  private let quic: any ConnectionOpener
  let alternatives: SharedAlternatives
  let executor: any CallExecutor
  let logger: Logger
  /// Connections over TCP, to upgrade when HTTP/3 is found by other means than a response. Entries of ended ones are
  /// swept at times.
  private var connections: [Weak<PooledConnection>] = []
  private var sweepCount = 16
  /// Identifies the opener to `alternatives`.
  private var number = 0

  /// - Parameters:
  ///   - tcp: Opens connections over TCP.
  ///   - quic: Opens connections over QUIC, to the address of the attempt as a UDP address.
  package init(
    _ origin: Origin,
    tcp: any ConnectionOpener,
    quic: any ConnectionOpener,
    alternatives: SharedAlternatives,
    on executor: any CallExecutor,
    logger: Logger
  ) {
    self.origin = origin
    self.tcp = tcp
    self.quic = quic
    self.alternatives = alternatives
    self.executor = executor
    self.logger = logger
    self.number = alternatives.add(self, of: origin, on: executor)
  }

  deinit { self.alternatives.remove(self.number, of: self.origin) }

  package func open(_ attempt: PooledConnection) {
    let hasUpgrade = (attempt.owner as? any AttemptOwner)?.hasUpgrade ?? false
    if !hasUpgrade, let route = self.route(to: attempt) {
      VersionRaceRun(attempt, route, on: self).start()
    } else {
      attempt.alternatives.listener = self
      self.note(attempt)
      self.tcp.open(attempt)
    }
  }

  func open(_ transport: VersionRace.Transport, _ candidate: PooledConnection) {
    candidate.alternatives.listener = self
    switch transport {
    case .quic:
      self.quic.open(candidate)
    case .tcp:
      self.note(candidate)
      self.tcp.open(candidate)
    }
  }

  /// Where to try HTTP/3 for the server of a connection over TCP; nil for nowhere.
  ///
  /// An alternative at the origin's own port is tried at the port of the address, which may differ in a fleet.
  private func route(to connection: PooledConnection) -> QUICRoute? {
    let (server, cluster) = (connection.address, connection.cluster)
    guard case .ip(let ip, let ownPort) = server,
      let port = self.alternatives.port(for: self.origin, in: cluster, at: server, now: self.executor.now)
    else { return nil }
    return QUICRoute(
      server: server,
      port: port,
      address: .ip(ip, port: port == self.origin.port ? ownPort : port),
      network: self.alternatives.network(),
      cluster: cluster
    )
  }

  // MARK: - What attempts say of HTTP/3

  func quicFailed(_ failure: AddressFailure) {
    self.logger.debug(
      "could not connect over HTTP/3",
      metadata: ["origin": "\(self.origin)", "error": "\(String(reflecting: failure.error))"]
    )
  }

  /// - Parameter onlyAtServer: Whether HTTP/3 may work at other servers of the origin. If false, ``AlternativesMemory``
  ///   decides that.
  func http3IsBroken(_ route: QUICRoute, onlyAtServer: Bool = false, _ reason: String) {
    self.logger.debug(
      "HTTP/3 does not work where TCP does, and is not tried for a while",
      metadata: ["origin": "\(self.origin)", "address": "\(route.address)", "error": "\(reason)"]
    )
    self.alternatives.failed(self.origin, route, onlyAtServer: onlyAtServer, now: self.executor.now)
  }

  /// - Parameter start: When the try began.
  func http3IsUnjudged(_ route: QUICRoute, since start: Duration) {
    self.alternatives.leftUnjudged(self.origin, route, since: start, now: self.executor.now)
  }

  // MARK: - Upgrades

  /// HTTP/3 was found by other means than a response.
  func alternativesDidChange() {
    for connection in self.connections.compactMap(\.object) { self.upgrade(connection) }
  }

  private func note(_ connection: PooledConnection) {
    if self.connections.count >= self.sweepCount {
      self.connections.removeAll { $0.object == nil }
      self.sweepCount = max(16, self.connections.count * 2)
    }
    self.connections.append(Weak(connection))
  }

  private func upgrade(_ connection: PooledConnection) {
    guard let owner = connection.owner as? any MemberOwner, owner.isReplaceable(connection),
      !owner.hasUpgrade,
      let route = self.route(to: connection)
    else { return }
    VersionRaceRun(connection, route, on: self).startUpgrade()
  }

  // MARK: - AlternativesListener

  package func connection(_ connection: PooledConnection, didReceiveAltSvc headers: Headers) {
    guard let value = headers.first("alt-svc") else { return }
    let now = self.executor.now
    if let last = connection.alternatives.lastField, last.value == value,
      now - last.time < Self.refreshInterval
    {
      return
    }
    connection.alternatives.lastField = (value, now)
    guard let field = AltSvcField(headers["alt-svc"]) else { return }
    self.alternatives.learn(field, of: self.origin, in: connection.cluster, now: now)
    if connection.version != .http3 { self.upgrade(connection) }
  }

  package func connectionIsFit(_ connection: PooledConnection) {
    guard connection.version == .http3, let route = connection.alternatives.route else { return }
    self.alternatives.succeeded(self.origin, route)
  }

  package func connectionIsUnfit(_ connection: PooledConnection, _ reason: String) {
    guard connection.version == .http3, let route = connection.alternatives.route else { return }
    // It is unknown whether TCP would have worked, and an outage of one server says nothing about the others.
    self.http3IsBroken(route, onlyAtServer: true, reason)
  }
}
