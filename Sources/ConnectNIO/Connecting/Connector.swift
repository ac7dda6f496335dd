internal import Connect
internal import ConnectChannels
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Opens connections for a channel: a socket, then TLS, then the handlers of the version of HTTP.
struct Connector: ConnectionOpener, Sendable {
  let origin: Origin
  /// The version that connections are to speak. Stricter than in the configuration if calls require HTTP/2.
  let version: NIOHTTPClient.Configuration.HTTPVersion
  /// Nil for connections without a proxy. Otherwise the addresses are the proxy's.
  let route: ProxyRoute?
  let configuration: NIOHTTPClient.Configuration
  let tls: ClusterTLS
  let executor: EventLoopExecutor
  /// The factor by which connections ping more slowly than configured, because their server has asked for that.
  let keepalivePace: NIOLoopBoundBox<Int>
  let logger: Logger

  private var eventLoop: any EventLoop { self.executor.eventLoop }

  func open(_ attempt: PooledConnection) {
    guard let entry = self.tls.entry(of: attempt.cluster, of: self.origin) else {
      self.connect(attempt, tls: nil)
      return
    }
    entry.context(on: self.eventLoop).assumeIsolated().whenComplete { result in
      do {
        let identity = try entry.identity(for: attempt, of: self.origin)
        self.connect(attempt, tls: TLS(context: try result.get(), identity: identity))
      } catch {
        attempt.closed(ConnectError(error, code: .failedPrecondition))
      }
    }
  }

  /// TLS for one connection.
  private struct TLS {
    var context: TLSContext
    /// What the server's certificate has to name.
    var identity: ReferenceIdentifier
  }

  private func connect(_ attempt: PooledConnection, tls: TLS?) {
    guard attempt.isWanted else { return }
    let deadline = NIODeadline.now() + TimeAmount(attempt.timeLimit.clamped)
    var times = ConnectionTimes()
    let timeout = max(deadline - .now(), .nanoseconds(1))
    let boundAttempt = NIOLoopBound(attempt, eventLoop: self.eventLoop)
    let opened = NIOLoopBoundBox<(any Channel)?>(nil, eventLoop: self.eventLoop)
    // Ends an attempt that is given up.
    attempt.stop = { opened.value?.close(promise: nil) }
    do {
      try Dialer(eventLoop: self.eventLoop, connectedSocket: self.configuration.connectedSocket).dial(
        attempt.address,
        timeout: timeout,
        readSize: tls == nil ? 64 << 10 : 32 << 10,
        isWanted: { boundAttempt.value.isWanted }
      ) { opened.value = $0 }.assumeIsolated().whenComplete { result in
        switch result {
        case .failure(let error):
          self.fail(attempt, error)
        case .success(let channel):
          guard attempt.isWanted else {
            channel.close(promise: nil)
            return
          }
          self.limitUnacknowledged(of: channel, to: attempt.address)
          self.openTunnel(on: channel, for: attempt, deadline: deadline) {
            times.didConnect()
            if let tls {
              self.startTLS(tls, on: channel, for: attempt, deadline: deadline, times: times)
            } else {
              let version = self.version.known(for: self.origin.scheme) ?? .http1
              self.startHTTP(version, on: channel, for: attempt, deadline: deadline, Setup(times: times))
            }
          }
        }
      }
    } catch {
      self.fail(attempt, error)
    }
  }

  private func fail(_ attempt: PooledConnection, _ error: any Error) {
    attempt.closed(
      self.describe(connectFailure: error, to: attempt),
      reason: self.reason(of: error, to: attempt)
    )
  }

  // MARK: - Proxy

  /// Asks the proxy, if there is one, for a tunnel, then calls `next`.
  private func openTunnel(
    on channel: any Channel,
    for attempt: PooledConnection,
    deadline: NIODeadline,
    then next: @escaping () -> Void
  ) {
    guard let route = self.route else {
      next()
      return
    }
    do {
      let handler = try ProxyHandler(
        route,
        timeout: Duration(deadline - .now()),
        timeoutError: { route.timedOut(after: attempt.timeLimit) },
        completion: { result in
          switch result {
          case .success: next()
          case .failure(let error): attempt.closed(error)
          }
        }
      )
      try channel.pipeline.syncOperations.addHandler(handler)
    } catch {
      channel.close(promise: nil)
      self.fail(attempt, error)
    }
  }

  /// Lets the system give up a connection whose peer has not acknowledged data for too long.
  private func limitUnacknowledged(of channel: any Channel, to address: EndpointAddress) {
    #if os(Linux)
    guard let limit = self.configuration.timeouts.unacknowledged, case .ip = address else { return }
    let milliseconds = (limit.clamped / .milliseconds(1)).rounded(.up)
    let value = Int(min(max(milliseconds, 1), Double(Int32.max)))
    let option = ChannelOptions.Types.SocketOption(level: .tcp, name: .init(rawValue: TCP_USER_TIMEOUT))
    channel.setOption(option, value: value).assumeIsolated().whenFailure { error in
      self.logger.debug(
        "the system does not limit how long data may stay unacknowledged",
        metadata: ["origin": "\(self.origin)", "error": "\(error)"]
      )
    }
    #endif
  }

  // MARK: - TLS

  private func startTLS(
    _ tls: TLS,
    on channel: any Channel,
    for attempt: PooledConnection,
    deadline: NIODeadline,
    times: ConnectionTimes
  ) {
    let check = ServerCertificateCheck(
      tls.context.material.trust,
      identity: tls.identity,
      origin: self.origin
    )
    let verification = ServerVerification(check)
    let handshake = TLSHandshakeHandler(
      timeout: Duration(deadline - .now()),
      timeoutError: {
        verification.isPending
          ? ServerDecision.timedOut(peer: self.origin.description, after: attempt.timeLimit)
          : self.timedOut("the TLS handshake with", after: attempt.timeLimit)
      },
      describe: { error in
        guard var problem = verification.problem else { return self.describe(tlsFailure: error) }
        if problem.exception == nil { problem.exception = error }
        return problem
      },
      isTrusted: { verification.certificates != nil },
      completion: { result in
        switch result {
        case .failure(let error):
          attempt.closed(self.tls.explain(error, of: attempt.cluster, of: self.origin))
        case .success(let negotiated):
          var setup = Setup(times: times, isSecure: true)
          setup.times.didShakeHands()
          setup.certificates = verification.certificates
          attempt.authorities = check.authorities { verification.certificates }
          setup.applicationProtocol = negotiated
          self.startHTTP(negotiated: negotiated, on: channel, for: attempt, deadline: deadline, setup)
        }
      }
    )
    attempt.stop = { channel.close(promise: nil) }
    channel.closeFuture.assumeIsolated().whenComplete { _ in verification.abandon() }
    do {
      let handler = try verification.makeHandler(
        tls.context.context,
        serverName: tls.identity.serverNameIndication,
        on: self.eventLoop
      )
      try channel.pipeline.syncOperations.addHandler(handshake)
      try channel.pipeline.syncOperations.addHandler(handler, position: .first)
      if let pause = verification.readPause {
        try channel.pipeline.syncOperations.addHandler(pause, position: .first)
      }
    } catch {
      channel.close(promise: nil)
      attempt.closed(self.describe(tlsFailure: error))
    }
  }

  /// What is known of a connection once it can begin with HTTP.
  private struct Setup {
    var times: ConnectionTimes
    /// Whether the connection has TLS.
    var isSecure = false
    /// Nil without TLS.
    var certificates: PeerCertificates?
    var applicationProtocol: String?

    func apply(to state: ConnectionState, for attempt: PooledConnection) {
      state.facts.setup = self.times.setup(nameResolution: attempt.nameResolution)
      state.looksForAltSvc = attempt.looksForAltSvc
      switch attempt.address {
      case .ip, .unix: break
      // NIO has no text for them.
      case .unixAbstract, .vsock: state.facts.remoteAddress = attempt.address.description
      }
      guard let certificates = self.certificates else { return }
      let version = (try? state.channel.pipeline.syncOperations.nioSSL_tlsVersion()) ?? nil
      state.facts.didSecure(
        certificates,
        version: version?.name,
        applicationProtocol: self.applicationProtocol
      )
    }
  }

  private func startHTTP(
    negotiated: String?,
    on channel: any Channel,
    for attempt: PooledConnection,
    deadline: NIODeadline,
    _ setup: Setup
  ) {
    switch (negotiated, self.version) {
    case ("h2", .automatic), ("h2", .http2Only):
      self.startHTTP(.http2, on: channel, for: attempt, deadline: deadline, setup)
    case (_, .http2Only):
      channel.close(promise: nil)
      attempt.closed(self.noHTTP2("it has not chosen h2 in the TLS handshake (ALPN)"))
    case (_, .automatic), (_, .http1Only):
      self.startHTTP(.http1, on: channel, for: attempt, deadline: deadline, setup)
    }
  }

  // MARK: - HTTP

  private func startHTTP(
    _ version: HTTPConnectionInfo.Version,
    on channel: any Channel,
    for attempt: PooledConnection,
    deadline: NIODeadline,
    _ setup: Setup
  ) {
    guard attempt.isWanted else {
      channel.close(promise: nil)
      return
    }
    do {
      if version.isMultiplexed {
        try self.startHTTP2(on: channel, for: attempt, deadline: deadline, setup)
      } else {
        try self.startHTTP1(on: channel, for: attempt, setup)
      }
    } catch {
      channel.close(promise: nil)
      self.fail(attempt, error)
    }
  }

  private func startHTTP1(
    on channel: any Channel,
    for attempt: PooledConnection,
    _ setup: Setup
  ) throws {
    let connection = HTTP1Connection(
      channel: channel,
      origin: self.origin,
      peer: self.origin.place(of: attempt.cluster),
      configuration: self.configuration.http1,
      delegate: attempt,
      logger: self.logger
    )
    setup.apply(to: connection.state, for: attempt)
    attempt.established(connection, version: .http1)
    try channel.pipeline.syncOperations.addHTTP1(connection, configuration: self.configuration.http1)
  }

  private func startHTTP2(
    on channel: any Channel,
    for attempt: PooledConnection,
    deadline: NIODeadline,
    _ setup: Setup
  ) throws {
    let connection = HTTP2Connection(
      channel: channel,
      scheme: setup.isSecure ? "https" : "http",
      authority: self.origin.authority,
      peer: self.origin.place(of: attempt.cluster),
      configuration: self.configuration.http2,
      keepalivePace: self.keepalivePace,
      delegate: attempt,
      logger: self.logger
    )
    setup.apply(to: connection.state, for: attempt)
    attempt.established(connection, version: .http2)
    try channel.pipeline.syncOperations.addHandler(connection)
    // The connection can serve once the server has sent its settings.
    let waiting = Confined(attempt, to: self.executor)
    attempt.timer = self.executor.schedule(after: Duration(deadline - .now())) {
      let attempt = waiting.value
      let advice = Advice.http2Refused(by: self.origin.description)
      let step = "waiting for the HTTP/2 settings of"
      var error = self.timedOut(step, after: attempt.timeLimit, advice: advice)
      // A server that speaks only HTTP/1.1 may wait for more. With TLS, the two have agreed on HTTP/2.
      if self.origin.scheme != .https { error.unnamed = .version }
      attempt.connection?.close(failing: error)
    }
  }
}

extension ChannelPipeline.SynchronousOperations {
  /// Adds a connection, and in front of it NIOHTTP1's client codec with our limits.
  func addHTTP1(
    _ connection: HTTP1Connection,
    configuration: NIOHTTPClient.Configuration.HTTP1
  ) throws {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderListSize = HTTP1Messages.parserLimit(configuration.maxHeaderListSize)
    limits.maxHeaderFieldSize = limits.maxHeaderListSize
    limits.maxHeaderFieldCount = limits.maxHeaderListSize / 32
    let decoder = HTTPResponseDecoder(
      leftOverBytesStrategy: .dropBytes,
      informationalResponseStrategy: .drop,
      limitConfiguration: limits
    )
    try self.addHandlers([
      HTTP1ReadGuard(connection), HTTPRequestEncoder(), ByteToMessageHandler(decoder), connection,
    ])
  }
}
