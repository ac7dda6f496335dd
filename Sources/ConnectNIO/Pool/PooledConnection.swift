internal import Connect
internal import NIOCore

/// One place of the pool: an attempt to connect at first, then the connection that came of it.
///
/// It carries what the connection says, with the pool's name for it, to the endpoint. Confined to the
/// endpoint's event loop. The endpoint and its connections hold each other until the connection is gone.
final class PooledConnection: StreamConnectionDelegate {
  typealias ID = NIOEndpoint.Pool.ConnectionID

  let id: ID
  private var endpoint: NIOEndpoint?
  private(set) var connection: (any StreamConnection)?
  /// The channel of the TLS handshake, to be closed if the attempt is given up.
  var channel: (any Channel)?
  /// How far the attempt has got, and when.
  var times = ConnectionTimes()
  /// Limits the time until the connection can serve.
  var timer: Scheduled<Void>?
  /// Set when the pool gave up the attempt; what comes of it is closed at once.
  private var abandoned: ConnectError?

  init(id: ID, endpoint: NIOEndpoint) {
    self.id = id
    self.endpoint = endpoint
  }

  /// The attempt brought a connection of this version. To be called before the connection can say anything.
  func established(_ connection: any StreamConnection, version: HTTPConnectionInfo.Version) {
    self.channel = nil
    self.connection = connection
    self.endpoint?.connectionEstablished(self, version: version)
  }

  /// The attempt failed, or the connection is gone.
  func closed(_ error: ConnectError) {
    self.timer.take()?.cancel()
    guard let endpoint = self.endpoint else { return }
    self.endpoint = nil
    self.channel = nil
    self.connection = nil
    endpoint.connectionClosed(self, error: error)
  }

  /// The pool has forgotten the attempt.
  func abandon(_ error: ConnectError) {
    self.timer.take()?.cancel()
    self.endpoint = nil
    self.abandoned = error
    self.channel.take()?.close(promise: nil)
    self.connection?.close(failing: error)
    self.connection = nil
  }

  /// Whether a connection may still be made of the attempt.
  var isWanted: Bool { self.abandoned == nil }

  // MARK: StreamConnectionDelegate

  func connection(_ connection: any StreamConnection, canServe concurrentStreams: Int) {
    self.timer.take()?.cancel()
    self.endpoint?.connection(self, canServe: concurrentStreams)
  }

  func connectionDidCloseStream(_ connection: any StreamConnection) {
    self.endpoint?.streamClosed(self)
  }

  func connectionWillClose(_ connection: any StreamConnection) {
    self.endpoint?.connectionWillClose(self)
  }

  func connectionDidClose(_ connection: any StreamConnection, error: ConnectError?) {
    let peer = self.endpoint?.origin.description ?? "the peer"
    let fallback = ConnectError(
      code: .unavailable,
      message: "\(peer) closed the connection before it could serve"
    )
    self.closed(error ?? fallback)
  }
}
