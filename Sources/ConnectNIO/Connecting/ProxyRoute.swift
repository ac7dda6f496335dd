internal import Connect
internal import ConnectChannels

/// The way to an origin through a proxy, and the errors on the way. They name both, and never show the password.
struct ProxyRoute: Sendable {
  let proxy: Proxy
  let origin: Origin

  /// - Throws: ``ConnectError`` with `failed_precondition` if the proxy's protocol cannot carry the origin's name or the
  ///   credentials.
  func handshake() throws(ConnectError) -> any ProxyHandshake {
    do {
      return try self.proxy.handshake(host: self.origin.host, port: self.origin.port)
    } catch {
      let message = "cannot connect to \(self.origin): \(error.message)"
      throw .ofConnection(.failedPrecondition, message, error, isFinal: true)
    }
  }

  /// The proxy's name has no address.
  func notFound(_ error: ConnectError) -> ConnectError {
    let reason = error.message ?? "\(error.code)"
    return .ofConnection(
      error.code,
      "cannot connect to \(self.origin): the proxy \(self.proxy) cannot be found: \(reason)",
      error.exception ?? error,
      isFinal: error.isFinal
    )
  }

  /// Why there is no tunnel.
  func describe(_ error: ProxyError) -> ConnectError {
    let message = "cannot connect to \(self.origin): \(error.message)"
    return .ofConnection(.unavailable, message, error, isFinal: error.isFinal)
  }

  /// The connection to the proxy broke before there was a tunnel.
  func describe(_ error: any Error) -> ConnectError {
    .ofConnection(
      .unavailable,
      """
      cannot connect to \(self.origin): the connection to the proxy \(self.proxy) broke before it had made a tunnel: \
      \(Connector.text(error))
      """,
      error
    )
  }

  /// The proxy has not answered in time.
  ///
  /// - Parameter limit: How long connecting may take, all steps together.
  func timedOut(after limit: Duration) -> ConnectError {
    let kind =
      switch self.proxy {
      case .httpConnect: "an HTTP proxy without TLS"
      case .socks5: "a SOCKS5 proxy"
      }
    return .ofConnection(
      .unavailable,
      """
      cannot connect to \(self.origin): the proxy \(self.proxy) had made no tunnel when connecting timed out after \
      \(limit); check that it is \(kind), and that it reaches the server
      """
    )
  }
}
