public import Connect
internal import ConnectChannels
public import Logging
public import NIOCore
internal import NIOPosix
internal import Synchronization

/// HTTP/1.1 and HTTP/2 over sockets, on SwiftNIO: `http://host:port`, `https://host:port`, `unix:/path`,
/// `unix-abstract:NAME`, `vsock:CID:PORT`, or a socket that is connected already.
///
/// ```swift
/// let client = NIOHTTPClient()
/// // … calls …
/// await client.shutdown()
/// ```
///
/// Nothing needs to be started: the first call to an origin connects. One client serves any number of origins
/// and of `ProtocolClient`s, and shares connections among them. A client that is dropped without
/// ``shutdown(within:)`` closes its connections as soon as they have no calls.
public final class NIOHTTPClient: HTTPClientInterface, Sendable {
  struct Destination: Hashable {
    var origin: Origin
    var version: Configuration.HTTPVersion
  }

  struct EndpointKey: Hashable {
    var destination: Destination
    var eventLoop: ObjectIdentifier
  }

  struct State {
    var isShutDown = false
    var channels = ChannelTable<EndpointKey>()
    /// The first channel of each destination, for callers that ask for no particular event loop. Empty if the
    /// configuration has several event loops: such callers then get the channel on the first of them.
    var sharedChannels = ChannelTable<Destination>()
    /// What the channels of a destination have in common, as long as there are any.
    var origins = WeakTable<Destination, SharedOrigin>()
    /// What keeps the clusters of an origin alive, for all versions of HTTP.
    var clusters = WeakTable<Origin, ClusterHandles>()
    var executors: [ObjectIdentifier: EventLoopExecutor] = [:]
    /// One for each version, since what is offered by ALPN is part of a TLS context.
    var tls: [Configuration.HTTPVersion: ClusterTLS] = [:]
  }

  private let configuration: Configuration
  private let proxies: Result<ProxySettings, ConnectError>
  /// What is known of HTTP/3 at origins; nil if nobody looks for it.
  private let alternatives: SharedAlternatives?
  private let eventLoopGroup: any EventLoopGroup
  private let logger: Logger
  /// Empty for one event loop.
  private let lanes: [EventLoopExecutor]
  let state: Mutex<State>

  /// A client without connections; the first calls open them. Call ``shutdown(within:)`` when it is no longer needed.
  ///
  /// - Parameters:
  ///   - configuration: Holds for the client's whole life. ``Configuration/defaults`` by default.
  ///   - eventLoopGroup: Where connections and calls live. By default the group that the process shares, which
  ///     is never shut down. A group of your own has to outlive the client's ``shutdown(within:)``, and may end then.
  ///   - logger: Gets what happens to connections, at level `debug`, and at level `warning` that changed
  ///     certificate files cannot be used. By default nothing is logged.
  public init(
    configuration: Configuration = .defaults,
    eventLoopGroup: (any EventLoopGroup)? = nil,
    logger: Logger? = nil
  ) {
    if configuration.keepsFreedMemory { FreedMemory.keep() }
    var configuration = configuration.fittedToConnectedSocket
    configuration.channel.addProcessObserver()
    self.configuration = configuration
    self.proxies = configuration.proxy.settings()
    let looksForHTTP3 = configuration.http3?.isDiscovered == true
    self.alternatives = looksForHTTP3 ? SharedAlternatives(network: { LocalNetwork.current }) : nil
    let eventLoopGroup = eventLoopGroup ?? MultiThreadedEventLoopGroup.singleton
    self.eventLoopGroup = eventLoopGroup
    let lanes = configuration.eventLoops > 1 ? eventLoopGroup.executors(configuration.eventLoops) : []
    self.lanes = lanes
    var state = State()
    for lane in lanes { state.executors[ObjectIdentifier(lane.eventLoop)] = lane }
    self.state = Mutex(state)
    self.logger = logger ?? Logger(label: "connect.http", factory: { _ in SwiftLogNoOpLogHandler() })
  }

  /// Whether there is a client certificate, for all servers or for those of a cluster, or one may come with a cluster.
  public var authenticatesClient: Bool {
    self.configuration.tls.clientCertificate != nil
      || self.configuration.tlsOfClusters.values.contains { $0.clientCertificate != nil }
      || self.configuration.clusterSecurity != nil
  }

  /// The executors of ``Configuration/eventLoops``, if they are more than one.
  public var executors: [any CallExecutor] { self.lanes }

  deinit {
    let channels = self.state.withLock { $0.isShutDown ? [] : $0.channels.all }
    for channel in channels { channel.closeWhenIdle() }
  }

  /// The endpoint of `origin`, which all `ProtocolClient`s share. Origins take turns on the loops of the group. If
  /// ``Configuration/eventLoops`` asks for several loops, it is the endpoint on the first of them. With `executor`, it
  /// is the endpoint on that executor's loop.
  ///
  /// With `requiresHTTP2`, ``Configuration/HTTPVersion/automatic`` means HTTP/2 by prior knowledge in cleartext and
  /// `h2` alone in the TLS handshake. Such an endpoint has its own connections. It shares them with others only if the
  /// configuration says ``Configuration/HTTPVersion/http2Only``.
  ///
  /// - Throws: `ConnectError` with `invalid_argument` if `origin` is no possible address, or if `executor` did not come
  ///   from an endpoint of a `NIOHTTPClient`. With `failed_precondition` if HTTP/2 is required, but the configuration
  ///   says ``Configuration/HTTPVersion/http1Only``, or if the settings of proxies cannot be used. With
  /// `unavailable` if the client was shut down.
  public func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    try self.channel(for: origin, on: executor, requiresHTTP2: requiresHTTP2)
  }

  func channel(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> OriginChannel {
    let destination = try self.destination(of: origin, requiresHTTP2: requiresHTTP2)
    var eventLoop: (any EventLoop)?
    if let executor {
      guard let executor = executor as? EventLoopExecutor else {
        throw ConnectError(
          code: .invalidArgument,
          message: "the executor is not one of this HTTP client's: take one of its executors"
        )
      }
      eventLoop = executor.eventLoop
    } else {
      eventLoop = self.lanes.first?.eventLoop
    }
    let version = destination.version
    if eventLoop == nil, let channel = self.state.withLock({ $0.sharedChannels[destination] }) {
      return channel
    }
    let proxy = try self.proxy(for: origin)
    try self.configuration.checkRoutes(of: origin, through: proxy)
    try self.configuration.checkIdentity(of: origin)
    // Not under the lock: a group of the user's may call this client.
    let chosenLoop = eventLoop ?? self.eventLoopGroup.next()
    let channel: OriginChannel? = self.state.withLock { state in
      // It may have been made while the group was asked.
      if eventLoop == nil, let channel = state.sharedChannels[destination] { return channel }
      let loopID = ObjectIdentifier(chosenLoop)
      let key = EndpointKey(destination: destination, eventLoop: loopID)
      if let channel = state.channels[key] { return channel }
      // It would need an event loop, which may have ended.
      guard !state.isShutDown else { return nil }
      let executor = state.executors[loopID] ?? EventLoopExecutor(chosenLoop)
      let tls = state.tls[version] ?? self.makeTLS(version)
      let shared = state.origins[destination]
      let channel = self.makeChannel(
        key,
        through: proxy,
        on: executor,
        tls,
        sharing: shared,
        clusters: state.clusters[origin]
      )
      if shared == nil { state.origins[destination] = channel.shared }
      if state.clusters[origin] == nil { state.clusters[origin] = channel.shared.clusters }
      state.executors[loopID] = executor
      state.tls[version] = tls
      state.channels[key] = channel
      if self.lanes.isEmpty, state.sharedChannels[destination] == nil {
        state.sharedChannels[destination] = channel
      }
      return channel
    }
    guard let channel else { throw .clientShutDown }
    return channel
  }

  private func makeChannel(
    _ key: EndpointKey,
    through proxy: Proxy?,
    on executor: EventLoopExecutor,
    _ tls: ClusterTLS,
    sharing shared: SharedOrigin?,
    clusters: ClusterHandles?
  ) -> OriginChannel {
    var configuration = self.configuration
    // The proxy finds the server.
    if proxy != nil { configuration.channel.resolver = nil }
    let destination = key.destination
    let route = proxy.map { ProxyRoute(proxy: $0, origin: destination.origin) }
    let origin = destination.origin
    let isHTTP3Alone = configuration.isHTTP3Alone(for: origin)
    let version = isHTTP3Alone ? .http3 : configuration.knownVersion(destination.version, for: origin.scheme)
    // Where HTTP/3 may be found beside TCP.
    let alternatives = proxy == nil && origin.scheme == .https ? self.alternatives : nil
    if let alternatives { configuration.channel.look(for: alternatives) }
    let connector = Connector(
      origin: destination.origin,
      version: destination.version,
      route: route,
      configuration: configuration,
      tls: tls,
      executor: executor,
      keepalivePace: .makeBoxSendingValue(1, eventLoop: executor.eventLoop),
      logger: self.logger
    )
    var opener: any ConnectionOpener = connector
    if isHTTP3Alone || alternatives != nil, let http3 = configuration.http3 {
      let quic = http3.makeOpener(
        HTTP3Environment(
          origin: origin,
          configuration: configuration,
          tls: tls,
          executor: executor,
          eventLoop: executor.eventLoop,
          logger: self.logger
        )
      )
      opener =
        alternatives.map {
          AlternativesOpener(
            origin,
            tcp: connector,
            quic: quic,
            alternatives: $0,
            on: executor,
            logger: self.logger
          )
        } ?? quic
    }
    return OriginChannel(
      ChannelEnvironment(
        origin: destination.origin,
        executor: executor,
        opener: opener,
        resolver: route.map { ProxyResolver($0, asking: SystemResolver()) } ?? SystemResolver(),
        configuration: configuration.channel,
        limits: ConnectionLimits(
          http1Connections: configuration.limits.http1ConnectionsPerAddress,
          http2Connections: configuration.limits.http2ConnectionsPerAddress,
          waitingCalls: configuration.limits.waitingCalls,
          idleTimeout: configuration.timeouts.idle
        ),
        version: version,
        connectTimeout: configuration.timeouts.connect,
        maximumHeaderListSize: configuration.maximumHeaderListSize(version, orHTTP3: alternatives != nil),
        logger: self.logger,
        sharing: shared,
        clusters: clusters
      ),
      onIdle: { [weak self] _ in self?.forget(key) }
    )
  }

  /// The channel has had no calls for a long time. Owners that still hold it may go on with it.
  private func forget(_ key: EndpointKey) {
    let channels = self.state.withLock { state in
      let isShared = state.sharedChannels.peek(key.destination) === state.channels.peek(key)
      return [state.channels.release(key), isShared ? state.sharedChannels.release(key.destination) : nil]
    }
    // Released outside of the lock.
    _ = channels
  }

  /// The channel for callers that ask for no particular event loop, if there is one. Does not hold it.
  func knownChannel(_ destination: Destination) -> OriginChannel? {
    let eventLoop = self.lanes.first.map { ObjectIdentifier($0.eventLoop) }
    return self.state.withLock { state in
      guard let eventLoop else { return state.sharedChannels.peek(destination) }
      return state.channels.peek(EndpointKey(destination: destination, eventLoop: eventLoop))
    }
  }

  func destination(of origin: Origin, requiresHTTP2: Bool) throws(ConnectError) -> Destination {
    try origin.checkAddress()
    // HTTP/3 serves gRPC and all other protocols, so they share connections.
    guard !self.configuration.isHTTP3Alone(for: origin) else {
      if self.configuration.connectedSocket != nil { throw .noHTTP3OverConnectedSocket }
      return Destination(origin: origin, version: .automatic)
    }
    return Destination(origin: origin, version: try self.version(for: origin, requiresHTTP2: requiresHTTP2))
  }

  private func version(
    for origin: Origin,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> Configuration.HTTPVersion {
    guard requiresHTTP2 else { return self.configuration.version(for: origin.scheme) }
    guard self.configuration.version != .http1Only else {
      throw ConnectError(
        code: .failedPrecondition,
        message: "the call's protocol needs HTTP/2, but the HTTP client is configured for HTTP/1.1 only"
      ).asFinal
    }
    return .http2Only
  }

  private func proxy(for origin: Origin) throws(ConnectError) -> Proxy? {
    guard origin.scheme.isTCP else { return nil }
    let proxy = try self.proxies.get().proxy(host: origin.host, port: origin.port)
    if proxy != nil, self.configuration.isHTTP3Alone(for: origin) {
      throw ConnectError(
        code: .failedPrecondition,
        message: """
          \(origin) is behind a proxy, which HTTP/3, the only version that the client's configuration allows, \
          does not go through
          """
      ).asFinal
    }
    return proxy
  }

  private func makeTLS(_ version: Configuration.HTTPVersion) -> ClusterTLS {
    ClusterTLS(
      self.configuration,
      applicationProtocols: version.applicationProtocols,
      logger: self.logger
    )
  }

  /// Ends the client. New calls fail with `unavailable` from now on, those under way may finish, and then all
  /// connections are closed. What has not finished after `limit` fails with `unavailable`.
  ///
  /// Returns once no connection is left. A group of event loops of your own may end then: late calls fail at once all the
  /// same. May be called more than once; the shortest limit counts.
  public func shutdown(within limit: Duration = .seconds(30)) async {
    let (channels, executors) = self.state.withLock { state in
      state.isShutDown = true
      return (state.channels.all, Array(state.executors.values))
    }
    // No channel opens connections any more. A connection that has the socket closes it.
    defer { self.configuration.connectedSocket?.close() }
    await withTaskGroup(of: Void.self) { group in
      for channel in channels {
        group.addTask {
          await withCheckedContinuation { continuation in
            channel.shutDown(within: limit) { continuation.resume() }
          }
        }
      }
    }
    // The group that the process shares never ends.
    guard self.eventLoopGroup as? MultiThreadedEventLoopGroup !== MultiThreadedEventLoopGroup.singleton else {
      return
    }
    for executor in executors { await executor.leaveEventLoop() }
  }
}

extension EventLoopGroup {
  /// - Parameter count: How many at most.
  fileprivate func executors(_ count: Int) -> [EventLoopExecutor] {
    self.makeIterator().prefix(count).map(EventLoopExecutor.init)
  }
}

extension NIOHTTPClient.Configuration {
  /// Whether connections to `origin` go over QUIC only.
  fileprivate func isHTTP3Alone(for origin: Origin) -> Bool {
    origin.scheme == .https && self.http3?.isDiscovered == false
  }

  fileprivate func maximumHeaderListSize(
    _ version: HTTPConnectionInfo.Version?,
    orHTTP3 mayBeHTTP3: Bool
  ) -> Int {
    let size = self.maximumHeaderListSize(version)
    return mayBeHTTP3 ? max(size, self.maximumHeaderListSize(.http3)) : size
  }

  private func maximumHeaderListSize(_ version: HTTPConnectionInfo.Version?) -> Int {
    switch version {
    case .http1: self.http1.maxHeaderListSize
    case .http2: self.http2.maxHeaderListSize
    case .http3: self.http3?.maximumHeaderListSize ?? HeaderListSize.defaultLimit
    case nil: max(self.http1.maxHeaderListSize, self.http2.maxHeaderListSize)
    }
  }
}
