internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Logging
internal import NIOCore
internal import NIOPosix

/// Opens HTTP/3 connections for a channel: a UDP socket, then QUIC's handshake.
struct HTTP3Opener: ConnectionOpener, Sendable {
  private let environment: HTTP3Environment
  private let configuration: HTTP3Configuration
  private let credentials: CredentialsCache

  init(
    _ environment: HTTP3Environment,
    _ configuration: HTTP3Configuration,
    credentials: CredentialsCache
  ) {
    self.environment = environment
    self.configuration = configuration
    self.credentials = credentials
  }

  private var eventLoop: any EventLoop { self.environment.eventLoop }
  private var origin: Origin { self.environment.origin }

  func open(_ attempt: PooledConnection) {
    let deadline = NIODeadline.now() + TimeAmount(attempt.timeLimit.clamped)
    guard let entry = self.environment.tls.entry(of: attempt.cluster, of: self.origin) else {
      // Never from within this function.
      self.eventLoop.assumeIsolated().execute { attempt.closed(self.plaintext(attempt.cluster)) }
      return
    }
    entry.context(on: self.eventLoop).assumeIsolated().whenComplete { result in
      switch result {
      case .failure(let error):
        attempt.closed(ConnectError(error, code: .failedPrecondition))
      case .success(let context):
        self.credentials.credentials(for: context, on: self.eventLoop).assumeIsolated().whenComplete {
          result in
          switch result {
          case .failure(let error):
            attempt.closed(.unusableTLSConfiguration(String(describing: error)))
          case .success(let credentials):
            self.connect(attempt, entry, credentials, deadline: deadline)
          }
        }
      }
    }
  }

  /// QUIC has no connections without TLS.
  private func plaintext(_ cluster: String?) -> ConnectError {
    .ofConnection(
      .unavailable,
      "\(self.origin.place(of: cluster)) is to be reached without TLS, which HTTP/3 cannot do; leave out http3 of the client's "
        + "configuration, or give the cluster TLS",
      nil
    )
  }

  private func connect(
    _ attempt: PooledConnection,
    _ entry: ClusterTLS.Entry,
    _ credentials: GnuTLSCredentials,
    deadline: NIODeadline
  ) {
    guard attempt.isWanted else { return }
    let address: SocketAddress
    do {
      address = try SocketAddress(attempt.address)
    } catch {
      self.fail(attempt, error)
      return
    }
    let times = ConnectionTimes()
    let opened = NIOLoopBoundBox<(any Channel)?>(nil, eventLoop: self.eventLoop)
    attempt.stop = { opened.value?.close(promise: nil) }
    UDPSocket.bootstrap(on: self.eventLoop, for: address)
      // Lets `stop` end an attempt that is given up.
      .channelInitializer { channel in
        opened.value = channel
        return channel.eventLoop.makeSucceededVoidFuture()
      }
      .connect(to: address).assumeIsolated().whenComplete { result in
        switch result {
        case .failure(let error):
          self.fail(attempt, error)
        case .success(let channel):
          guard attempt.isWanted else {
            channel.close(promise: nil)
            return
          }
          UDPSocket.forbidFragments(of: channel)
          do {
            try self.shakeHands(
              on: channel,
              with: address,
              for: attempt,
              entry,
              credentials,
              deadline: deadline,
              times
            )
          } catch {
            channel.close(promise: nil)
            self.fail(attempt, error)
          }
        }
      }
  }

  private func fail(_ attempt: PooledConnection, _ error: any Error) {
    if let error = error as? ConnectError {
      attempt.closed(error)
      return
    }
    let text = SystemErrorText.of(error)
    attempt.closed(
      .ofConnection(
        .unavailable,
        "cannot connect to \(self.origin) over HTTP/3 (\(attempt.address): \(text))",
        error
      ),
      reason: text
    )
  }

  // MARK: The handshake

  private func shakeHands(
    on channel: any Channel,
    with address: SocketAddress,
    for attempt: PooledConnection,
    _ entry: ClusterTLS.Entry,
    _ credentials: GnuTLSCredentials,
    deadline: NIODeadline,
    _ times: ConnectionTimes
  ) throws {
    guard let local = channel.localAddress else { throw HTTP3SetupError(reason: "the socket has no address") }
    let identity = try entry.identity(for: attempt, of: self.origin)
    let check = ServerCertificateCheck(credentials.trust, identity: identity, origin: self.origin)
    let server = SessionTickets.Server(
      origin: self.origin,
      address: attempt.address,
      identity: identity.description,
      network: attempt.network
    )
    let tickets = credentials.tickets
    let usesEarlyData = self.configuration.usesEarlyData
    let ticket = usesEarlyData && attempt.mayBeEarly ? tickets.take(of: server) : nil
    let session = try HTTP3Session(
      local: local,
      remote: address,
      authority: self.origin.authority,
      tls: GnuTLSSession(
        credentials,
        serverName: identity.serverNameIndication,
        check: check,
        on: self.eventLoop,
        ticket: ticket,
        keepsTicket: usesEarlyData
      ),
      limits: self.limits(on: channel),
      now: NIODeadline.now().uptimeNanoseconds
    )
    let connection = HTTP3Connection(
      channel: channel,
      session: session,
      remoteAddress: address,
      peer: self.origin.place(of: attempt.cluster),
      keepalive: HTTP3Keepalive(
        unacknowledged: self.environment.configuration.timeouts.unacknowledged,
        pingInterval: self.configuration.pingInterval,
        pingsWithoutStreams: self.configuration.pingsWithoutStreams
      ),
      logger: self.environment.logger
    )
    var times = times
    times.didConnect()
    let limit: () -> Void = { [weak connection, weak session, timeLimit = attempt.timeLimit] in
      connection?.handshake.limit(to: deadline) { self.timedOut(after: timeLimit, session) }
    }
    limit()
    // The server of an early connection has shown that it is there.
    session.tls.onQuestion = limit
    connection.onTicket = { tickets.store($0, of: server) }
    connection.onUnfit = { tickets.remove(of: server) }
    connection.handshake.onReady = { [weak connection] result in
      guard let connection else { return }
      switch result {
      case .success:
        if connection.handshake.isOver {
          times.didShakeHands()
        } else {
          attempt.isEarly = true
          let end = min(deadline, .now() + TimeAmount(Self.earlyTimeLimit))
          connection.handshake.limit(to: end) { [weak connection] in
            self.timedOut(after: min(attempt.timeLimit, Self.earlyTimeLimit), connection?.session)
          }
        }
        connection.state.facts.setup = times.setup(nameResolution: attempt.nameResolution)
        connection.state.delegate = attempt
        connection.state.looksForAltSvc = attempt.looksForAltSvc
        attempt.authorities = check.authorities { [weak connection] in
          connection?.session.tls.certificates
        }
        attempt.established(connection, version: .http3)
      case .failure(let error):
        let error = self.environment.tls.explain(error, of: attempt.cluster, of: self.origin)
        attempt.closed(error, reason: connection.state.channelError.map { SystemErrorText.of($0) })
      }
    }
    attempt.stop = { [weak connection] in connection?.handshake.abandon() }
    do {
      try channel.pipeline.syncOperations.addHandler(connection)
    } catch {
      connection.handshake.stopTimer()
      throw error
    }
  }

  /// How long calls wait for the handshake of a connection that took them before it. It is enough to send what was lost once
  /// more. Then they are sent again on a connection without early data.
  private static let earlyTimeLimit = Duration.seconds(3)

  private func timedOut(after limit: Duration, _ session: HTTP3Session?) -> ConnectError {
    if session?.tls.decision?.isPending == true {
      return ServerDecision.timedOut(peer: self.origin.description, after: limit)
    }
    return .ofConnection(
      .unavailable,
      "the QUIC handshake with \(self.origin) timed out after \(limit); \(Self.advice)"
    )
  }

  private static let advice = "a server without HTTP/3, or a network that drops UDP, may do this"

  private func limits(on channel: any Channel) -> HTTP3SessionLimits {
    HTTP3SessionLimits(
      streamWindow: min(max(self.configuration.initialStreamWindow, 1), Int(Int32.max)),
      connectionWindow: min(max(self.configuration.connectionWindow, 65_535), Int(Int32.max)),
      maximumHeaderListSize: min(max(self.configuration.maxHeaderListSize, 0), Int(Int32.max)),
      idleTimeout: UInt64(clamping: self.environment.configuration.timeouts.idle.clamped.nanoseconds),
      datagramSize: self.datagramSize(on: channel)
    )
  }

  /// The size of datagrams that the network is known to take; nil if nothing larger than usual is known.
  private func datagramSize(on channel: any Channel) -> Int? {
    guard let configured = self.configuration.datagramSize,
      let size = DatagramSize.known(configured, possible: UDPSocket.largestDatagram(of: channel))
    else { return nil }
    UDPSocket.ignoreReports(on: channel)
    return size
  }
}
