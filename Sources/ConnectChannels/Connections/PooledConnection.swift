package import Connect

/// First an attempt to connect to one address, then the connection that results.
///
/// Forwards the connection's events to its owner, in most cases the subchannel. Confined to the channel's executor. The
/// owner and its connections retain each other until the connection is gone.
package final class PooledConnection: StreamConnectionDelegate {
  typealias Pool = ConnectionPool<PooledConnection, WaitingStream>

  /// What the connection is to its owner.
  enum Role {
    /// Races with others to be the first connection of a subchannel.
    case contender(ConnectionAttempt)
    /// One of a subchannel's pool.
    case member(Pool.ConnectionID)
    /// Races for the place of another connection: see ``VersionRaceRun``.
    case candidate
  }

  /// Where to connect to.
  package let address: EndpointAddress
  /// The endpoint's own name for TLS, in place of the origin's.
  package let serverName: String?
  /// The cluster that the endpoint belongs to; nil for the origin's own endpoints.
  package let cluster: String?
  /// How long an attempt may take.
  package let timeLimit: Duration
  /// How long it took to find the address.
  package let nameResolution: Duration

  var role: Role
  var owner: (any ConnectionOwner)?
  package private(set) var connection: (any StreamConnection)?
  private(set) var version = HTTPConnectionInfo.Version.http1
  /// Closes what the attempt has opened so far.
  package var stop: (() -> Void)?
  /// Limits the time until the connection can serve, and then its age.
  package var timer: (any CallTimer)?
  /// The address as text, for observers.
  private(set) lazy var name = self.address.description
  /// Whether the attempt may still become a connection.
  package private(set) var isWanted = true
  /// Whether the connection has taken calls.
  private var wasReady = false
  var alternatives = ConnectionAlternatives()
  /// Which hosts calls may ask for in place of the origin's; nil for any. To be set before ``established(_:version:)``.
  package var authorities: AuthorityCheck?
  /// Whether the connection may take calls before its server has answered (early data).
  package var mayBeEarly = true
  /// Whether the connection takes calls though its server has not answered yet. To be set before
  /// ``established(_:version:)``.
  package var isEarly = false

  init(
    _ role: Role,
    to address: EndpointAddress,
    serverName: String?,
    cluster: String?,
    timeLimit: Duration,
    nameResolution: Duration,
    owner: any ConnectionOwner
  ) {
    self.role = role
    self.address = address
    self.serverName = serverName
    self.cluster = cluster
    self.timeLimit = timeLimit
    self.nameResolution = nameResolution
    self.owner = owner
  }

  /// Whether its connection should tell of `alt-svc` fields.
  package var looksForAltSvc: Bool { self.alternatives.listener != nil }

  /// Names the network that the client was in when a try of QUIC beside TCP began; nil otherwise.
  package var network: Int? { self.alternatives.route?.network }

  /// The attempt brought a connection of this version. To be called before the connection can say anything.
  package func established(_ connection: any StreamConnection, version: HTTPConnectionInfo.Version) {
    self.stop = nil
    self.connection = connection
    self.version = version
    self.owner?.connection(self, had: .established)
  }

  /// The attempt failed, or the connection is gone.
  ///
  /// - Parameter reason: The reason in a few words, for a list of addresses.
  package func closed(_ error: ConnectError, reason: String? = nil) {
    self.timer.take()?.cancel()
    self.alternatives.upgrade.take()?.winnerEnded()
    guard let owner = self.owner else { return }
    self.owner = nil
    self.stop = nil
    let hasServed = self.connection.take()?.hasServed ?? false
    let failure = AddressFailure(address: self.address, error: error, reason: reason)
    owner.connection(self, had: .closed(failure, hasServed: hasServed))
  }

  /// The attempt is no longer wanted.
  func abandon(_ error: ConnectError) {
    self.timer.take()?.cancel()
    self.alternatives.upgrade.take()?.winnerEnded()
    self.owner = nil
    self.isWanted = false
    self.stop.take()?()
    self.connection.take()?.close(failing: error)
  }

  /// The connection takes no more streams.
  func drain() {
    self.alternatives.upgrade.take()?.winnerEnded()
    self.connection?.drain()
  }

  // MARK: StreamConnectionDelegate

  package func connection(_ connection: any StreamConnection, canServe concurrentStreams: Int) {
    if !self.wasReady { self.timer.take()?.cancel() }
    self.wasReady = true
    self.owner?.connection(self, had: .canServe(concurrentStreams))
  }

  package func connectionDidCloseStream(_ connection: any StreamConnection) {
    self.owner?.connection(self, had: .streamClosed)
  }

  package func connectionWillClose(_ connection: any StreamConnection) {
    self.alternatives.upgrade.take()?.winnerEnded()
    let count = connection.renewalCount
    self.owner?.connection(self, had: .willClose(hasServed: connection.hasServed, after: count))
  }

  package func connectionIsSuspect(_ connection: any StreamConnection) {
    self.owner?.connection(self, had: .suspect)
  }

  package func connectionIsAlive(_ connection: any StreamConnection) {
    self.owner?.connection(self, had: .alive)
  }

  package func connectionIsProven(_ connection: any StreamConnection) {
    guard self.isEarly else { return }
    self.isEarly = false
    if let upgrade = self.alternatives.upgrade {
      upgrade.quicIsProven()
    } else {
      self.owner?.connection(self, had: .proven)
    }
  }

  package func connection(_ connection: any StreamConnection, roundTrip: Duration) {
    self.owner?.connection(self, had: .roundTrip(roundTrip))
  }

  package func connection(_ connection: any StreamConnection, didReceiveAltSvc headers: Headers) {
    self.alternatives.listener?.connection(self, didReceiveAltSvc: headers)
  }

  package func connectionIsFit(_ connection: any StreamConnection) {
    self.alternatives.listener?.connectionIsFit(self)
  }

  package func connectionIsUnfit(_ connection: any StreamConnection, _ reason: String) {
    self.alternatives.listener?.connectionIsUnfit(self, reason)
  }

  package func connectionDidClose(_ connection: any StreamConnection, error: ConnectError?) {
    let when = self.wasReady ? "" : " before it could serve"
    let fallback = ConnectError(
      code: .unavailable,
      message: "\(self.owner?.peer ?? "the peer") closed the connection\(when)"
    )
    self.closed(error ?? fallback)
  }
}
