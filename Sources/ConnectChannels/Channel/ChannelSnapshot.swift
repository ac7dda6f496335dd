internal import Connect

/// What a channel, its endpoints and their connections do at one moment: for support tickets, dashboards and tests. Its
/// description is a table for people.
public struct ChannelSnapshot: Sendable, Hashable {
  /// What a channel knows of one endpoint.
  public struct Endpoint: Sendable, Hashable {
    /// The addresses, with commas between them.
    public var address: String
    /// The state of its connections.
    public var state: ConnectivityState
    /// Whether outlier detection keeps calls away.
    public var isEjected: Bool
    /// Connections that take calls.
    public var connections: Int
    /// Calls in flight.
    public var calls: Int
    /// Calls since the endpoint was found.
    public var startedCalls: Int
    /// How many of the started calls have failed, where the policy counts failures; see
    /// ``BalancingPolicy/outlierDetection(_:of:)``.
    public var failedCalls: Int
    /// Connections that were opened since the endpoint was found.
    public var openedConnections: Int
    /// Attempts to connect that failed.
    public var failedAttempts: Int
    /// How often outlier detection has ejected it.
    public var ejections: Int
    /// The round trip of the last answered ping on any of the connections; nil if there was none. Pings are sent by
    /// HTTP/2's keepalive, and when calls time out in silence.
    public var lastRoundTrip: Duration?
    /// Why the last attempt, connection or health check has failed.
    public var lastError: String?
  }

  /// A cluster of the channel.
  public struct NamedCluster: Sendable, Hashable {
    /// The cluster's name.
    public var name: String
    /// What the cluster's endpoints do.
    public var snapshot: ChannelSnapshot
  }

  /// Such as `https://payments.example:443`.
  public var origin: String
  /// The state of the channel as a whole.
  public var state: ConnectivityState
  /// gRPC's name of the balancing policy; `routes` if calls go to clusters, which have policies of their own.
  public var policy: String
  /// The parts of a policy with children: priorities, targets, zones.
  public var parts: [BalancerPart]
  /// The clusters that routes lead to, or that calls still have, by name in alphabetical order. Clusters that nothing uses any
  /// more are not among them, while they close their connections.
  public var clusters: [NamedCluster]
  /// Calls that wait for the resolver, an endpoint or a connection.
  public var waitingCalls: Int
  /// The endpoints that the resolver has named last.
  public var endpoints: [Endpoint]
  /// How often the resolver has given an answer.
  public var resolverUpdates: Int
  /// Why the name could not be resolved, if it never could.
  public var resolutionError: String?
}

extension ChannelSnapshot: CustomStringConvertible {
  public var description: String {
    let areRouted = self.policy == Self.routes
    let targets = areRouted ? "\(self.clusters.count) clusters" : "\(self.endpoints.count) endpoints"
    var lines = [
      "\(self.origin): \(self.state), \(self.policy), \(targets), "
        + "\(self.waitingCalls) calls wait, \(self.resolverUpdates) resolver updates"
    ]
    if let error = self.resolutionError { lines.append("  cannot be resolved: \(error)") }
    for part in self.parts { lines += part.lines(indent: "  ") }
    for endpoint in self.endpoints {
      let state = endpoint.isEjected ? "\(endpoint.state) (ejected)" : "\(endpoint.state)"
      var line =
        "  \(endpoint.address): \(state), \(endpoint.connections) connections, \(endpoint.calls) calls, "
        + "\(endpoint.startedCalls) started, \(endpoint.openedConnections) connections opened, "
        + "\(endpoint.failedAttempts) attempts failed"
      if endpoint.failedCalls > 0 { line += ", \(endpoint.failedCalls) calls failed" }
      if endpoint.ejections > 0 { line += ", ejected \(endpoint.ejections) times" }
      if let time = endpoint.lastRoundTrip { line += ", last ping \(time)" }
      if let error = endpoint.lastError { line += "; last error: \(error)" }
      lines.append(line)
    }
    for cluster in self.clusters {
      let text = cluster.snapshot.description.split(separator: "\n").joined(separator: "\n  ")
      lines.append("  cluster \(cluster.name) of \(text)")
    }
    return lines.joined(separator: "\n")
  }
}

extension ChannelSnapshot {
  /// What takes the place of a policy.
  private static let routes = "routes"

  /// To be called on the channel's executor.
  package init(_ channel: OriginChannel) {
    let subchannels = channel.endpoints.subchannels
    self.init(
      origin: channel.origin.description,
      state: channel.connectivity,
      policy: channel.clusters?.areRouted == true ? Self.routes : channel.endpoints.policy.name,
      parts: channel.endpoints.parts,
      clusters: channel.clusters?.table.snapshots ?? [],
      waitingCalls: channel.serviceRules.waitingCount + channel.waiting.count + subchannels.waitingCount,
      endpoints: subchannels.list.map(\.snapshot),
      resolverUpdates: channel.resolution.updateCount,
      resolutionError: channel.resolution.error?.message
    )
  }
}

extension Subchannel {
  fileprivate var snapshot: ChannelSnapshot.Endpoint {
    let balanced = self.balanced
    return ChannelSnapshot.Endpoint(
      address: self.endpoint.description,
      state: balanced.state,
      isEjected: self.isEjected,
      connections: self.pool.state.connections.count(.open),
      calls: self.callCount,
      startedCalls: self.pool.state.connections.startedStreams - self.watches.startedCount,
      failedCalls: self.counting.calls.failedCount,
      openedConnections: self.counters.openedConnections,
      failedAttempts: self.counters.failedAttempts,
      ejections: self.counters.ejections,
      lastRoundTrip: self.counters.lastRoundTrip,
      lastError: balanced.lastError
    )
  }
}
