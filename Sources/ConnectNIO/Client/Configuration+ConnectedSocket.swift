internal import Connect
internal import ConnectChannels

extension NIOHTTPClient.Configuration {
  /// The configuration as it has to be with a ``connectedSocket``: one connection, on one event loop, without a look for
  /// names, proxies or HTTP/3, which is kept while there are no calls since it cannot be opened again.
  var fittedToConnectedSocket: Self {
    guard let socket = self.connectedSocket else { return self }
    var configuration = self
    configuration.eventLoops = 1
    configuration.limits.http1ConnectionsPerAddress = 1
    configuration.limits.http2ConnectionsPerAddress = 1
    configuration.timeouts.idle = .seconds(Int64.max)
    configuration.channel.idleTimeout = .seconds(Int64.max)
    configuration.channel.maximumConnectionAge = nil
    configuration.channel.resolver = StaticResolver([Endpoint(socket.peer)])
    configuration.proxy = .off
    if configuration.http3?.isDiscovered == true { configuration.http3 = nil }
    return configuration
  }

  /// The version for an origin with this scheme. A cancelled call of HTTP/1.1 closes its connection, and a connected socket
  /// cannot be connected again: in cleartext, where no server chooses, it is HTTP/2.
  func version(for scheme: Origin.Scheme) -> HTTPVersion {
    let isFixed = self.connectedSocket == nil || self.version != .automatic || scheme == .https
    return isFixed ? self.version : .http2Only
  }
}

extension ConnectError {
  static var noHTTP3OverConnectedSocket: ConnectError {
    ConnectError(
      code: .failedPrecondition,
      message: """
        HTTP/3 does not go over a connected socket: leave http3 or connectedSocket out of the client's configuration
        """
    ).asFinal
  }
}
