public import Connect
public import ConnectChannels
public import Metrics
internal import Synchronization

/// Counts what happens to a client's channels, with swift-metrics.
///
/// ```swift
/// var channel = ChannelConfiguration.defaults
/// channel.observer = ChannelMetrics()
/// ```
///
/// | metric | kind | counts |
/// | --- | --- | --- |
/// | `rpc.client.channel.picks` | counter | calls and further attempts that were given an endpoint |
/// | `rpc.client.channel.picks.other_zone` | counter | picks that left the client's zone (`ChannelConfiguration.zone`) |
/// | `rpc.client.channel.drops` | counter | calls that the balancing policy failed on purpose, by `rpc.client.channel.drop.category` |
/// | `rpc.client.channel.queue.duration` | timer | how long calls waited for an endpoint, if they had to wait |
/// | `rpc.client.channel.connections.opened` | counter | connections that took calls |
/// | `rpc.client.channel.connections.failed` | counter | attempts to connect that failed |
/// | `rpc.client.channel.connections.closed` | counter | connections that took calls and are gone |
/// | `rpc.client.channel.ejections` | counter | ejections by outlier detection |
/// | `rpc.client.channel.resolver.updates` | counter | answers of the resolver |
/// | `rpc.client.channel.resolver.failures` | counter | failures of the resolver |
///
/// Each has the dimension `server.address`, the origin, unless ``includesServer`` is off; with ``includesEndpoints`` those of
/// endpoints also have `network.peer.address`. Picks and times in the queue have the dimensions `grpc.lb.backend_service`, the cluster
/// (gRFC A89), and `grpc.lb.locality`, the endpoint's zone (gRFC A78). Drops have `grpc.lb.backend_service`. Both are empty where
/// nobody knows them, since backends such as Prometheus want the same dimensions each time. Beyond 10,000 metrics, new endpoints are
/// counted together as `other`, then new clusters and zones, too.
///
/// With ``MetricFamilies/grpc`` there are also, or only, gRPC's metrics of connections: `grpc.subchannel.…` of gRFC A94 and
/// their older names, `grpc.lb.pick_first.…`. They have the dimension `grpc.target`, which is `other` without ``includesServer``;
/// ``descriptions(of:)`` lists them.
public final class ChannelMetrics: ChannelObserver {
  private struct Key: Hashable {
    var label: String
    /// Nil if servers are counted together.
    var origin: Origin?
    var endpoint: String?
    /// Empty if it is not known; nil if the metric does not have it.
    var cluster: String?
    /// As ``cluster``.
    var zone: String?
    /// Of calls that were dropped.
    var category: String?
  }

  private struct Instruments {
    var counters: [Key: Counter] = [:]
    var timers: [Key: Timer] = [:]
    /// By `grpc.target`.
    var connections: [String: GRPCConnectionInstruments] = [:]

    func hasRoom(for key: Key, limit: Int) -> Bool {
      self.counters.count + self.timers.count < limit || self.counters[key] != nil || self.timers[key] != nil
    }
  }

  /// Beyond this number of metrics, new endpoints are counted together.
  private static let maximumKeys = 10_000
  /// Beyond this number, new clusters and zones are counted together, too. Categories of drops never are: they are few, and all
  /// that a drop has to say.
  private static let maximumPlaces = 11_000

  private let factory: any MetricsFactory
  /// Whose names the metrics have.
  public let families: MetricFamilies
  /// Whether metrics name the server.
  public let includesServer: Bool
  /// Whether there is a metric for each endpoint.
  public let includesEndpoints: Bool
  private let instruments = Mutex(Instruments())

  /// Metrics for the channels of a client, or of several.
  ///
  /// - Parameters:
  ///   - factory: The backend. The default is that of the process; bootstrap it before.
  ///   - includesServer: Whether metrics name the server. Clients that choose their hosts at run time may want to do without.
  ///   - includesEndpoints: Whether there is a metric for each endpoint: off by default, since fleets may be large and change.
  ///   - families: Whose names the metrics have.
  public init(
    factory: any MetricsFactory = MetricsSystem.factory,
    includesServer: Bool = true,
    includesEndpoints: Bool = false,
    families: MetricFamilies = .openTelemetry
  ) {
    self.factory = factory
    self.families = families
    self.includesServer = includesServer
    self.includesEndpoints = includesEndpoints
  }

  /// The metrics of families.
  public static func descriptions(of families: MetricFamilies) -> [MetricDescription] {
    var descriptions: [MetricDescription] = []
    if families.contains(.openTelemetry) { descriptions += ChannelMetric.allCases.map(\.description) }
    if families.contains(.grpc) { descriptions += GRPCConnectionMetric.allCases.map(\.description) }
    return descriptions
  }

  public func channel(to origin: Origin, did event: ChannelEvent) {
    if self.families.contains(.grpc) { self.countConnections(to: origin, event) }
    guard self.families.contains(.openTelemetry) else { return }
    switch event {
    case .stateChanged:
      break
    case .resolved:
      self.count(.resolverUpdates, origin)
    case .resolutionFailed:
      self.count(.resolverFailures, origin)
    case .picked(let endpoint, let waited, let place):
      self.count(.picks, origin, endpoint, place)
      if place.isInOtherZone { self.count(.otherZone, origin, endpoint, place) }
      if let waited { self.timer(.queueDuration, origin, endpoint, place).record(duration: waited) }
    case .dropped(let category, let cluster):
      self.count(.drops, origin, nil, PickPlace(cluster: cluster), category: category)
    case .connectionOpened(let endpoint):
      self.count(.opened, origin, endpoint)
    case .connectionFailed(let endpoint, _):
      self.count(.failed, origin, endpoint)
    case .connectionClosed(let endpoint):
      self.count(.closed, origin, endpoint)
    case .ejected(let endpoint):
      self.count(.ejections, origin, endpoint)
    case .returned:
      break
    }
  }

  private func countConnections(to origin: Origin, _ event: ChannelEvent) {
    switch event {
    case .connectionOpened: self.connections(to: origin).didOpen()
    case .connectionFailed: self.connections(to: origin).didFail()
    case .connectionClosed: self.connections(to: origin).didClose()
    case .stateChanged, .resolved, .resolutionFailed, .picked, .dropped, .ejected, .returned: break
    }
  }

  private func connections(to origin: Origin) -> GRPCConnectionInstruments {
    var target = self.includesServer ? origin.grpcTarget : GRPCLabels.other
    let known = self.instruments.withLock { instruments -> GRPCConnectionInstruments? in
      let connections = instruments.connections
      if connections[target] == nil, connections.count >= Self.maximumKeys { target = GRPCLabels.other }
      return connections[target]
    }
    if let known { return known }
    let made = GRPCConnectionInstruments(self.factory, target: target)
    return self.instruments.withLock { instruments in
      if let other = instruments.connections[target] { return other }
      instruments.connections[target] = made
      return made
    }
  }

  private func count(
    _ name: ChannelMetric,
    _ origin: Origin,
    _ endpoint: String? = nil,
    _ place: PickPlace = PickPlace(),
    category: String? = nil
  ) {
    let key = self.key(name, origin, endpoint, place, category: category)
    if let known = self.instruments.withLock({ $0.counters[key] }) {
      known.increment()
      return
    }
    // Made outside of the lock, since the backend is other people's code.
    let counter = Counter(label: key.label, dimensions: self.dimensions(key), factory: self.factory)
    let kept = self.instruments.withLock { instruments in
      if let other = instruments.counters[key] { return other }
      instruments.counters[key] = counter
      return counter
    }
    kept.increment()
  }

  private func timer(
    _ name: ChannelMetric,
    _ origin: Origin,
    _ endpoint: String,
    _ place: PickPlace
  ) -> Timer {
    let key = self.key(name, origin, endpoint, place)
    if let known = self.instruments.withLock({ $0.timers[key] }) { return known }
    let timer = Timer(
      label: key.label,
      dimensions: self.dimensions(key),
      preferredDisplayUnit: .seconds,
      factory: self.factory
    )
    return self.instruments.withLock { instruments in
      if let other = instruments.timers[key] { return other }
      instruments.timers[key] = timer
      return timer
    }
  }

  private func key(
    _ name: ChannelMetric,
    _ origin: Origin,
    _ endpoint: String?,
    _ place: PickPlace,
    category: String? = nil
  ) -> Key {
    var key = Key(
      label: name.name,
      origin: self.includesServer ? origin : nil,
      endpoint: self.includesEndpoints ? endpoint : nil,
      cluster: name.hasCluster ? place.cluster ?? "" : nil,
      zone: name.hasZone ? place.zone ?? "" : nil,
      category: category
    )
    self.instruments.withLock { instruments in
      if instruments.hasRoom(for: key, limit: Self.maximumKeys) { return }
      if key.endpoint != nil { key.endpoint = GRPCLabels.other }
      if instruments.hasRoom(for: key, limit: Self.maximumPlaces) { return }
      if key.cluster != nil { key.cluster = GRPCLabels.other }
      if key.zone != nil { key.zone = GRPCLabels.other }
    }
    return key
  }

  private func dimensions(_ key: Key) -> [(String, String)] {
    var dimensions: [(String, String)] = []
    if let origin = key.origin { dimensions.append((SemanticConventions.serverAddress, origin.description)) }
    if let endpoint = key.endpoint { dimensions.append((SemanticConventions.peerAddress, endpoint)) }
    if let cluster = key.cluster { dimensions.append((GRPCLabels.backendService, cluster)) }
    if let zone = key.zone { dimensions.append((GRPCLabels.locality, zone)) }
    if let category = key.category { dimensions.append((GRPCLabels.dropCategory, category)) }
    return dimensions
  }
}
