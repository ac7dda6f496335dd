internal import Connect
internal import ConnectChannels

extension NIOHTTPClient.Configuration {
  /// Refuses routes where they cannot be followed. Without routes, calls would go to servers that the routes do not name, and
  /// connections to the clusters would not go where the configuration wants them.
  ///
  /// - Parameter proxy: The origin's proxy; nil for none.
  func checkRoutes(of origin: Origin, through proxy: Proxy?) throws(ConnectError) {
    guard self.channel.routing != nil else { return }
    if proxy != nil {
      throw Self.refusedRoutes(
        """
        \(origin) has routes (channel.routing) and is behind a proxy (proxy), which finds the servers itself: leave one of them out \
        of the client's configuration, or make the host an exception of the proxy
        """
      )
    }
    if self.connectedSocket != nil {
      throw Self.refusedRoutes(
        """
        routes (channel.routing) lead to several servers, and a connected socket (connectedSocket) leads to one: leave one of them \
        out of the client's configuration
        """
      )
    }
  }

  private static func refusedRoutes(_ message: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: message).asFinal
  }

  /// Whether servers' certificates can be compared with the origin. Where clusters have TLS of their own, this is found out
  /// when connections are opened: ``tls`` may be unusable, and not needed.
  func checkIdentity(of origin: Origin) throws(ConnectError) {
    guard self.tlsOfClusters.isEmpty, self.clusterSecurity == nil else { return }
    _ = try self.tls.identity(of: origin)
  }
}
