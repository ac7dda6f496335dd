internal import Connect
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

/// Opens connections to one origin: name resolution and TCP, or a Unix domain socket, then TLS, then the
/// handlers of the version of HTTP.
struct Connector: Sendable {
  let origin: Origin
  /// What connections are to speak. More than the configuration says if calls require HTTP/2.
  let version: NIOHTTPClient.Configuration.HTTPVersion
  let configuration: NIOHTTPClient.Configuration
  let tlsContexts: TLSContextProvider
  let logger: Logger

  /// Connects for `attempt`, which is told how that ended. To be called on `eventLoop`.
  func connect(_ attempt: PooledConnection, on eventLoop: any EventLoop) {
    switch self.origin.scheme {
    case .http, .unix:
      self.connect(attempt, on: eventLoop, tls: nil)
    case .https:
      self.tlsContexts.contexts(on: eventLoop).assumeIsolated().whenComplete { result in
        switch result {
        case .success(let contexts):
          self.connect(attempt, on: eventLoop, tls: ServerVerification(of: self.origin, contexts))
        case .failure(let error):
          attempt.closed(ConnectError(error, code: .failedPrecondition))
        }
      }
    }
  }

  private func connect(
    _ attempt: PooledConnection,
    on eventLoop: any EventLoop,
    tls: ServerVerification?
  ) {
    attempt.times = ConnectionTimes()
    let timeout = TimeAmount(self.configuration.timeouts.connect.clamped)
    self.connect(attempt, on: eventLoop, tls: tls, deadline: .now() + timeout)
  }

  private func connect(
    _ attempt: PooledConnection,
    on eventLoop: any EventLoop,
    tls: ServerVerification?,
    deadline: NIODeadline
  ) {
    let timeout = max(deadline - .now(), .nanoseconds(1))
    let boundAttempt = NIOLoopBound(attempt, eventLoop: eventLoop)
    let bootstrap = ClientBootstrap(group: eventLoop).connectTimeout(timeout)
      // Called for the channel to each address that is tried, so first when one is known.
      .channelInitializer { channel in
        boundAttempt.value.times.didResolve()
        return channel.eventLoop.makeSucceededVoidFuture()
      }
    let connected =
      switch self.origin.scheme {
      case .http, .https: bootstrap.connect(host: self.origin.host, port: self.origin.port)
      case .unix: bootstrap.connect(unixDomainSocketPath: self.origin.host)
      }
    connected.assumeIsolated().whenComplete { result in
      switch result {
      case .failure(let error):
        attempt.closed(self.describe(connectFailure: error))
      case .success(let channel):
        guard attempt.isWanted else {
          channel.close(promise: nil)
          return
        }
        attempt.times.didConnect()
        self.limitUnacknowledged(of: channel)
        if let tls {
          self.startTLS(tls, on: channel, for: attempt, deadline: deadline)
        } else {
          let version = self.version.known(for: self.origin.scheme) ?? .http1
          self.startHTTP(version, on: channel, for: attempt, deadline: deadline)
        }
      }
    }
  }

  /// Lets the system give up a connection whose peer has not acknowledged data for too long.
  private func limitUnacknowledged(of channel: any Channel) {
    #if os(Linux)
    guard let limit = self.configuration.timeouts.unacknowledged, self.origin.scheme != .unix else { return }
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
    _ verification: ServerVerification,
    on channel: any Channel,
    for attempt: PooledConnection,
    deadline: NIODeadline
  ) {
    let handshake = TLSHandshakeHandler(
      timeout: Duration(deadline - .now()),
      timeoutError: { self.timedOut("the TLS handshake with") },
      describe: { error, certificate in
        verification.failed(error, certificate)
        return self.describe(tlsFailure: error, verification)
      },
      verify: { certificate in
        guard let error = self.verify(certificate, verification) else { return nil }
        verification.failed(error, certificate)
        return self.describe(tlsFailure: error, verification)
      },
      completion: { result in
        switch result {
        case .failure(let error):
          // The channel is about to be closed.
          attempt.channel = nil
          guard attempt.isWanted, verification.hasAnotherWay() else {
            attempt.closed(error)
            return
          }
          self.connect(attempt, on: channel.eventLoop, tls: verification, deadline: deadline)
        case .success(let negotiated):
          verification.succeeded()
          attempt.times.didShakeHands()
          self.startHTTP(negotiated: negotiated, on: channel, for: attempt, deadline: deadline)
        }
      }
    )
    attempt.channel = channel
    do {
      let handler = try verification.makeHandler(serverHostname: self.serverName)
      try channel.pipeline.syncOperations.addHandler(handshake)
      try channel.pipeline.syncOperations.addHandler(handler, position: .first)
    } catch {
      channel.close(promise: nil)
      attempt.closed(self.describe(tlsFailure: error))
    }
  }

  /// Checks what NIOSSL has not.
  private func verify(
    _ certificate: NIOSSLCertificate?,
    _ verification: ServerVerification
  ) -> (any Error)? {
    guard self.configuration.tls.certificateVerification == .full else { return nil }
    guard let certificate else { return NIOSSLError.noCertificateToValidate }
    if let name = self.serverName, CertificateNames.isDoubtful(certificate, for: name) {
      return NIOSSLExtraError.failedToValidateHostname
    }
    return verification.accepts(certificate) ? nil : RefusedCertificateError()
  }

  /// The name to ask for and to find in the certificate; nil for an IP address, which TLS compares with the
  /// peer's own.
  private var serverName: String? {
    if let name = self.configuration.tls.serverName { return name }
    let host = self.origin.host
    if (try? SocketAddress(ipAddress: host, port: 0)) != nil { return nil }
    return host.hasSuffix(".") ? String(host.dropLast()) : host
  }

  private func startHTTP(
    negotiated: String?,
    on channel: any Channel,
    for attempt: PooledConnection,
    deadline: NIODeadline
  ) {
    switch (negotiated, self.version) {
    case ("h2", .automatic), ("h2", .http2Only):
      self.startHTTP(.http2, on: channel, for: attempt, deadline: deadline)
    case (_, .http2Only):
      channel.close(promise: nil)
      attempt.closed(self.noHTTP2("it has not chosen h2 in the TLS handshake (ALPN)"))
    case (_, .automatic), (_, .http1Only):
      self.startHTTP(.http1, on: channel, for: attempt, deadline: deadline)
    }
  }

  // MARK: - HTTP

  private func startHTTP(
    _ version: HTTPConnectionInfo.Version,
    on channel: any Channel,
    for attempt: PooledConnection,
    deadline: NIODeadline
  ) {
    guard attempt.isWanted else {
      channel.close(promise: nil)
      return
    }
    do {
      switch version {
      case .http1: try self.startHTTP1(on: channel, for: attempt)
      case .http2: try self.startHTTP2(on: channel, for: attempt, deadline: deadline)
      }
    } catch {
      channel.close(promise: nil)
      attempt.closed(self.describe(connectFailure: error))
    }
  }

  private func startHTTP1(on channel: any Channel, for attempt: PooledConnection) throws {
    let connection = HTTP1Connection(
      channel: channel,
      origin: self.origin,
      configuration: self.configuration.http1,
      delegate: attempt,
      logger: self.logger
    )
    connection.setup = attempt.times.setup
    attempt.established(connection, version: .http1)
    try channel.pipeline.syncOperations.addHTTP1(connection, configuration: self.configuration.http1)
  }

  private func startHTTP2(
    on channel: any Channel,
    for attempt: PooledConnection,
    deadline: NIODeadline
  ) throws {
    let connection = HTTP2Connection(
      channel: channel,
      scheme: self.origin.scheme == .https ? "https" : "http",
      authority: self.origin.authority,
      peer: self.origin.description,
      configuration: self.configuration.http2,
      delegate: attempt,
      logger: self.logger
    )
    connection.setup = attempt.times.setup
    attempt.established(connection, version: .http2)
    try channel.pipeline.syncOperations.addHandler(connection)
    // The connection can serve once the server has sent its settings.
    attempt.timer = channel.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [weak attempt] in
      let advice = Advice.http2Refused(by: self.origin.description)
      attempt?.connection?.close(failing: self.timedOut("waiting for the HTTP/2 settings of", advice: advice))
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
