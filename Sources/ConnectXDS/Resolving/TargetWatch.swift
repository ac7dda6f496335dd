internal import Connect
internal import ConnectChannels

/// The routes of one target, for all channels that use it. Confined to the executor of the client.
final class TargetWatch {
  typealias Answer = Result<ResolverUpdate, ConnectError>
  typealias Report = @Sendable (Answer) -> Void

  private struct Lease {
    var table: StatisticsTable
    var key: StatisticsTable.Key
    var statistics: CallStatistics
  }

  private let target: ListenerName
  private let executor: any CallExecutor
  private let security: SecurityTable
  private let table: (XDSBootstrap.Server?) -> StatisticsTable
  private var builder = RoutingBuilder()
  private var watch: DependencyWatch?
  /// By name of the cluster.
  private var leases: [String: Lease] = [:]
  private var latest: Answer?
  private var reports: [Int: Report] = [:]
  /// The clusters that each user has in use.
  private var kept: [Int: Set<String>] = [:]
  /// Whether channels have got routes. From then on, also routes that are gone have to be said: a failure would keep the last
  /// ones in use.
  private var hasRouted = false

  /// - Parameter table: The counts of clusters whose loads are reported to this server, or to none.
  init(
    _ target: ListenerName,
    in environment: DependencyWatch.Environment,
    security: SecurityTable,
    table: @escaping (XDSBootstrap.Server?) -> StatisticsTable
  ) {
    self.target = target
    self.executor = environment.executor
    self.security = security
    self.table = table
    let graph = DependencyGraph(listenerName: target.resource, host: target.host)
    self.watch = DependencyWatch(graph, in: environment) { [weak self] in self?.learn($0) }
  }

  func start() { self.watch?.start() }

  func add(_ number: Int, _ report: @escaping Report) {
    self.reports[number] = report
    if let latest { report(latest) }
  }

  /// - Returns: Whether nobody is left.
  func remove(_ number: Int) -> Bool {
    self.reports[number] = nil
    guard self.reports.isEmpty else {
      self.keepClusters([], for: number)
      return false
    }
    self.end()
    self.security.remove(self.target)
    return true
  }

  /// Nothing is watched any more. The last routes stay in use.
  func end() {
    self.watch?.cancel()
    self.watch = nil
    self.release { _ in false }
  }

  /// The channels of this user have these clusters in use.
  func keepClusters(_ names: Set<String>, for number: Int) {
    self.kept[number] = names.isEmpty ? nil : names
    self.watch?.keepClusters(self.kept.values.reduce(into: []) { $0.formUnion($1) })
  }

  func resolveAgain() { self.watch?.resolveAgain() }

  private func learn(_ answer: DependencyWatch.Answer) {
    switch answer {
    case .success(let configuration):
      self.hasRouted = true
      let clusters = self.clusters(configuration.clusters)
      self.publish(.success(self.update(Routing(routes: configuration.routes, clusters: clusters))))
    case .failure(let absence):
      let clusters = self.clusters(absence.clusters)
      let message = absence.error.message ?? "the control plane has no routes for \"\(self.target.host)\""
      guard self.hasRouted else {
        self.publish(.failure(ConnectError(code: .unavailable, message: message)))
        return
      }
      self.publish(.success(self.update(Routing(routes: [Route(refusing: message)], clusters: clusters))))
    }
  }

  private func update(_ routing: Routing) -> ResolverUpdate {
    ResolverUpdate(endpoints: [], routing: routing)
  }

  private func publish(_ answer: Answer) {
    self.latest = answer
    for (_, report) in self.reports.sorted(by: { $0.key < $1.key }) { report(answer) }
  }

  private func clusters(_ found: [String: XDSConfiguration.Cluster]) -> [String: Cluster] {
    let leaves = found.leaves
    // Before connections are made.
    self.security.set(leaves.mapValues(\.resource.security), for: self.target)
    for (_, leaf) in leaves.sorted(by: { $0.key < $1.key }) { self.lease(leaf) }
    let leases = self.leases.mapValues(\.statistics)
    let clusters = self.builder.build(found) { leaf in
      leases[leaf.name] ?? CallStatistics(cluster: leaf.name)
    }
    self.release { leaves[$0] != nil }
    return clusters
  }

  private func lease(_ leaf: XDSConfiguration.Leaf) {
    let key = StatisticsTable.Key(cluster: leaf.name, service: leaf.resource.service)
    let table = self.table(leaf.reportServer)
    if let old = self.leases[leaf.name], old.key == key {
      if old.table !== table {
        // The control plane has changed: another one gets the reports, of the same counts.
        let statistics = old.table.move(key, to: table)
        self.leases[leaf.name] = Lease(table: table, key: key, statistics: statistics)
      }
    } else {
      let lease = Lease(table: table, key: key, statistics: table.acquire(key))
      if let old = self.leases.updateValue(lease, forKey: leaf.name) { old.table.release(old.key) }
    }
    let localities = (leaf.endpoints?.priorities ?? []).joined().map(\.name)
    table.note(
      key,
      isReported: leaf.reportServer != nil,
      localities: localities,
      now: self.executor.now
    )
  }

  private func release(except isUsed: (String) -> Bool) {
    for (name, lease) in self.leases.sorted(by: { $0.key < $1.key }) where !isUsed(name) {
      self.leases[name] = nil
      lease.table.release(lease.key)
    }
  }
}

extension [String: XDSConfiguration.Cluster] {
  /// All clusters with servers of their own, by name.
  fileprivate var leaves: [String: XDSConfiguration.Leaf] {
    var leaves: [String: XDSConfiguration.Leaf] = [:]
    for cluster in self.values {
      switch cluster {
      case .problem: break
      case .leaf(let leaf): leaves[leaf.name] = leaf
      case .aggregate(let all): for leaf in all { leaves[leaf.name] = leaf }
      }
    }
    return leaves
  }
}

extension ClusterResource {
  /// The name of the endpoints' resource; empty for none.
  fileprivate var service: String {
    if case .endpoints(let name) = self.kind { name } else { "" }
  }
}
