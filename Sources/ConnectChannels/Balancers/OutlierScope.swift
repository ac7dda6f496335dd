/// The endpoints that are judged together, in a tree of policies.
struct OutlierScope {
  /// Where the policy with outlier detection is.
  let place: TreePlace
  let settings: OutlierDetection
}

extension OutlierScope {
  /// The settings by which an endpoint is judged, and with which others it is compared: those of the outermost outlier
  /// detection that the endpoint belongs to. Nil if there is none.
  init?(of endpoint: Endpoint, in policy: BalancingPolicy, at place: TreePlace = TreePlace()) {
    let name = endpoint.childName(at: place.depth)
    switch policy.kind {
    case .outlierDetection(let settings, _):
      self.init(place: place, settings: settings)
    case .randomSubset(let base, _), .limited(_, let base):
      self.init(of: endpoint, in: base, at: place)
    case .zoneAware(_, let base):
      self.init(of: endpoint, in: base, at: place.zone(endpoint.zone ?? ""))
    case .priority(let children):
      guard let child = children.first(where: { $0.name == name }) else { return nil }
      self.init(of: endpoint, in: child.policy, at: place.child(child.name))
    case .weightedTarget(let targets):
      guard let target = targets.first(where: { $0.name == name }) else { return nil }
      self.init(of: endpoint, in: target.policy, at: place.child(target.name))
    case .pickFirst, .roundRobin, .leastRequest, .weightedRoundRobin, .ringHash, .custom:
      return nil
    }
  }
}
