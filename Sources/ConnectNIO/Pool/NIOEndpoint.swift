internal import Connect
internal import Logging
internal import NIOCore

/// The way to one origin on one event loop: runs the pool's actions.
///
/// `@unchecked Sendable`: `pool` and `attempts` are touched on `eventLoop` alone.
/// `startStream` is called there by contract (see `HTTPEndpoint`), connections and timers call from there, and
/// the functions for other threads (`shutDown`, `closeWhenIdle`) hop first. All else is constant and Sendable.
final class NIOEndpoint: HTTPEndpoint, @unchecked Sendable {
  typealias Pool = ConnectionPool<PooledConnection, WaitingStream>

  let origin: Origin
  let eventLoop: any EventLoop
  private let loopExecutor: EventLoopExecutor
  private let connector: Connector
  let maximumHeaderListSize: Int
  private let logger: Logger

  private var pool: Pool
  private var attempts: [Pool.ConnectionID: PooledConnection] = [:]
  /// Who waits for the end, and whether it has come.
  private var shutDownPromises: [EventLoopPromise<Void>] = []
  private var isFinished = false

  init(
    origin: Origin,
    executor: EventLoopExecutor,
    connector: Connector,
    configuration: NIOHTTPClient.Configuration,
    logger: Logger
  ) {
    self.origin = origin
    self.eventLoop = executor.eventLoop
    self.loopExecutor = executor
    self.connector = connector
    self.maximumHeaderListSize =
      switch connector.version.known(for: origin.scheme) {
      case .http1: configuration.http1.maxHeaderListSize
      case .http2: configuration.http2.maxHeaderListSize
      case nil: max(configuration.http1.maxHeaderListSize, configuration.http2.maxHeaderListSize)
      }
    self.logger = logger
    self.pool = Pool(
      limits: .init(
        http1Connections: max(configuration.limits.http1ConnectionsPerOrigin, 1),
        http2Connections: max(configuration.limits.http2ConnectionsPerOrigin, 1),
        waitingCalls: max(configuration.limits.waitingCalls, 0),
        idleTimeout: max(configuration.timeouts.idle.clamped, .zero)
      ),
      version: connector.version.known(for: origin.scheme)
    )
  }

  // MARK: - HTTPEndpoint

  var executor: any CallExecutor { self.loopExecutor }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.eventLoop.assertInEventLoop()
    if let connection = self.pool.leaseConnection()?.connection {
      return connection.startStream(request, handler: handler)
    }
    return self.wait(request, handler: handler)
  }

  private func wait(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    let stream = WaitingStream(request, handler: handler, endpoint: self)
    switch self.pool.enqueue(stream) {
    case .waiting(let ticket, let actions):
      stream.queued(as: ticket)
      self.run(actions)
    case .tooMany:
      let error = ConnectError(
        code: .resourceExhausted,
        message: "\(self.pool.waiting.count) calls wait for a connection to \(self.origin) already: the limit"
      )
      self.later { stream.fail(error) }
    case .shutDown:
      self.later { stream.fail(.clientShutDown) }
    }
    return stream
  }

  func cancelWaiting(_ ticket: Pool.Ticket) {
    self.run(self.pool.cancel(ticket))
  }

  private func later(_ work: @escaping () -> Void) {
    self.eventLoop.assumeIsolated().execute(work)
  }

  // MARK: - Events of connections

  func connectionEstablished(_ connection: PooledConnection, version: HTTPConnectionInfo.Version) {
    self.run(self.pool.connectionEstablished(connection.id, connection, version: version))
  }

  func connection(_ connection: PooledConnection, canServe streams: Int) {
    self.attempts.removeValue(forKey: connection.id)
    self.run(self.pool.connection(connection.id, canServe: streams, now: self.loopExecutor.now))
  }

  func streamClosed(_ connection: PooledConnection) {
    self.run(self.pool.streamClosed(connection.id, now: self.loopExecutor.now))
  }

  func connectionWillClose(_ connection: PooledConnection) {
    self.run(self.pool.connectionWillClose(connection.id))
  }

  func connectionClosed(_ connection: PooledConnection, error: ConnectError) {
    if self.attempts.removeValue(forKey: connection.id) != nil {
      self.logger.debug(
        "could not connect",
        metadata: ["origin": "\(self.origin)", "error": "\(String(reflecting: error))"]
      )
    }
    self.run(self.pool.connectionClosed(connection.id, error: error))
  }

  // MARK: - The end

  /// Closes connections as soon as they have no streams. May be called from any thread.
  func closeWhenIdle() {
    self.eventLoop.execute { self.run(self.pool.closeWhenIdle()) }
  }

  /// Finishes what is under way, and after `limit` fails what is left. May be called from any thread, and
  /// again with another limit; the earliest counts.
  func shutDown(within limit: Duration) -> EventLoopFuture<Void> {
    let promise = self.eventLoop.makePromise(of: Void.self)
    self.eventLoop.execute {
      if self.isFinished { promise.succeed(()) } else { self.shutDownPromises.append(promise) }
      self.run(self.pool.shutDown())
      _ = self.eventLoop.scheduleTask(in: TimeAmount(limit.clamped)) { [weak self] in
        self?.forceShutDown()
      }
    }
    return promise.futureResult
  }

  private func forceShutDown() {
    self.run(
      self.pool.forceShutDown(
        ConnectError(
          code: .unavailable,
          message: "the HTTP client was shut down before the call had finished"
        )
      )
    )
  }

  // MARK: - Actions

  private func run(_ actions: [Pool.Action]) {
    for action in actions { self.run(action) }
  }

  private func run(_ action: Pool.Action) {
    switch action {
    case .open(let id):
      let connection = PooledConnection(id: id, endpoint: self)
      self.attempts[id] = connection
      // Later, so that nothing that fails at once reaches a handler from within `startStream`.
      self.later {
        guard connection.isWanted else { return }
        self.connector.connect(connection, on: self.eventLoop)
      }
    case .start(let stream, let connection, let id):
      // An earlier action may have led to code that cancelled the call, or closed the connection.
      guard let open = connection.connection else {
        stream.fail(.connectionLost(self.origin.description), isUnprocessed: true)
        return
      }
      if !stream.start(on: open) {
        self.later { self.run(self.pool.streamClosed(id, now: self.loopExecutor.now)) }
      }
    case .fail(let stream, let error):
      stream.fail(error)
    case .drain(let connection):
      connection.connection?.drain()
    case .close(let connection, let error):
      connection.connection?.close(failing: error)
    case .abandon(let id, let error):
      self.attempts.removeValue(forKey: id)?.abandon(error)
    case .backOff(let delay):
      self.eventLoop.scheduleTask(in: TimeAmount(delay)) { [weak self] in
        guard let self else { return }
        self.run(self.pool.backoffDidElapse())
      }
    case .checkIdle(let delay):
      self.eventLoop.scheduleTask(in: TimeAmount(delay)) { [weak self] in
        guard let self else { return }
        self.run(self.pool.checkIdle(now: self.loopExecutor.now))
      }
    case .finished:
      self.isFinished = true
      let promises = self.shutDownPromises
      self.shutDownPromises = []
      for promise in promises { promise.succeed(()) }
    }
  }
}
