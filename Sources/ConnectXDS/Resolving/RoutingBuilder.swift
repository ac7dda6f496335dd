internal import Connect
internal import ConnectChannels

/// Makes clusters for a channel of a target's configuration. It keeps the names of priorities, and the clusters that
/// do not change.
struct RoutingBuilder {
  /// The counts of a cluster with servers of its own.
  typealias Statistics = (XDSConfiguration.Leaf) -> CallStatistics

  private struct Aggregate {
    var leaves: [XDSConfiguration.Leaf]
    var cluster: Cluster
  }

  private var leaves: [String: LeafBuilder] = [:]
  private var aggregates: [String: Aggregate] = [:]

  /// - Parameter statistics: Called once for each leaf. It gives the same object for a leaf as long as the leaf is used.
  mutating func build(
    _ found: [String: XDSConfiguration.Cluster],
    _ statistics: @escaping Statistics
  ) -> [String: Cluster] {
    let oldAggregates = self.aggregates
    self.aggregates = [:]
    var round = Round(builders: self.leaves, statistics: statistics)
    var clusters: [String: Cluster] = [:]
    for (name, cluster) in found {
      switch cluster {
      case .problem(let problem): clusters[name] = Cluster(endpoints: [], problem: problem)
      case .leaf(let leaf):
        let product = round.product(leaf)
        clusters[name] = Cluster(endpoints: product.endpoints, balancing: product.policy, problem: leaf.note)
      case .aggregate(let leaves):
        // Also if nothing has changed: the leaves stay in use.
        let products = leaves.map { round.product($0) }
        let kept = oldAggregates[name].flatMap { $0.leaves == leaves ? $0.cluster : nil }
        let made = kept ?? Self.aggregate(leaves, products)
        clusters[name] = made
        self.aggregates[name] = Aggregate(leaves: leaves, cluster: made)
      }
    }
    self.leaves = round.used
    return clusters
  }

  private static func aggregate(_ leaves: [XDSConfiguration.Leaf], _ products: [LeafBuilder.Product])
    -> Cluster
  {
    var endpoints: [Endpoint] = []
    var children: [BalancingPolicy.Child] = []
    for (leaf, product) in zip(leaves, products) {
      children.append(.init(leaf.name, product.policy))
      endpoints += product.endpoints.map { endpoint in
        var endpoint = endpoint
        endpoint.path.insert(leaf.name, at: 0)
        endpoint.cluster = leaf.name
        return endpoint
      }
    }
    let notes = leaves.compactMap(\.note)
    return Cluster(
      endpoints: endpoints,
      balancing: .priority(children),
      problem: notes.isEmpty ? nil : notes.joined(separator: "; ")
    )
  }

  /// One build: each leaf is made once, for itself and for aggregates.
  private struct Round {
    var builders: [String: LeafBuilder]
    let statistics: Statistics
    private(set) var used: [String: LeafBuilder] = [:]
    private var products: [String: LeafBuilder.Product] = [:]

    init(builders: [String: LeafBuilder], statistics: @escaping Statistics) {
      self.builders = builders
      self.statistics = statistics
    }

    mutating func product(_ leaf: XDSConfiguration.Leaf) -> LeafBuilder.Product {
      if let product = self.products[leaf.name] { return product }
      var builder = self.builders[leaf.name] ?? LeafBuilder()
      let product = builder.build(leaf, self.statistics(leaf))
      self.used[leaf.name] = builder
      self.products[leaf.name] = product
      return product
    }
  }
}

extension XDSConfiguration {
  var routes: [Route] {
    let faults = self.listener.faultFilters
    return self.virtualHost.routes.map { route in
      switch route.action {
      case .inappropriate:
        Route(
          route.match,
          refusing:
            "the control plane's route has an action that clients do not support; route the call to a cluster"
        )
      case .forward(let forward):
        Route(
          route.match,
          to: forward.shares.map { share in
            WeightedCluster(
              name: share.cluster,
              weight: share.weight,
              fault: faults.areOverridden(by: share.overrides)
                ? faults.fault([share.overrides, route.overrides, self.virtualHost.overrides]) : nil
            )
          },
          timeout: self.timeout(of: forward),
          attempts: forward.retry.map { .retry($0) },
          hashPolicies: forward.hashPolicies,
          fault: faults.fault([route.overrides, self.virtualHost.overrides])
        )
      }
    }
  }

  /// The route's, else the listener's; nil for no limit (gRFC A31).
  private func timeout(of forward: RouteForward) -> Duration? {
    let limit = forward.maximumStreamDuration ?? self.listener.maximumStreamDuration
    return limit == .zero ? nil : limit
  }
}

private struct FaultFilter {
  var name: String
  var settings: FaultSettings

  func settings(_ overrides: [[String: FilterOverride]]) -> FaultSettings {
    for override in overrides {
      if case .fault(let settings) = override[self.name] { return settings }
    }
    return self.settings
  }
}

extension ListenerResource {
  fileprivate var faultFilters: [FaultFilter] {
    self.filters.compactMap { filter in
      guard case .fault(let settings) = filter.kind else { return nil }
      return FaultFilter(name: filter.name, settings: settings)
    }
  }
}

extension [FaultFilter] {
  fileprivate func areOverridden(by overrides: [String: FilterOverride]) -> Bool {
    self.contains { overrides[$0.name] != nil }
  }

  /// The faults of all filters; nil without filters. A call has one delay and one failure at most: of several filters, the first
  /// delay and the first failure count, and the limit of the filter that delays.
  ///
  /// - Parameter overrides: The most specific first (gRFC A33).
  fileprivate func fault(_ overrides: [[String: FilterOverride]]) -> FaultSettings? {
    var all: FaultSettings?
    for filter in self {
      let next = filter.settings(overrides)
      guard var merged = all else {
        all = next
        continue
      }
      if merged.delay == nil {
        if next.delay != nil || merged.abort == nil { merged.maximumActive = next.maximumActive }
        merged.delay = next.delay
      }
      merged.abort = merged.abort ?? next.abort
      all = merged
    }
    return all
  }
}
