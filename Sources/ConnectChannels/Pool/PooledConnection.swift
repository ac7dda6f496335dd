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
  /// Limits the time until the connection can serve.
  package var timer: (any CallTimer)?
  /// Fires when the connection reaches its maximum age.
  var ageTimer: (any CallTimer)?
  /// The address as text, for observers.
  private(set) lazy var name = self.address.description
  /// Whether the attempt may still become a connection.
  package private(set) var isWanted = true
  /// Whether the connection has taken calls.
  private var wasReady = false
  /// Whether the server has worked: see ``StreamConnection/hasServed``.
  private(set) var hasServed = false
  /// See ``StreamConnection/renewalCount``.
  private(set) var renewalCount: Int?
  /// Is told what the connection learns about HTTP/3 at the origin; nil if the client does not look for it.
  var alternatives: (any AlternativesListener)?
  /// The `alt-svc` field that was read last, and when.
  var lastAltSvc: (value: String, time: Duration)?
  /// The route of a connection over QUIC that was found beside TCP.
  var route: QUICRoute?
  /// Tries another version beside this connection. Ends with the connection, or when the connection takes no more
  /// calls.
  var upgrade: VersionRaceRun?
  /// Whether the connection may take calls before its server has answered (early data).
  package var mayBeEarly = true
  /// Whether the connection takes calls though its server has not answered yet. To be set before
  /// ``established(_:version:)``.
  package var isEarly = false

  init(_ role: Role, to address: EndpointAddress, timeLimit: Duration, for owner: Subchannel) {
    self.role = role
    self.address = address
    self.serverName = owner.endpoint.serverName
    self.timeLimit = timeLimit
    self.nameResolution = owner.nameResolution
    self.owner = owner
  }

  /// A candidate that may take the place of another attempt.
  init(
    candidateFor attempt: PooledConnection,
    at address: EndpointAddress,
    timeLimit: Duration,
    owner: any ConnectionOwner
  ) {
    self.role = .candidate
    self.address = address
    self.serverName = attempt.serverName
    self.timeLimit = timeLimit
    self.nameResolution = attempt.nameResolution
    self.owner = owner
  }

  /// The attempt brought a connection of this version. To be called before the connection can say anything.
  package func established(_ connection: any StreamConnection, version: HTTPConnectionInfo.Version) {
    self.stop = nil
    self.connection = connection
    self.version = version
    self.owner?.connectionEstablished(self)
  }

  /// The attempt failed, or the connection is gone.
  ///
  /// - Parameter reason: The reason in a few words, for a list of addresses.
  package func closed(_ error: ConnectError, reason: String? = nil) {
    self.timer.take()?.cancel()
    self.ageTimer.take()?.cancel()
    self.upgrade.take()?.winnerEnded()
    guard let owner = self.owner else { return }
    self.owner = nil
    self.stop = nil
    self.connection = nil
    owner.connectionClosed(self, AddressFailure(address: self.address, error: error, reason: reason))
  }

  /// The attempt is no longer wanted.
  func abandon(_ error: ConnectError) {
    self.timer.take()?.cancel()
    self.ageTimer.take()?.cancel()
    self.upgrade.take()?.winnerEnded()
    self.owner = nil
    self.isWanted = false
    self.stop.take()?()
    self.connection.take()?.close(failing: error)
  }

  /// The connection takes no more streams.
  func drain() {
    self.upgrade.take()?.winnerEnded()
    self.connection?.drain()
  }

  // MARK: StreamConnectionDelegate

  package func connection(_ connection: any StreamConnection, canServe concurrentStreams: Int) {
    self.timer.take()?.cancel()
    self.wasReady = true
    self.owner?.connection(self, canServe: concurrentStreams)
  }

  package func connectionDidCloseStream(_ connection: any StreamConnection) {
    self.owner?.streamClosed(self)
  }

  package func connectionWillClose(_ connection: any StreamConnection) {
    self.upgrade.take()?.winnerEnded()
    self.hasServed = connection.hasServed
    self.renewalCount = connection.renewalCount
    self.owner?.connectionWillClose(self)
  }

  package func connectionIsSuspect(_ connection: any StreamConnection) {
    self.owner?.connectionIsSuspect(self)
  }

  package func connectionIsAlive(_ connection: any StreamConnection) {
    self.owner?.connectionIsAlive(self)
  }

  package func connectionIsProven(_ connection: any StreamConnection) {
    guard self.isEarly else { return }
    self.isEarly = false
    (self.upgrade ?? self.owner as? VersionRaceRun)?.quicIsProven()
  }

  package func connection(_ connection: any StreamConnection, roundTrip: Duration) {
    self.owner?.connection(self, roundTrip: roundTrip)
  }

  package func connection(_ connection: any StreamConnection, didReceiveAltSvc headers: Headers) {
    self.alternatives?.connection(self, didReceiveAltSvc: headers)
  }

  package func connectionIsFit(_ connection: any StreamConnection) {
    self.alternatives?.connectionIsFit(self)
  }

  package func connectionIsUnfit(_ connection: any StreamConnection, _ reason: String) {
    self.alternatives?.connectionIsUnfit(self, reason)
  }

  package func connectionDidClose(_ connection: any StreamConnection, error: ConnectError?) {
    let when = self.wasReady ? "" : " before it could serve"
    self.hasServed = self.hasServed || connection.hasServed
    let fallback = ConnectError(
      code: .unavailable,
      message: "\(self.owner?.peer ?? "the peer") closed the connection\(when)"
    )
    self.closed(error ?? fallback)
  }
}

/// Is told of the events of attempts and connections.
protocol ConnectionOwner: AnyObject {
  /// The server's name in errors.
  var peer: String { get }
  func connectionEstablished(_ connection: PooledConnection)
  func connection(_ connection: PooledConnection, canServe streams: Int)
  func streamClosed(_ connection: PooledConnection)
  func connectionWillClose(_ connection: PooledConnection)
  func connectionClosed(_ connection: PooledConnection, _ failure: AddressFailure)
  func connectionIsSuspect(_ connection: PooledConnection)
  func connectionIsAlive(_ connection: PooledConnection)
  func connection(_ connection: PooledConnection, roundTrip: Duration)
}
