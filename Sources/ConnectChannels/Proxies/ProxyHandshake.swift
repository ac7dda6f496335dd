/// The conversation with a proxy, until the connection is a tunnel to the server. Bytes go in, bytes come out.
package protocol ProxyHandshake: Sendable {
  /// The first bytes to send. To be called once.
  mutating func start() -> [UInt8]

  /// Bytes have come from the proxy. Not to be called after the end.
  ///
  /// - Throws: ``ProxyError`` if there will be no tunnel; the connection has to be closed.
  mutating func receive(_ bytes: [UInt8]) throws(ProxyError) -> ProxyHandshakeStep

  /// The error for a connection that the proxy closes before the end.
  func closedByProxy() -> ProxyError
}

/// What follows from bytes of the proxy.
package enum ProxyHandshakeStep: Hashable, Sendable {
  case wait
  case send([UInt8])
  /// The tunnel is there.
  ///
  /// - Parameter leftover: Bytes behind the proxy's answer: the first ones of the server.
  case done(leftover: [UInt8])
}

extension Proxy {
  /// The handshake for a tunnel to a server.
  ///
  /// - Throws: ``ProxyError`` if the protocol cannot carry the server's name or the credentials.
  package func handshake(host: String, port: Int) throws(ProxyError) -> any ProxyHandshake {
    switch self {
    case .httpConnect: try HTTPConnectHandshake(proxy: self, host: host, port: port)
    case .socks5: try SOCKS5Handshake(proxy: self, host: host, port: port)
    }
  }

  /// - Returns: The server as it goes into a request.
  func checkedServer(host: String, port: Int) throws(ProxyError) -> HostAndPort {
    let server = HostAndPort(host: host, port: port)
    do throws(HostProblem) {
      return try HostAndPort(parsing: server.description, defaultPort: nil)
    } catch {
      throw ProxyError(.invalidURL, message: "\(server) cannot be reached through a proxy: \(error.text)")
    }
  }
}
