public import ConnectChannels

/// Servers that come and go, for tests of what a client does then.
///
/// ```swift
/// transport.refuseConnections(at: server)  // The server stops:
/// transport.goAway(at: server)             // in order, or
/// transport.disconnect(at: server)         // as one that is killed.
/// // …
/// transport.acceptConnections(at: server)  // It is back.
/// ```
///
/// The addresses are those that the channel's resolver names; nil stands for all of them. Without a resolver, there is only
/// one server. All functions may be called from any thread.
extension InMemoryTransport {
  /// Attempts to connect fail from now on. Connections that are open stay.
  public func refuseConnections(at address: EndpointAddress? = nil) {
    self.network.setRefusal(true, at: address)
  }

  /// Attempts to connect succeed again from now on. The next one comes after the channel's backoff.
  public func acceptConnections(at address: EndpointAddress? = nil) {
    self.network.setRefusal(false, at: address)
  }

  /// The connections that are open take no more calls, as after GOAWAY, and close once their calls have ended.
  public func goAway(at address: EndpointAddress? = nil) {
    self.network.forEachConnection(to: address) { $0.goAway() }
  }

  /// The connections that are open break. Their calls fail with `unavailable`, and the tasks of their handlers are cancelled;
  /// calls that no handler has seen are sent again.
  public func disconnect(at address: EndpointAddress? = nil) {
    self.network.forEachConnection(to: address) { $0.disconnect() }
  }
}
