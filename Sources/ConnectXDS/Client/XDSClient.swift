public import Connect
public import ConnectChannels
public import ConnectNIO
public import Logging
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Gets the configuration of clients from control planes, by the xDS protocol (gRFC A27): ADS over gRPC, version 3 of the API.
///
/// One client serves all targets of a process: what several of them need is asked for once. It has a stream to a control plane only
/// while something is needed from it. If a control plane cannot be reached, what it has sent before stays in use, and a
/// stream is tried again after 1 second, then after ever longer times up to 2 minutes. See ``XDSBootstrap/servers`` for what
/// happens if nothing was sent before.
public final class XDSClient: Sendable {
  /// The transport to a control plane. It is asked for when a stream starts, on the client's executor, and should answer with the
  /// same transport each time.
  ///
  /// It should send HTTP/2 pings while a stream is open: a stream is silent for hours, and nothing else finds that its connection
  /// is dead. Its connections should give up after less than 20 seconds, so that other control planes take over soon.
  public typealias Transport = @Sendable (XDSBootstrap.Server) throws -> any HTTPClientInterface

  /// Where control planes are, and who this client is.
  public let bootstrap: XDSBootstrap
  /// Where the client lives.
  let executor: any CallExecutor
  /// What makes calls to control planes.
  let transport: Transport
  let logger: Logger
  /// Finds the addresses of clusters that have a name.
  let names: any NameResolver
  let companions = ClientCompanions()
  /// Decides what is random in the companions.
  let companionSeed: UInt64
  private let core: Confined<DiscoveryClient>

  /// A client over transports of the caller. It opens no connection before something is needed.
  ///
  /// - Parameters:
  ///   - bootstrap: Where control planes are, and who this client is.
  ///   - executor: Where the client lives: an event loop, or the executor of a test or a simulation. Its timers are the only
  ///     clock of the client.
  ///   - seed: Decides the random part of the times between streams; nil for another one in each client.
  ///   - logger: Logs what control planes send that cannot be used, and their failures. By default nothing is logged.
  ///   - names: Finds the servers of clusters for which the control plane gives a name (`LOGICAL_DNS`): the system's resolver by
  ///     default.
  ///   - transport: See ``Transport``.
  public convenience init(
    bootstrap: XDSBootstrap,
    on executor: any CallExecutor,
    seed: UInt64? = nil,
    logger: Logger = Logger(label: "connect.xds", factory: { _ in SwiftLogNoOpLogHandler() }),
    names: any NameResolver = SystemResolver(),
    transport: @escaping Transport
  ) {
    let decoder = ResourceDecoder(bootstrap: bootstrap)
    self.init(
      bootstrap: bootstrap,
      on: executor,
      seed: seed,
      logger: logger,
      names: names,
      transport: transport,
      streams: CallTransport(transport: transport, logger: logger)
    ) { decoder.decode($0, as: $1) }
  }

  /// - Parameters:
  ///   - streams: Makes ADS streams.
  ///   - wallClock: The time since 1970.
  ///   - decode: Checks resources.
  init(
    bootstrap: XDSBootstrap,
    on executor: any CallExecutor,
    seed: UInt64?,
    logger: Logger,
    names: any NameResolver = SystemResolver(),
    transport: @escaping Transport,
    streams: any DiscoveryTransport,
    wallClock: @escaping () -> Duration = { .seconds(Date().timeIntervalSince1970) },
    decode: @escaping DiscoveryClient.Decode
  ) {
    self.bootstrap = bootstrap
    self.executor = executor
    self.transport = transport
    self.logger = logger
    self.names = names
    var random = seed.map { SeededRandom(seed: $0) } ?? .system()
    self.companionSeed = random.next()
    let environment = DiscoveryEnvironment(
      executor: executor,
      transport: streams,
      node: bootstrap.node.message,
      wallClock: wallClock,
      logger: logger,
      random: random
    )
    let core = DiscoveryClient(bootstrap, environment, decode: decode)
    self.core = Confined(core, to: executor)
  }

  deinit {
    let (core, companions) = (self.core, self.companions)
    self.executor.execute {
      companions.shutDown()
      core.value.shutDown()
    }
  }

  /// Ends all streams, for good. What is resolved through the client stays as it is; what is not known yet never will be. May be
  /// called from any thread, and more than once.
  public func shutDown() {
    let (core, companions) = (self.core, self.companions)
    self.executor.run {
      companions.shutDown()
      core.value.shutDown()
    }
  }

  /// What the client asks for, and what it knows of it: nothing if the client's executor does not run any more.
  public func snapshot() async -> XDSSnapshot {
    let core = self.core
    return await withCheckedContinuation { continuation in
      let reply = SnapshotReply(continuation, node: self.bootstrap.node)
      self.executor.run { reply.send(XDSSnapshot(core.value)) }
    }
  }

  /// The same. To be called on the client's executor.
  var currentSnapshot: XDSSnapshot { XDSSnapshot(self.core.value) }

  /// The server that a resource in use came from, for reports about it. To be called on the client's executor.
  func server(of type: ResourceType, _ name: String) -> XDSBootstrap.Server? {
    guard let key = try? ResourceKey(type, name, in: self.bootstrap),
      let cached = self.core.value.resource(key)
    else { return nil }
    return cached.resource == nil ? nil : cached.server
  }

  /// A client for calls to a control plane.
  func protocolClient(for server: XDSBootstrap.Server) throws -> ProtocolClient {
    ProtocolClient(
      httpClient: try self.transport(server),
      config: try server.clientConfig(logger: self.logger)
    )
  }
}

/// Waits for a snapshot. An executor that is over, such as an event loop that was shut down, drops the work that it is given: then
/// the answer is an empty one.
private final class SnapshotReply: Sendable {
  private let continuation: Mutex<CheckedContinuation<XDSSnapshot, Never>?>
  private let node: XDSBootstrap.Node

  init(_ continuation: CheckedContinuation<XDSSnapshot, Never>, node: XDSBootstrap.Node) {
    self.continuation = Mutex(continuation)
    self.node = node
  }

  func send(_ snapshot: XDSSnapshot) {
    self.continuation.withLock { $0.take() }?.resume(returning: snapshot)
  }

  deinit { self.send(XDSSnapshot(resources: [], node: self.node.message)) }
}

extension XDSClient: ResourceSource {
  func watch(
    _ type: ResourceType,
    _ name: String,
    _ report: @escaping @Sendable (ResourceState) -> Void
  ) -> any ResourceWatch {
    self.core.value.watch(type, name, report)
  }
}
