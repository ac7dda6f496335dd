package import Connect
package import ConnectChannels
package import Logging
package import NIOCore

/// What a connection knows about itself: where it is in its life, what waits to be done, and what its delegate was told.
/// A session of HTTP/2 or HTTP/3 drives it. HTTP/1.1 has phases of its own.
///
/// Confined to the channel's event loop.
package final class ConnectionState {
  package enum Phase {
    /// In no pipeline, or the channel is not connected yet.
    case idle
    /// HTTP/3: before the end of the handshake, and without early data.
    case connecting
    /// Takes requests.
    case active
    case closed
  }

  package let channel: any Channel
  package let eventLoop: any EventLoop
  package let version: HTTPConnectionInfo.Version
  /// The origin, for errors.
  package let peer: String
  package let logger: Logger
  /// The last error of the channel, which explains why it is closed afterwards.
  package var channelError: (any Error)?

  // Each call reads these several times, so exclusivity is not checked at run time. That is safe: no access spans a call
  // out.

  @exclusivity(unchecked) package var facts: ConnectionFacts
  @exclusivity(unchecked) package var phase = Phase.idle
  /// Between `channelRead` and `channelReadComplete`, which flushes.
  @exclusivity(unchecked) package var isReading = false
  @exclusivity(unchecked) package var isFlushScheduled = false
  @exclusivity(unchecked) package var isFlushing = false
  @exclusivity(unchecked) package var isHandlingEvents = false
  /// A shutdown that was asked for while events were being handled, and waits until they all have been.
  @exclusivity(unchecked) package var postponedShutDown: (() -> Void)?
  /// What to end the connection with in the next flush.
  @exclusivity(unchecked) package var requestedClose: ConnectError?
  /// No more streams: the pool has said so, or it was told so.
  @exclusivity(unchecked) package var isDraining = false
  /// Held until the connection is closed.
  @exclusivity(unchecked) package var delegate: (any StreamConnectionDelegate)?
  /// The number last reported with `canServe`.
  @exclusivity(unchecked) package private(set) var servedStreams: Int?
  /// Whether any response has begun.
  @exclusivity(unchecked) package var hasAnswered = false
  /// Whether the delegate wants to hear of `alt-svc` fields.
  @exclusivity(unchecked) package var looksForAltSvc = false

  package init(
    channel: any Channel,
    version: HTTPConnectionInfo.Version,
    peer: String,
    delegate: (any StreamConnectionDelegate)? = nil,
    logger: Logger
  ) {
    self.channel = channel
    self.eventLoop = channel.eventLoop
    self.version = version
    self.facts = ConnectionFacts(channel, version: version)
    self.peer = peer
    self.delegate = delegate
    self.logger = logger
  }

  // MARK: The delegate

  package func report(_ connection: any StreamConnection, canServe count: Int) {
    guard count != self.servedStreams, !self.isDraining, self.phase == .active else { return }
    self.servedStreams = count
    self.delegate?.connection(connection, canServe: count)
  }

  package func reportClosedStream(of connection: any StreamConnection) {
    guard self.phase != .closed else { return }
    self.delegate?.connectionDidCloseStream(connection)
  }

  package func reportWillClose(_ connection: any StreamConnection) {
    guard !self.isDraining, self.phase == .active else { return }
    self.isDraining = true
    self.delegate?.connectionWillClose(connection)
  }

  // MARK: The end

  /// Whether events are being handled. Then `shutDown` waits until they all have been.
  package func postpones(_ shutDown: @escaping () -> Void) -> Bool {
    if self.isHandlingEvents, self.postponedShutDown == nil { self.postponedShutDown = shutDown }
    return self.isHandlingEvents
  }

  /// All events were handled.
  package func didHandleEvents() {
    self.isHandlingEvents = false
    if self.postponedShutDown != nil { self.postponedShutDown.take()?() }
  }

  /// Begins the end of the connection.
  ///
  /// - Returns: The delegate, which now belongs to the caller, and the error of the streams that are open.
  package func close(
    _ connection: any StreamConnection,
    _ error: ConnectError?,
    hasStreams: Bool
  ) -> (delegate: (any StreamConnectionDelegate)?, reason: ConnectError) {
    self.phase = .closed
    self.isReading = false
    let delegate = self.delegate.take()
    if let error {
      self.logger.debug(
        "\(self.version.rawValue) connection failed",
        metadata: ["error": "\(String(reflecting: error))"]
      )
    }
    // A handler that starts a new stream when it hears of its end must not be given this connection again.
    if hasStreams, !self.isDraining { delegate?.connectionWillClose(connection) }
    self.isDraining = true
    return (delegate, error ?? self.closedError)
  }

  package var closedError: ConnectError {
    ConnectError(
      code: .unavailable,
      message: "the \(self.version.rawValue) connection to \(self.peer) was closed"
    )
  }
}
