public import Connect
public import ConnectChannels
internal import Synchronization

/// What a client's channels do, for the operators of a service.
extension NIOHTTPClient {
  /// Finds the servers of `origin` and connects to them without a call, so that the first call need not wait. Calls that come
  /// meanwhile wait for the same connections.
  ///
  /// - Parameters:
  ///   - origin: Where to connect to. With several event loops, each of them opens its own connections.
  ///   - requiresHTTP2: Whether the connections are for gRPC.
  /// - Throws: `ConnectError` as ``endpoint(for:on:requiresHTTP2:)`` does.
  public func connect(to origin: Origin, requiresHTTP2: Bool = false) throws(ConnectError) {
    let executors = self.executors
    try self.channel(for: origin, on: executors.first, requiresHTTP2: requiresHTTP2).connect()
    for executor in executors.dropFirst() {
      try self.channel(for: origin, on: executor, requiresHTTP2: requiresHTTP2).connect()
    }
  }

  /// Whether calls to `origin` can be sent now. Without a channel, because there was no call for a long time, it is `idle`. With
  /// several event loops, it is the state of the first one.
  ///
  /// - Throws: `ConnectError` as ``endpoint(for:on:requiresHTTP2:)`` does.
  public func connectivity(
    of origin: Origin,
    requiresHTTP2: Bool = false
  ) throws(ConnectError) -> ConnectivityState {
    let destination = try self.destination(of: origin, requiresHTTP2: requiresHTTP2)
    return self.knownChannel(destination)?.connectivity ?? .idle
  }

  /// The state of the connections to `origin` now, and each one that follows. States that are not taken in time are replaced
  /// by later ones. The sequence ends when the client was shut down. With several event loops, they are the states of the first
  /// one.
  ///
  /// - Throws: `ConnectError` as ``endpoint(for:on:requiresHTTP2:)`` does.
  public func connectivityChanges(
    of origin: Origin,
    requiresHTTP2: Bool = false
  ) throws(ConnectError) -> AsyncStream<ConnectivityState> {
    try self.channel(for: origin, on: nil, requiresHTTP2: requiresHTTP2).connectivityChanges()
  }

  /// All channels as they are now, sorted by origin. Print it into a support ticket.
  public func snapshots() async -> [ChannelSnapshot] {
    let channels = self.state.withLock { $0.channels.all }
    var snapshots: [ChannelSnapshot] = []
    for channel in channels { snapshots.append(await channel.snapshot()) }
    return snapshots.sorted { $0.origin < $1.origin }
  }
}
