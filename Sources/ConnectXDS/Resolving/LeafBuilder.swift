internal import ConnectChannels

/// Makes endpoints and a policy of one cluster with servers of its own. It keeps what it has made as long as nothing changes.
struct LeafBuilder {
  /// What is made of a leaf.
  struct Product {
    var endpoints: [Endpoint]
    var policy: BalancingPolicy
  }

  private struct Made {
    var leaf: XDSConfiguration.Leaf
    var statistics: CallStatistics
    var product: Product
  }

  private var names = PriorityNames()
  private var made: Made?

  mutating func build(_ leaf: XDSConfiguration.Leaf, _ statistics: CallStatistics) -> Product {
    if let made = self.made, made.statistics == statistics, made.leaf == leaf { return made.product }
    let product = self.make(leaf, statistics)
    self.made = Made(leaf: leaf, statistics: statistics, product: product)
    return product
  }

  private mutating func make(_ leaf: XDSConfiguration.Leaf, _ statistics: CallStatistics) -> Product {
    let found = leaf.endpoints?.priorities ?? []
    // Without priorities there is one without localities, so that drops hold.
    let priorities = found.isEmpty ? [[]] : found
    self.names.update(priorities.map { $0.map(\.name) })
    var endpoints: [Endpoint] = []
    endpoints.reserveCapacity(priorities.joined().reduce(0) { $0 + $1.endpoints.count })
    let security = leaf.resource.security?.text
    var children: [BalancingPolicy.Child] = []
    for (localities, number) in zip(priorities, self.names.numbers) {
      let name = PriorityNames.name(of: leaf.name, number: number)
      children.append(.init(name, leaf.resource.policy.tree(localities)))
      for locality in localities { endpoints.add(locality, of: name, leaf.resource.policy, security) }
    }
    var policy = BalancingPolicy.priority(children)
    let limits = CallLimits(
      drops: leaf.endpoints?.drops ?? [],
      maximumCalls: leaf.resource.maximumCalls,
      statistics: statistics
    )
    policy = .limited(limits, of: policy)
    if let settings = leaf.resource.outlierDetection { policy = .outlierDetection(settings, of: policy) }
    return Product(endpoints: endpoints, policy: policy)
  }
}

extension ClusterResource.Policy {
  /// The policy for one priority.
  fileprivate func tree(_ localities: [EndpointsResource.Locality]) -> BalancingPolicy {
    switch self {
    case .overall(let policy): policy
    case .byLocality(let policy):
      .weightedTarget(localities.map { .init($0.name.description, weight: $0.weight, policy) })
    }
  }

  /// Whether the weight of an endpoint includes that of its locality: where no policy spreads calls over localities (gRFC A42).
  fileprivate var multipliesWeights: Bool {
    if case .overall = self { true } else { false }
  }
}

extension [Endpoint] {
  /// Adds the endpoints of a locality.
  fileprivate mutating func add(
    _ locality: EndpointsResource.Locality,
    of priority: String,
    _ policy: ClusterResource.Policy,
    _ security: String?
  ) {
    let zone = locality.name.description
    // One array for all of them.
    let path = [priority, zone]
    let factor = policy.multipliesWeights ? Swift.max(locality.weight, 1) : 1
    for endpoint in locality.endpoints {
      var weight = endpoint.weight
      if factor != 1 {
        let (product, isTooLarge) = Swift.max(weight, 1).multipliedReportingOverflow(by: factor)
        weight = isTooLarge ? .max : product
      }
      self.append(endpoint.placed(zone: zone, path: path, security: security, weight: weight))
    }
  }
}
