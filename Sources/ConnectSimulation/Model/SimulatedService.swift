public import Connect
public import ConnectChannels

/// The servers behind one name of a ``SimulatedCluster``.
///
/// `@unchecked Sendable`: touched on the simulation's executor, and before a run by the one who prepares it.
public final class SimulatedService: @unchecked Sendable {
  /// The name that clients connect to, such as `users.internal:443`.
  public let name: String
  /// All servers of the service, in the order in which they were made, whether or not the name resolves to them.
  public private(set) var servers: [SimulatedServer]
  /// How long it takes until resolvers know of a change. Nothing by default.
  public var nameDelay = Duration.zero
  /// gRPC's service config, as JSON, which resolvers bring with the servers from now on. Nil, the default, for none.
  public var serviceConfig: String? {
    didSet {
      guard self.serviceConfig != oldValue else { return }
      self.change("service config") { [serviceConfig] service in
        service.publishedConfig = serviceConfig
        service.publish()
      }
    }
  }
  /// Routes and clusters, which resolvers bring from now on: calls go through them, and not to the servers that the name stands
  /// for. Nil, the default, for none.
  ///
  /// ```swift
  /// service.routing = Routing(
  ///   routes: [Route(to: [WeightedCluster(name: "old", weight: 9), WeightedCluster(name: "new", weight: 1)])],
  ///   clusters: ["old": Cluster(service.servers[..<9]), "new": Cluster(service.servers[9...])]
  /// )
  /// ```
  public var routing: Routing? {
    didSet {
      guard self.routing != oldValue else { return }
      self.change("routing") { [routing] service in
        service.publishedRouting = routing
        service.publish()
      }
    }
  }
  let resolver = PushResolver()
  /// The servers that the name resolves to.
  private var named: [SimulatedServer]
  private var publishedConfig: String?
  private var publishedRouting: Routing?
  private weak var cluster: SimulatedCluster?

  init(_ name: String, _ servers: [SimulatedServer], in cluster: SimulatedCluster) {
    self.name = name
    self.servers = servers
    self.named = servers
    self.cluster = cluster
    self.resolver.update(servers.map(\.endpoint))
  }

  /// The server with this number among ``servers``, from 0. The number must be in range.
  public subscript(index: Int) -> SimulatedServer { self.servers[index] }

  // MARK: Names

  /// The name resolves to these servers from now on; an empty list for none.
  public func resolve(to servers: [SimulatedServer]) {
    self.change("resolve \(servers.map(\.address))") { service in
      service.named = servers
      service.publish()
    }
  }

  private func publish() {
    self.resolver.update(
      ResolverUpdate(
        endpoints: self.named.map(\.endpoint),
        serviceConfig: self.publishedConfig,
        routing: self.publishedRouting
      )
    )
  }

  /// The name cannot be resolved. Clients keep the servers that they know.
  public func failResolution(
    _ error: ConnectError = ConnectError(code: .unavailable, message: "no such host")
  ) {
    self.change("fail resolution") { $0.resolver.fail(error) }
  }

  private func change(_ what: String, _ work: @escaping @Sendable (SimulatedService) -> Void) {
    guard let cluster = self.cluster else { return }
    let executor = cluster.executor
    executor.run {
      cluster.recorder.note(what, at: nil)
      guard self.nameDelay > .zero else {
        work(self)
        return
      }
      _ = executor.schedule(after: self.nameDelay) { work(self) }
    }
  }

  // MARK: Faults of several servers

  /// Restarts the servers one after the other: each goes away in order (GOAWAY), is gone after `drain`, and back after
  /// `downtime` more.
  public func rollingRestart(every pause: Duration, drain: Duration = .zero, downtime: Duration = .seconds(1))
  {
    guard let executor = self.cluster?.executor else { return }
    for (index, server) in self.servers.enumerated() {
      executor.run {
        _ = executor.schedule(after: pause * index) { server.restart(drain: drain, downtime: downtime) }
      }
    }
  }
}

extension SimulatedServer {
  /// The server as resolvers give it to clients.
  public var endpoint: Endpoint {
    var endpoint = Endpoint(self.endpointAddress)
    endpoint.zone = self.zone
    endpoint.path = self.path
    return endpoint
  }
}
