public import Connect
public import ConnectChannels
internal import ConnectTesting
internal import Logging
internal import Synchronization

/// The transport of a client in a ``SimulatedCluster``: real channels, with the cluster's names, network and time.
public final class SimulatedHTTPClient: HTTPClientInterface, TestDouble {
  private struct Key: Hashable {
    var origin: Origin
    var requiresHTTP2: Bool
  }

  /// The client's zone.
  public let zone: String
  private let cluster: SimulatedCluster
  private let configuration: ChannelConfiguration
  private let channels = Mutex(ChannelTable<Key>())
  private let random: Mutex<SeededRandom>

  init(_ cluster: SimulatedCluster, _ configuration: ChannelConfiguration, zone: String, seed: UInt64) {
    self.cluster = cluster
    var configuration = configuration
    if configuration.zone == nil { configuration.zone = zone }
    self.configuration = configuration
    self.zone = zone
    self.random = Mutex(SeededRandom(seed: seed))
  }

  public var authenticatesClient: Bool { false }

  public func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    let key = Key(origin: origin, requiresHTTP2: requiresHTTP2)
    return self.channels.withLock { $0.channel(key) { self.makeChannel(key) } }
  }

  private func makeChannel(_ key: Key) -> OriginChannel {
    OriginChannel(
      ChannelEnvironment(
        origin: key.origin,
        executor: self.cluster.executor,
        opener: SimulatedOpener(
          cluster: WeakCluster(value: self.cluster),
          origin: key.origin,
          zone: self.zone,
          requiresHTTP2: key.requiresHTTP2
        ),
        resolver: SimulatedResolver(cluster: WeakCluster(value: self.cluster)),
        configuration: self.configuration,
        version: .http2,
        logger: Logger(label: "connect.simulation", factory: { _ in SwiftLogNoOpLogHandler() }),
        seed: self.random.withLock { $0.next() }
      ),
      onIdle: { [weak self] _ in _ = self?.channels.withLock { $0.release(key) } }
    )
  }

  /// All channels as they are now, sorted by origin.
  public func snapshots() async -> [ChannelSnapshot] {
    var snapshots: [ChannelSnapshot] = []
    for channel in self.channels.withLock({ $0.all }) { snapshots.append(await channel.snapshot()) }
    return snapshots.sorted { $0.origin < $1.origin }
  }
}

/// The names of a cluster.
struct SimulatedResolver: NameResolver, @unchecked Sendable {
  /// `@unchecked Sendable`: a weak reference that is never set again.
  let cluster: WeakCluster

  func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let name = "\(origin.host):\(origin.port)"
    if let service = self.cluster.value?.services.first(where: { $0.name == name }) {
      return service.resolver.watch(origin, on: executor, report)
    }
    let resolver = PushResolver()
    resolver.fail(ConnectError(code: .unavailable, message: "the cluster has no service \(name)"))
    return resolver.watch(origin, on: executor, report)
  }
}
