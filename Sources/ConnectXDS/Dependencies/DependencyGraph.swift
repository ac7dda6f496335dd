internal import Connect
internal import ConnectChannels

/// Something that a target's configuration is made of.
enum Dependency: Sendable, Hashable {
  case resource(ResourceType, String)
  /// The addresses of a logical DNS cluster.
  case addresses(host: String, port: Int)
}

/// What is known of one target's resources. It says what to watch, and what the configuration is. It does no I/O.
struct DependencyGraph {
  /// What is known of a dependency.
  enum Knowledge: Sendable {
    case present(Resource)
    case missing(ConnectError)
  }

  /// What follows from what is known.
  struct Evaluation {
    /// What to watch, in the order in which it was found, each once. Everything else is not needed.
    var wanted: [Dependency]
    /// Nil while something is not known yet: the last configuration stays in use (make before break).
    var result: Result<XDSConfiguration, XDSConfiguration.Absence>?
  }

  /// The deepest nesting of aggregate clusters (gRFC A37).
  static let maximumDepth = 16

  let listenerName: String
  /// What virtual hosts are chosen by.
  let host: String
  /// The clusters that routes or calls of channels hold. They are watched also if no route leads there any more (gRFC A31).
  var kept: Set<String> = []
  private var known: [Dependency: Knowledge] = [:]
  private var lastWanted: [Dependency] = []
  private var lastWantedSet: Set<Dependency> = []

  init(listenerName: String, host: String) {
    self.listenerName = listenerName
    self.host = host
  }

  /// - Returns: Whether it is wanted.
  @discardableResult
  mutating func set(_ knowledge: Knowledge, of dependency: Dependency) -> Bool {
    guard self.lastWantedSet.contains(dependency) else { return false }
    self.known[dependency] = knowledge
    return true
  }

  func isPresent(_ dependency: Dependency) -> Bool {
    if case .present = self.known[dependency] { true } else { false }
  }

  /// Also forgets what is not wanted any more.
  mutating func evaluate() -> Evaluation {
    var walk = DependencyWalk(known: self.known)
    let result = self.result(&walk)
    // Those that are not known yet keep no routes from being used.
    let kept = walk.clustersInUse(self.kept)
    if walk.isWaitingForRoutes {
      // The clusters of the old routes go on being watched until there are new ones.
      for dependency in self.lastWanted { walk.want(dependency) }
    }
    for dependency in self.lastWanted where !walk.isWanted(dependency) { self.known[dependency] = nil }
    self.lastWanted = walk.wanted
    self.lastWantedSet = walk.wantedSet
    switch result {
    case nil: return Evaluation(wanted: walk.wanted, result: nil)
    case .success(var configuration):
      configuration.clusters.merge(kept) { routed, _ in routed }
      return Evaluation(wanted: walk.wanted, result: .success(configuration))
    case .failure(let error):
      return Evaluation(wanted: walk.wanted, result: .failure(.init(error: error, clusters: kept)))
    }
  }

  private func result(_ walk: inout DependencyWalk) -> Result<XDSConfiguration, ConnectError>? {
    let listener: ListenerResource
    switch walk.find(.resource(.listener, self.listenerName)) {
    case .present(.listener(let resource)): listener = resource
    case .missing(let error): return .failure(error)
    default:
      walk.isWaitingForRoutes = true
      return nil
    }
    let routes: RouteConfigurationResource
    let source: String
    switch listener.routes {
    case .inline(let inline):
      routes = inline
      source = "the listener \"\(self.listenerName)\""
    case .named(let name):
      switch walk.find(.resource(.routeConfiguration, name)) {
      case .present(.routeConfiguration(let resource)): routes = resource
      case .missing(let error): return .failure(error)
      default:
        walk.isWaitingForRoutes = true
        return nil
      }
      source = "the route configuration \"\(name)\""
    }
    guard let virtualHost = routes.virtualHost(for: self.host) else {
      return .failure(
        ConnectError(
          code: .unavailable,
          message:
            "\(source) has no virtual host for \"\(self.host)\"; add the domain to one on the control plane"
        )
      )
    }
    return self.clusters(of: virtualHost, &walk)
      .map {
        .success(XDSConfiguration(listener: listener, virtualHost: virtualHost, clusters: $0))
      }
  }

  private func clusters(
    of virtualHost: RouteConfigurationResource.VirtualHost,
    _ walk: inout DependencyWalk
  ) -> [String: XDSConfiguration.Cluster]? {
    var clusters: [String: XDSConfiguration.Cluster] = [:]
    var seen: Set<String> = []
    // All of them are looked at even if one is not known yet, so that all watches begin at once.
    for route in virtualHost.routes {
      guard case .forward(let forward) = route.action else { continue }
      for share in forward.shares where seen.insert(share.cluster).inserted {
        clusters[share.cluster] = walk.cluster(share.cluster)
      }
    }
    return walk.isComplete ? clusters : nil
  }
}

/// One walk from the listener to the endpoints.
private struct DependencyWalk {
  let known: [Dependency: DependencyGraph.Knowledge]
  private(set) var wanted: [Dependency] = []
  private(set) var wantedSet: Set<Dependency> = []
  /// Whether all clusters and endpoints are known.
  private(set) var isComplete = true
  var isWaitingForRoutes = false

  init(known: [Dependency: DependencyGraph.Knowledge]) {
    self.known = known
  }

  mutating func want(_ dependency: Dependency) {
    if self.wantedSet.insert(dependency).inserted { self.wanted.append(dependency) }
  }

  func isWanted(_ dependency: Dependency) -> Bool { self.wantedSet.contains(dependency) }

  mutating func find(_ dependency: Dependency) -> DependencyGraph.Knowledge? {
    self.want(dependency)
    return self.known[dependency]
  }

  /// Those that are known.
  mutating func clustersInUse(_ names: Set<String>) -> [String: XDSConfiguration.Cluster] {
    let wasComplete = self.isComplete
    var clusters: [String: XDSConfiguration.Cluster] = [:]
    for name in names.sorted() { clusters[name] = self.cluster(name) }
    self.isComplete = wasComplete
    return clusters
  }

  /// Nil if it is not known yet.
  mutating func cluster(_ name: String) -> XDSConfiguration.Cluster? {
    switch self.resource(name) {
    case nil: return nil
    case .failure(let error): return .problem(error.message ?? "the cluster \"\(name)\" cannot be used")
    case .success(let resource):
      guard case .aggregate = resource.kind else { return self.leaf(name, resource).map { .leaf($0) } }
      var expansion = AggregateExpansion()
      let wasComplete = self.isComplete
      self.isComplete = true
      self.expand(name, depth: 0, &expansion)
      let hasAll = self.isComplete
      self.isComplete = (hasAll || expansion.isTooDeep) && wasComplete
      if expansion.isTooDeep {
        return .problem(
          "the aggregate cluster \"\(name)\" is nested more than \(DependencyGraph.maximumDepth) levels deep; flatten it on the control plane"
        )
      }
      guard hasAll else { return nil }
      if expansion.leaves.isEmpty {
        return .problem(
          expansion.problem ?? "the aggregate cluster \"\(name)\" leads to no cluster with endpoints"
        )
      }
      return .aggregate(expansion.leaves)
    }
  }

  /// Finds the leaves of an aggregate in order. Of a cluster that is there several times, also as a part of itself, only the
  /// first place counts (gRFC A37).
  private mutating func expand(_ name: String, depth: Int, _ expansion: inout AggregateExpansion) {
    guard depth < DependencyGraph.maximumDepth else {
      expansion.isTooDeep = true
      return
    }
    guard !expansion.isTooDeep, expansion.seen.insert(name).inserted else { return }
    switch self.resource(name) {
    case nil: return
    case .failure(let error):
      // The other clusters serve.
      expansion.problem = expansion.problem ?? error.message
    case .success(let resource):
      guard case .aggregate(let children) = resource.kind else {
        if let leaf = self.leaf(name, resource) { expansion.leaves.append(leaf) }
        return
      }
      for child in children { self.expand(child, depth: depth + 1, &expansion) }
    }
  }

  private mutating func resource(_ cluster: String) -> Result<ClusterResource, ConnectError>? {
    switch self.find(.resource(.cluster, cluster)) {
    case .present(.cluster(let resource)): return .success(resource)
    case .missing(let error): return .failure(error)
    default:
      self.isComplete = false
      return nil
    }
  }

  private mutating func leaf(_ name: String, _ resource: ClusterResource) -> XDSConfiguration.Leaf? {
    let knowledge: DependencyGraph.Knowledge?
    let source: String
    switch resource.kind {
    case .aggregate: return nil
    case .endpoints(let service):
      knowledge = self.find(.resource(.endpoints, service))
      source = "the endpoints \"\(service)\""
    case .logicalDNS(let host, let port):
      knowledge = self.find(.addresses(host: host, port: port))
      source = "\(host):\(port)"
    }
    switch knowledge {
    case .present(.endpoints(let endpoints)):
      return .init(name: name, resource: resource, endpoints: endpoints, note: endpoints.note(source))
    case .missing(let error):
      return .init(name: name, resource: resource, endpoints: nil, note: error.message)
    default:
      self.isComplete = false
      return nil
    }
  }
}

private struct AggregateExpansion {
  var seen: Set<String> = []
  var leaves: [XDSConfiguration.Leaf] = []
  /// Of the first cluster that cannot be used.
  var problem: String?
  var isTooDeep = false
}

extension EndpointsResource {
  /// Why calls may find no server.
  fileprivate func note(_ source: String) -> String? {
    if self.priorities.allSatisfy(\.isEmpty) { return "\(source) of the control plane have no localities" }
    let empty = self.priorities.joined().filter(\.endpoints.isEmpty)
    if empty.isEmpty { return nil }
    let names = empty.prefix(8).map(\.name.description).joined(separator: "; ")
    return "\(source) of the control plane have no healthy server in \(empty.count) localities: \(names)"
  }
}
